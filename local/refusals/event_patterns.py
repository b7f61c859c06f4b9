"""EventBridge's patterns: how long, and what each way of matching takes.

Source of the words: event-ruler, which EventBridge matches with (RuleCompiler).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from local.refusals.documents import parsed, text
from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

PATTERN_CHARACTERS = 2_048
TEXTS = ("prefix", "suffix", "equals-ignore-case", "wildcard", "cidr")
MATCHES = frozenset({*TEXTS, "anything-but", "numeric", "exists"})


@limit(
    "cloudwatch/eventRule:EventRule",
    source="https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html",
)
def event_pattern(wanted: Wanted) -> Iterator[Refusal]:
    """2,048 characters; every leaf of it is a list of what can be matched."""
    pattern = wanted.inputs.get("eventPattern")
    if pattern is None:
        return
    document = parsed(pattern)
    if len(text(pattern)) > PATTERN_CHARACTERS:
        wrong = "Event pattern exceeds the maximum size"
    elif document is None:
        wrong = "Filter is not an object"
    else:
        wrong = wrong_pattern(document)
    if wrong:
        message = f"Event pattern is not valid. Reason: {wrong}"
        yield Refusal("PutRule", "InvalidEventPatternException", message, "eventPattern")


def wrong_pattern(pattern: Any) -> str:
    """Return what is wrong with a pattern, or nothing."""
    if isinstance(pattern, dict):
        if not pattern:
            return "Empty objects are not allowed"
        alternatives = pattern.get("$or")
        if alternatives is not None and isinstance(alternatives, list) and len(alternatives) < 2:
            return "There must be have at least 2 Objects in $or relationship."
        if isinstance(alternatives, list) and all(isinstance(e, dict) for e in alternatives):
            rest = {key: value for key, value in pattern.items() if key != "$or"}
            return _first([*alternatives, *rest.values()])
        return _first(pattern.values())
    if not isinstance(pattern, list) or not pattern:
        return "a value must be an object or an array"
    return next((wrong for leaf in pattern if (wrong := _wrong_leaf(leaf))), "")


def _first(parts: Any) -> str:
    return next((wrong for each in parts if (wrong := wrong_pattern(each))), "")


def _wrong_leaf(leaf: Any) -> str:
    if isinstance(leaf, list):
        return "Match value must be String, number, true, false, or null"
    if not isinstance(leaf, dict):
        return ""
    if len(leaf) != 1:
        return "Only one key allowed in match expression"
    ((match, value),) = leaf.items()
    return _wrong_match(match, value)


def _wrong_match(match: str, value: Any) -> str:
    problems = (
        (match not in MATCHES, f"Unrecognized match type {match}"),
        (
            match == "exists" and not isinstance(value, bool),
            "exists match pattern must be either true or false.",
        ),
        (
            match == "numeric" and not (isinstance(value, list) and value),
            "Value of numeric must be an array.",
        ),
        (match == "numeric" and not _is_comparison(value), "Invalid numeric comparison."),
        (
            match == "cidr" and not _is_cidr(value),
            "Malformed CIDR, one '/' required",
        ),
        (
            match == "anything-but" and not _is_excluded(value),
            "Value of anything-but must be an array or single string/number value.",
        ),
        (
            match in TEXTS and not isinstance(value, str | dict),
            f"{match} match pattern must be a string",
        ),
        (
            match == "wildcard" and "**" in str(value),
            f"Consecutive wildcard characters at pos {str(value).find('**')}",
        ),
    )
    return next((said for wrong, said in problems if wrong), "")


_COMPARISONS = frozenset({"=", "<", "<=", ">", ">="})


def _is_comparison(value: Any) -> bool:
    """Say whether a list is an operator with a number, or two that bound a range."""
    if not isinstance(value, list) or len(value) not in {2, 4}:
        return False
    operators, numbers = value[::2], value[1::2]
    if not all(isinstance(each, int | float) and abs(each) <= 5e9 for each in numbers):
        return False
    if not all(isinstance(each, str) and each in _COMPARISONS for each in operators):
        return False
    if len(operators) == 1:
        return True
    upward = operators[0] in {">", ">="} and operators[1] in {"<", "<="}
    return upward and numbers[0] < numbers[1]


def _is_excluded(value: Any) -> bool:
    if isinstance(value, dict):
        return len(value) == 1 and set(value) <= {*TEXTS} - {"cidr"}
    many = value if isinstance(value, list) else [value]
    return bool(many) and all(isinstance(each, str | int | float) for each in many)


def _is_cidr(value: Any) -> bool:
    if not isinstance(value, str) or value.count("/") != 1:
        return False
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True
