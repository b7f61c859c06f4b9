"""What a function of handlers/ asks of the Kubernetes API server, read from its code."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping

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
