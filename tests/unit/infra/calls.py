"""Which AWS calls a function's code can make, read from that code alone.

From an entry point `handlers.<role>.handler` the calls are followed through handlers/: into
functions by their names, into methods by theirs, of every class that anything reached so far makes
an instance of. Where a name fits two of those classes both are followed, so that a call may be
found that is never made, and none is missed. A boto3 method is named as IAM names it through
botocore's own model of the service.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import botocore.session
from botocore import xform_name

import handlers

PACKAGE = "handlers"
ROOT = Path(handlers.__path__[0])
# IAM's name of a service where boto3's is another.
IAM_NAMES = {"cloudwatch": "cloudwatch", "events": "events", "elbv2": "elasticloadbalancing"}
# Whose calls are looked for even where no client of them is made by name.
SERVICES = {"autoscaling", "cloudwatch", "dynamodb", "ec2", "elbv2", "events", "lambda", "s3"} | {
    "secretsmanager",
    "sns",
    "sqs",
    "ssm",
}
# Calls that IAM lets everybody make.
FREE = {"sts:GetCallerIdentity"}
MAKERS = {"client", "resource"}


@dataclass
class Module:
    """One module of handlers/: what it defines and where its names come from."""

    name: str
    tree: ast.Module
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    # Local name -> (module, name there).
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """A class that is instantiated somewhere on the way."""

    module: str
    name: str


def of_role(role: str) -> set[str]:
    """Return the IAM actions that the code behind handlers.<role>.handler may need."""
    return _Walk().actions(role)


@functools.cache
def modules() -> Mapping[str, Module]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = (PACKAGE, *path.relative_to(ROOT).with_suffix("").parts)
        name = ".".join(part for part in parts if part != "__init__")
        found[name] = _read(name, ast.parse(path.read_text()))
    return found


def _read(name: str, tree: ast.Module) -> Module:
    module = Module(name, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            for alias in node.names:
                module.imported[alias.asname or alias.name] = (str(node.module), alias.name)
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            module.functions[statement.name] = statement
        elif isinstance(statement, ast.ClassDef):
            module.classes[statement.name] = statement
    return module


class _Walk:
    """One entry point's reach; a step at a time until nothing new turns up."""

    def __init__(self) -> None:
        self._made: set[Made] = set()
        self._attributes: set[str] = set()
        self._seen: set[tuple[str, int]] = set()
        self._found: set[str] = set()

    def actions(self, role: str) -> set[str]:
        module = modules()[f"{PACKAGE}.{role}"]
        # What a module does when it is imported, and what Lambda calls.
        self._visit(module, module.functions["handler"], owner=None)
        before = -1
        while before != (now := len(self._seen) + len(self._made) + len(self._attributes)):
            before = now
            for made in list(self._made):
                self._enter(made)
        return self._found - FREE

    def _enter(self, made: Made) -> None:
        """Follow the methods of a class that are called by their names, and those Python calls."""
        module = modules()[made.module]
        owner = module.classes[made.name]
        for base in owner.bases:
            resolved = _resolve(module, base.id) if isinstance(base, ast.Name) else None
            if resolved is not None and resolved[1] in modules()[resolved[0]].classes:
                self._made.add(Made(*resolved))
        for method in owner.body:
            if isinstance(method, ast.FunctionDef):
                implicit = method.name.startswith("__") and method.name.endswith("__")
                if implicit or method.name in self._attributes:
                    self._visit(module, method, owner)

    def _visit(self, module: Module, function: ast.FunctionDef, owner: ast.ClassDef | None) -> None:
        key = (module.name, function.lineno)
        if key in self._seen:
            return
        self._seen.add(key)
        self._found |= set(_calls(function, _clients(owner or function) | _clients(function)))
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute):
                self._attributes.add(node.attr)
            elif isinstance(node, ast.Name):
                self._follow(module, node.id)

    def _follow(self, module: Module, name: str) -> None:
        resolved = _resolve(module, name)
        if resolved is None:
            return
        where = modules()[resolved[0]]
        if resolved[1] in where.functions:
            self._visit(where, where.functions[resolved[1]], owner=None)
        elif resolved[1] in where.classes:
            self._made.add(Made(*resolved))


def _resolve(module: Module, name: str) -> tuple[str, str] | None:
    """Return where a name of a module is defined in handlers/, or None."""
    if name in module.functions or name in module.classes:
        return module.name, name
    where, original = module.imported.get(name, ("", ""))
    if where not in modules():
        return None
    return _resolve(modules()[where], original)


def _clients(scope: ast.AST) -> dict[str, str]:
    """Return boto3's service by the attribute or variable that keeps its client."""
    found = {}
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        service = next(_services(node.value), None)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", None)
            if service is not None and name is not None:
                found[name] = service
    return found


def _services(value: ast.AST) -> Iterator[str]:
    for node in ast.walk(value):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr in MAKERS and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


def _calls(function: ast.FunctionDef, clients: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        receiver = node.func.value
        kept = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
        if kept not in clients:
            continue
        method = node.func.attr
        if method in ("get_paginator", "get_waiter"):
            method = str(ast.literal_eval(node.args[0]))
        yield iam_action(clients[kept], method)


def unattributed() -> list[str]:
    """Return what looks like an AWS call in handlers/ and is of no client known here.

    A client that is passed around under another name would otherwise go unnoticed.
    """
    known = {
        node.name
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef)
    }
    found = []
    for module in modules().values():
        clients = _clients(module.tree)
        services = SERVICES | set(clients.values())
        operations = {operation for service in services for operation in _operations(service)}
        known_names = clients.keys() | _imported_modules(module.tree)
        for node in ast.walk(module.tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            receiver = node.func.value
            kept = receiver.attr if isinstance(receiver, ast.Attribute) else ""
            name = getattr(receiver, "id", kept)
            if node.func.attr in operations - known and name not in known_names:
                found.append(f"{module.name}:{node.lineno} {name}.{node.func.attr}")
    return found


def _imported_modules(tree: ast.Module) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import))
    return {alias.asname or alias.name for node in imports for alias in node.names}


@functools.cache
def _operations(service: str) -> Mapping[str, str]:
    """Return a service's operations by the names that boto3 gives them."""
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(operation): operation for operation in model.operation_names}


def iam_action(service: str, method: str) -> str:
    """Return the IAM action of a boto3 method.

    >>> iam_action("sqs", "send_message")
    'sqs:SendMessage'
    """
    model = botocore.session.get_session().get_service_model(service)
    return f"{IAM_NAMES.get(service, model.signing_name)}:{_operations(service)[method]}"
