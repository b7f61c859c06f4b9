"""Which AWS calls a function's code can make, and what it asks of Kubernetes, read from that code.

From an entry point `handlers.<role>.handler` the calls are followed through handlers/: into
functions by their names, into methods of the class an annotation names, or of every class that is
made on the way and has what a Protocol asks. A receiver of unknown type may be any of the classes
made: a call may be found that is never made, and none is missed. A boto3 method is named as IAM
names it through botocore's own model of the service.
"""

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.session
from botocore import xform_name

import handlers

# IAM's name of a service where boto3's is another.
IAM_NAMES = {"cloudwatch": "cloudwatch", "events": "events", "elbv2": "elasticloadbalancing"}


# IAM's name of an operation where the API's is another.
IAM_ACTIONS = {"ListObjectsV2": "ListBucket"}


@functools.cache
def _model(service: str) -> Any:
    return _session().get_service_model(service)


@functools.cache
def _session() -> Any:
    return botocore.session.get_session()


@functools.cache
def operations(service: str) -> Mapping[str, str]:
    """Return a service's operations by the names that boto3 gives them."""
    return {xform_name(operation): operation for operation in _model(service).operation_names}


@functools.cache
def iam_action(service: str, method: str) -> str:
    """Return the IAM action of a boto3 method.

    >>> iam_action("sqs", "send_message")
    'sqs:SendMessage'
    """
    operation = operations(service)[method]
    called = IAM_NAMES.get(service, _model(service).signing_name)
    return f"{called}:{IAM_ACTIONS.get(operation, operation)}"


# Methods of handlers.adapters.eks.EksApi, and the verb RBAC knows each by.
VERBS = {"list": "list", "find": "get", "text": "get", "relay": "get"} | {
    "merge": "patch",
    "apply": "patch",
    "delete": "delete",
    "ask": "create",
}


def requests(
    module: ast.Module, function: ast.FunctionDef, owner: ast.ClassDef | None
) -> Iterator[tuple[str, str]]:
    """Yield what a function asks of the API server, by the paths it asks for."""
    names = _assigned(module) | (_assigned(owner) if owner else {}) | _assigned(function)
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        receiver = node.func.value
        kept = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
        if kept.lstrip("_") == "api" and node.func.attr in VERBS:
            path = _path(node.args[0], names)
            yield VERBS[node.func.attr], _resource(path)


@functools.cache
def _assigned(scope: ast.AST) -> dict[str, ast.AST]:
    """Return what is assigned to the names and the own attributes of a scope."""
    return {
        target.attr if isinstance(target, ast.Attribute) else target.id: node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute | ast.Name)
    }


def _path(value: ast.AST, names: Mapping[str, ast.AST]) -> str:
    """Return a path as it is written, `{}` for what only the caller knows."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.JoinedStr):
        return "".join(_path(part, names) for part in value.values)
    if isinstance(value, ast.FormattedValue):
        return _path(value.value, names)
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return _path(names[name], names) if name in names else "{}"


def _resource(path: str) -> str:
    """Return a path's resource, with its subresource.

    >>> _resource("/api/v1/namespaces/{}/pods/{}:9404/proxy/metrics")
    'pods/proxy'
    """
    segments = path.partition("?")[0].strip("/").split("/")
    below = segments[2:] if segments[0] == "api" else segments[3:]
    if below[0] == "namespaces":
        below = below[2:]
    return "/".join(each.partition("{")[0] for each in below[0:3:2])


PACKAGE = "handlers"
ROOT = Path(handlers.__path__[0])
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


@dataclass(frozen=True)
class Facts:
    """What a function's own lines say; what they lead to, a walk finds."""

    actions: frozenset[str]
    requests: frozenset[tuple[str, str]]
    typed: frozenset[tuple[Made, str]]
    attributes: frozenset[str]
    names: frozenset[str]


def of_role(role: str) -> frozenset[str]:
    """Return the IAM actions that the code behind handlers.<role>.handler may need."""
    return _walked(role)[0]


def in_kubernetes(role: str) -> frozenset[tuple[str, str]]:
    """Return what that code may ask of the API server: verbs, and resources as RBAC names them."""
    return _walked(role)[1]


@functools.cache
def _walked(role: str) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    walk = _Walk()
    return frozenset(walk.actions(role)), frozenset(walk.requests)


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
        # Methods by name alone, and by the class or protocol they are called on.
        self._attributes: set[str] = set()
        self._typed: set[tuple[Made, str]] = set()
        self._seen: set[tuple[str, int]] = set()
        self._found: set[str] = set()
        self.requests: set[tuple[str, str]] = set()

    def actions(self, role: str) -> set[str]:
        module = modules()[f"{PACKAGE}.{role}"]
        # What a module does when it is imported, and what Lambda calls.
        self._visit(module, module.functions["handler"], owner=None)
        before = -1
        while before != (now := self._size()):
            before = now
            for made in list(self._made):
                self._enter(made)
        return self._found - FREE

    def _size(self) -> int:
        return sum(map(len, (self._seen, self._made, self._attributes, self._typed)))

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
                if implicit or method.name in self._attributes or self._reaches(made, method.name):
                    self._visit(module, method, owner)

    def _visit(self, module: Module, function: ast.FunctionDef, owner: ast.ClassDef | None) -> None:
        key = (module.name, function.lineno)
        if key in self._seen:
            return
        self._seen.add(key)
        facts = _facts(module.name, function, owner)
        self._found |= facts.actions
        self.requests |= facts.requests
        self._typed |= facts.typed
        self._attributes |= facts.attributes
        for name in facts.names:
            self._follow(module, name)

    def _reaches(self, made: Made, method: str) -> bool:
        """Say whether a call on a known type means this class's method."""
        return any(name == method and _is_a(made, asked) for asked, name in self._typed)

    def _follow(self, module: Module, name: str) -> None:
        resolved = _resolve(module, name)
        if resolved is None:
            return
        where = modules()[resolved[0]]
        if resolved[1] in where.functions:
            self._visit(where, where.functions[resolved[1]], owner=None)
        elif resolved[1] in where.classes:
            self._made.add(Made(*resolved))


