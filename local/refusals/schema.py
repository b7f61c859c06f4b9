"""The provider's own schema, as its SDK states it: which inputs a type has, and of what kind.

What a block lacks, has too much of or has of another kind stops an `up` before any call is made.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws
from pulumi._types import input_type_py_to_pulumi_names, is_input_type

from local.refusals.refusal import Refusal, Wanted

MISSING, UNKNOWN = "Missing required argument", "Unsupported argument"
MISTYPED = "Incorrect attribute value type"
# Whose name is a word of Python's.
_PACKAGES = {"lambda": "lambda_"}
# What the engine or the provider lays beside a resource's own inputs.
_BESIDE = frozenset({"overrideProvider", "tagsAll"})
# A policy may be handed over as an object: it is sent as text.
_PLAIN = {bool: "bool", int: "int", float: "float", str: "string"}


@dataclass(frozen=True, slots=True)
class InputKind:
    """What an input is: a plain kind, a block, or a list or map of one of them."""

    name: str
    inside: InputKind | None = None
    block: type | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a block: its kind, and whether it must be given."""

    kind: InputKind
    required: bool


@functools.cache
def arguments(token: str) -> type | None:
    """Return the SDK's class of a type's inputs, or nothing where it has none."""
    module, _, rest = token.removeprefix("aws:").partition("/")
    package = getattr(pulumi_aws, _PACKAGES.get(module, module), None)
    name = rest.rpartition(":")[2]
    # So called where a block of another resource has the plain name.
    return getattr(package, f"{name}InitArgs", None) or getattr(package, f"{name}Args", None)


@functools.cache
def inputs_of(block: type) -> Mapping[str, Input]:
    """Return the inputs of a block by the names that a program gives them."""
    names = input_type_py_to_pulumi_names(block)
    return {
        names.get(name, name): Input(
            _kind(parameter.annotation, block), parameter.default is inspect.Parameter.empty
        )
        for name, parameter in inspect.signature(block).parameters.items()
    }


def _kind(annotation: Any, owner: type) -> InputKind:
    """Return the kind behind `pulumi.Input[Optional[...]]`."""
    for each in _alternatives(annotation):
        known = _one(each, owner)
        if known is not None:
            return known
    return InputKind("any")


def _alternatives(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        for each in typing.get_args(annotation):
            yield from _alternatives(each)
    else:
        yield annotation


def _one(annotation: Any, owner: type) -> InputKind | None:
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        annotation = _class_named(annotation, owner)
    origin = typing.get_origin(annotation)
    if annotation in _PLAIN:
        return InputKind(_PLAIN[annotation])
    if isinstance(annotation, type) and is_input_type(annotation):
        return InputKind("block", block=annotation)
    if isinstance(origin, type) and issubclass(origin, typing.Sequence):
        return InputKind("list", _kind(typing.get_args(annotation)[0], owner))
    if isinstance(origin, type) and issubclass(origin, typing.Mapping):
        return InputKind("map", _kind(typing.get_args(annotation)[1], owner))
    return None


def _class_named(name: str, owner: type) -> Any:
    module = importlib.import_module(owner.__module__)
    beside = importlib.import_module(f"{owner.__module__.rpartition('.')[0]}._inputs")
    return getattr(module, name, None) or getattr(beside, name, None)


def refusals(wanted: Wanted) -> Iterator[Refusal]:
    """Yield what the provider's schema turns down of a resource."""
    block = arguments(wanted.type)
    if block is None:
        return
    given = {key: value for key, value in wanted.inputs.items() if key not in _BESIDE}
    yield from _of_block(block, given, "")


def _of_block(block: type, given: Mapping[str, Any], path: str) -> Iterator[Refusal]:
    known = inputs_of(block)
    for key in given:
        if key not in known and not str(key).startswith("__"):
            yield _refusal(UNKNOWN, f'An argument named "{key}" is not expected here.', path, key)
    for key, each in known.items():
        value = given.get(key)
        if value is None:
            if each.required:
                message = f'The argument "{key}" is required, but no definition was found.'
                yield _refusal(MISSING, message, path, key)
        else:
            yield from _of_kind(each.kind, value, f"{path}.{key}".lstrip("."))


def _refusal(code: str, message: str, path: str, key: str = "") -> Refusal:
    at = f"{path}.{key}".strip(".")
    return Refusal("the provider's check", code, f"{at}: {message}", at.partition(".")[0])


def _of_kind(kind: InputKind, value: Any, path: str) -> Iterator[Refusal]:
    if isinstance(value, pulumi.Output):
        return
    if kind.block is not None and isinstance(value, Mapping):
        yield from _of_block(kind.block, value, path)
    elif kind.name == "list" and kind.inside and isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _of_kind(kind.inside, each, f"{path}.{number}")
    elif kind.name == "map" and kind.inside and isinstance(value, Mapping):
        for key, each in value.items():
            yield from _of_kind(kind.inside, each, f"{path}.{key}")
    elif not _fits(kind.name, value):
        message = f"A value is of another type or form than this input takes: a {kind.name}, and "
        message += f"not '{str(value)[:100]}'."
        yield _refusal(MISTYPED, message, path)


def _fits(kind: str, value: Any) -> bool:
    if value is None or kind == "any":
        return True
    if kind == "bool":
        return str(value).lower() in {"true", "false"}
    if kind in {"int", "float"}:
        try:
            number = float(value)
        except (TypeError, ValueError):
            return False
        return math.isfinite(number) and (kind == "float" or number.is_integer())
    # A policy may be handed over as an object: it is sent as text.
    return kind == "string" and not isinstance(value, list | tuple)
