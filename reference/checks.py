"""Writes docs/reference/checks.md: every rule of the table of checks, with what asks it."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from core.checks import drift, finding, table
from core.checks.finding import RULES, Rule

# What the doctor reads of a live cluster and of the account around it (cli.doctor).
READ_BY_DOCTOR = frozenset(
    {
        *("kafkas", "pools", "operators", "ending_namespaces", "nodes", "instances", "groups"),
        *("group_of", "templates", "scale_ins", "refreshes", "encryption_keys", "subnets"),
        *("ways_out", "vpc_endpoints", "machine_quotas", "disk_quota", "control_plane"),
        *("upgrade_insights", "zonal_shifts", "aws_health", "function_subnets"),
        "function_services",
    }
)
WEIGHTS = {
    "broker_may_die": "BROKER",
    "producer_may_stall": "PRODUCER",
    "not_judged": "UNKNOWN",
    "worth_knowing": "ADVICE",
    "_no": "REFUSED",
}
CALLS = {"Finding", *WEIGHTS}
HEAD = """# The checks

Every check has one name, one sentence and one remedy, whichever command finds it. `check` reads a
[description](cluster-spec.md) alone. [`preflight`](../how-to/preflight.md) asks an account,
[`survey`](../how-to/survey.md) a running cluster. [`doctor`](../how-to/doctor.md) compares a
description with its account and its live cluster.

Where `…` stands, the finding names what was seen. Exit codes are the same everywhere: 0, nothing
hurts; 1, something does, and 2, a part could not be read.

A description accepts a check by its name, in `accept`. `up` makes nothing of a description of which
something weighs *a broker may die*, or that could never work ({unworkable}), unless it is accepted.
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of finding, as the source builds it."""

    name: str
    weights: tuple[str, ...]
    evidence: str
    remedy: str


def page() -> str:
    """Return the page: a row per check, by name."""
    rows: dict[tuple[str, str], tuple[Check, set[str]]] = {}
    for rule in RULES:
        for check in _checks(rule):
            _check, askers = rows.setdefault((check.name, check.evidence), (check, set()))
            askers.update(_askers(rule))
    lines = [HEAD.format(unworkable=", ".join(f"`{each}`" for each in sorted(table.UNWORKABLE)))]
    lines += ["| check | may come of it | asked by | found | to do |", "|---|---|---|---|---|"]
    for _, (check, askers) in sorted(rows.items()):
        weights = ", ".join(check.weights)
        asked = ", ".join(f"`{each}`" for each in sorted(askers))
        cells = (f"`{check.name}`", weights, asked, check.evidence, check.remedy)
        lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    lines += ["", "`unread` says which part could not be read, and why; every command asks it."]
    lines += ["`drift`, asked by `doctor`, compares these parts with the description:", ""]
    lines += [f"- {part}" for part in drift.TITLES.values()]
    return "\n".join(lines) + "\n"


def _askers(rule: Rule) -> Iterator[str]:
    if "needs" in rule.needs:
        yield "preflight"
        return
    if rule.described:
        yield "check"
    if rule.described or {*rule.needs} <= READ_BY_DOCTOR:
        yield "doctor"
    if not {"description", "function_subnets"} & {*rule.needs}:
        yield "survey"


def _checks(rule: Rule) -> Iterator[Check]:
    """Yield the findings that a rule's judge builds, itself or by functions that it calls."""
    judge = inspect.unwrap(rule.judge)
    module = inspect.getmodule(judge)
    assert module is not None  # noqa: S101 - every judge stands in a module
    seen: set[tuple[str, str]] = set()
    waiting = [(module, judge.__name__)]
    while waiting:
        module, name = waiting.pop()
        if (module.__name__, name) in seen or name not in _functions(module):
            continue
        seen.add((module.__name__, name))
        function = _functions(module)[name]
        for call in (each for each in ast.walk(function) if isinstance(each, ast.Call)):
            called = call.func.id if isinstance(call.func, ast.Name) else ""
            if called in CALLS:
                yield from _built(call, called, function)
            target = getattr(module, called, None)
            home = inspect.getmodule(target) if inspect.isfunction(target) else None
            if home is not None and home is not finding and home.__name__.startswith("core.checks"):
                waiting.append((home, called))


@cache
def _functions(module: ModuleType) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    return {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}


def _built(call: ast.Call, called: str, function: ast.FunctionDef) -> Iterator[Check]:
    # A finding by position: check, (weight,) subject, evidence, remedy.
    if any(isinstance(each, ast.Starred) for each in call.args[:1]):
        return
    texts = [_text(each) for each in call.args]
    last = texts[-2:] if len(texts) > 2 else ["…", "…"]
    weight = WEIGHTS.get(called)
    weights = [weight] if weight else _weights(call.args[1], function)
    for name in _names(call.args[0], function):
        full = f"account-{name}" if called == "_no" else name
        said = tuple(str(finding.Weight[each]) for each in weights if each)
        yield Check(full, said or ("as it weighs",), *(each.strip() for each in last))


def _names(node: ast.expr, function: ast.FunctionDef) -> list[str]:
    if isinstance(node, ast.IfExp):
        return [*_names(node.body, function), *_names(node.orelse, function)]
    if isinstance(node, ast.Name):
        return [name for value in _values(node, function) for name in _names(value, function)]
    return [_text(node)] if isinstance(node, ast.Constant | ast.JoinedStr) else []


def _weights(node: ast.expr, function: ast.FunctionDef) -> list[str]:
    """Return the weights that an expression may have, worst first."""
    named = [each.attr for value in _values(node, function) for each in _attributes(value)]
    return [each.name for each in finding.Weight if each.name in named]


def _values(node: ast.expr, function: ast.FunctionDef) -> list[ast.expr]:
    """Return an expression, or of a name everything that its function assigns to it."""
    if not isinstance(node, ast.Name):
        return [node]
    return [
        each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
    ]


def _attributes(node: ast.expr) -> list[ast.Attribute]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Attribute)]


def _text(node: ast.expr) -> str:
    """Return a string of the source, with … for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) for each in node.values)
    if isinstance(node, ast.BinOp):
        return f"{_text(node.left)}{_text(node.right)}"
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        modules = (vars(sys.modules[rule.judge.__module__]) for rule in RULES)
        known = next((known[node.value.id] for known in modules if node.value.id in known), None)
        return str(known) if node.value.id.isupper() and known is not None else "…"
    return "…"