@functools.cache
def _facts(name: str, function: ast.FunctionDef, owner: ast.ClassDef | None) -> Facts:
    module = modules()[name]
    known, used = _types(module, function, owner), _used_as_functions(function)
    typed: set[tuple[Made, str]] = set()
    attributes, names = set(), set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            types = _receiver(module, node.value, known)
            if types is not None:
                typed |= {(each, node.attr) for each in types}
            elif id(node) in used:
                attributes.add(node.attr)
        elif isinstance(node, ast.Name):
            names.add(node.id)
    return Facts(
        actions=frozenset(_calls(function, _clients(owner or function) | _clients(function))),
        requests=frozenset(requests(module.tree, function, owner)),
        typed=frozenset(typed),
        attributes=frozenset(attributes),
        names=frozenset(names),
    )


def _types(
    module: Module, function: ast.FunctionDef, owner: ast.ClassDef | None
) -> dict[str, set[Made]]:
    """Return the types that a function's parameters and variables are known to have."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    known = {a.arg: _named(module, a.annotation) for a in arguments if a.annotation is not None}
    if owner is not None:
        known["self"] = {Made(module.name, owner.name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = (
                _named(module, node.value.func) if isinstance(node.value.func, ast.Name) else set()
            )
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            known |= {name: made for name in names if made}
    return known


def _named(module: Module, annotation: ast.AST) -> set[Made]:
    """Return the classes of handlers/ that an annotation names; none of them is not unknown."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval")
    found = set()
    for node in ast.walk(annotation):
        resolved = _resolve(module, node.id) if isinstance(node, ast.Name) else None
        if resolved is not None and resolved[1] in modules()[resolved[0]].classes:
            found.add(Made(*resolved))
    return found


def _receiver(module: Module, value: ast.AST, known: Mapping[str, set[Made]]) -> set[Made] | None:
    """Return the types of what a method is called on, or None where nothing says."""
    if isinstance(value, ast.Name):
        return known.get(value.id)
    if isinstance(value, ast.Attribute):
        below = _receiver(module, value.value, known)
        found = [_field(each, value.attr) for each in below or ()]
        if found and all(each is not None for each in found):
            return set().union(*(each for each in found if each is not None))
    return None


def _field(made: Made, name: str) -> set[Made] | None:
    """Return the types of a class's annotated field, or None where there is no such field."""
    module = modules()[made.module]
    for statement in module.classes[made.name].body:
        if isinstance(statement, ast.AnnAssign) and getattr(statement.target, "id", "") == name:
            return _named(module, statement.annotation)
    return None


def _is_a(made: Made, asked: Made) -> bool:
    """Say whether a class is the one asked for, a base of it or one below, or fits its protocol."""
    if made == asked:
        return True
    has, wants = _class(made), _class(asked)
    if any(getattr(base, "id", "") == "Protocol" for base in wants.bases):
        return _methods(wants) <= _methods(has)
    bases = {getattr(base, "id", "") for base in (*wants.bases, *has.bases)}
    return bool(bases & {made.name, asked.name})


def _class(made: Made) -> ast.ClassDef:
    return modules()[made.module].classes[made.name]


def _methods(of: ast.ClassDef) -> set[str]:
    return {each.name for each in of.body if isinstance(each, ast.FunctionDef)}


def _used_as_functions(function: ast.FunctionDef) -> set[int]:
    """Return the attributes that are called or handed on, not only read or compared."""
    holders = (ast.Call, ast.keyword, ast.Return, ast.Assign, ast.Tuple, ast.List, ast.Dict)
    return {
        id(child)
        for node in ast.walk(function)
        if isinstance(node, holders)
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.Attribute)
    }


def _resolve(module: Module, name: str) -> tuple[str, str] | None:
    """Return where a name of a module is defined in handlers/, or None."""
    if name in module.functions or name in module.classes:
        return module.name, name
    where, original = module.imported.get(name, ("", ""))
    if where not in modules():
        return None
    return _resolve(modules()[where], original)


@functools.cache
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
        methods = {method for service in services for method in operations(service)}
        known_names = clients.keys() | _imported_modules(module.tree)
        for node in ast.walk(module.tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            receiver = node.func.value
            kept = receiver.attr if isinstance(receiver, ast.Attribute) else ""
            name = getattr(receiver, "id", kept)
            if node.func.attr in methods - known and name not in known_names:
                found.append(f"{module.name}:{node.lineno} {name}.{node.func.attr}")
    return found


def _imported_modules(tree: ast.Module) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import))
    return {alias.asname or alias.name for node in imports for alias in node.names}
