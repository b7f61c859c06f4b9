"""Names the API calls behind each resource type, and turns a resource's inputs into their members.

A type's inputs mostly bear the names of its create call's members in camel case; where pulumi-aws
spells one otherwise it is renamed, and what no call takes stands under `apart` with the reason.
A type that is in no table is refused by name: nothing is let through because nobody looked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore import xform_name

from local.refusals.documents import text
from local.refusals.model import breaches, input_shape
from local.refusals.refusal import Refusal, Wanted


def _scalar(kind: str, value: Any) -> Any:
    if kind == "boolean":
        return value if isinstance(value, bool) else str(value).lower() == "true"
    if kind in {"integer", "long"}:
        return int(value)
    if kind in {"float", "double"}:
        return float(value)
    if kind == "string" and isinstance(value, Mapping | list):
        return json.dumps(value)
    if kind == "string":
        return value if isinstance(value, str) else str(value).lower()
    return value


def coerce(shape: Any, value: Any) -> Any:
    """Turn a Pulumi value into what an API's shape wants, by the API's own description.

    Names match without case, values take the shape's type ("true" becomes True, a document its
    text), of a block that the provider takes a list of, the API wants the one, and what it does not
    know is left out: Pulumi's resources carry settings of several calls.
    """
    if shape.type_name == "structure" and isinstance(value, list) and value:
        value = value[0]
    if shape.type_name == "structure" and isinstance(value, Mapping):
        members = {name.lower(): name for name in shape.members}
        found: dict[str, Any] = {}
        for key, item in value.items():
            name = members.get(key.lower())
            if name is not None and item is not None:
                found[name] = coerce(shape.members[name], item)
        return found
    if shape.type_name == "list":
        items = value if isinstance(value, list) else [value]
        return [coerce(shape.member, item) for item in items if item is not None]
    if shape.type_name == "map" and isinstance(value, Mapping):
        return {str(k): coerce(shape.value, item) for k, item in value.items()}
    return _scalar(shape.type_name, value)


Parameters = dict[str, Any]
Build = Callable[[Mapping[str, Any]], Parameters]


@dataclass(frozen=True, kw_only=True)
class TypeCall:
    """One operation: which inputs it takes under another name, and which it takes rebuilt."""

    service: str
    operation: str
    # Input -> member.
    names: Mapping[str, str] = field(default_factory=dict)
    # Input -> where it stands within a member: "Attributes.Policy".
    inside: Mapping[str, str] = field(default_factory=dict)
    # Inputs that `inside` places, or that `build` has read.
    built: frozenset[str] = frozenset()
    build: Build | None = None
    # Asked for only where one of these inputs is set.
    where: frozenset[str] = frozenset()
    # What EC2 calls the resource, where it takes tags as those of a kind.
    tagged: str = ""
    # What is sent where no input says it.
    given: Mapping[str, Any] = field(default_factory=dict)

    def takes(self, inputs: Mapping[str, Any]) -> bool:
        return not self.where or any(inputs.get(name) not in (None, [], {}) for name in self.where)

    def parameters(self, wanted: Wanted) -> Parameters:
        """Return the call's parameters as boto3 would take them."""
        shape = input_shape(self.service, self.operation)
        given: dict[str, Any] = {
            self.names.get(key, key): value
            for key, value in wanted.inputs.items()
            if key not in self.built and key not in {"tags", "tagsAll"}
        }
        for key, path in self.inside.items():
            if wanted.inputs.get(key) is not None:
                member, _, name = path.partition(".")
                given.setdefault(member, {})[name] = wanted.inputs[key]
        rebuilt = self.build(wanted.inputs) if self.build is not None else {}
        # What a build makes of tags stands before the resource's own: a group's tag is one itself.
        tags = _tags(shape, wanted.tags, self.tagged) if wanted.tags else {}
        parameters = {**self.given, **coerce(shape, given), **tags, **rebuilt}
        return {key: value for key, value in parameters.items() if value is not None}

    def make(self, client: Any, wanted: Wanted, **more: Any) -> Any:
        """Make the call through boto3, with `more` over its parameters; return the answer."""
        made = getattr(client, xform_name(self.operation))
        return made(**{**self.parameters(wanted), **more})


@dataclass(frozen=True, kw_only=True)
class TypeCalls:
    """How a type is made: its calls, and the inputs that none of them takes."""

    calls: tuple[TypeCall, ...]
    # Input -> why no call of ours has it.
    apart: Mapping[str, str] = field(default_factory=dict)


def _tags(shape: Any, tags: Mapping[str, str], kind: str) -> Parameters:
    """Return tags as an operation spells them; nothing where it takes none."""
    for name in ("Tags", "tags", "ResourceTags"):
        if name not in shape.members:
            continue
        taken = shape.members[name]
        if taken.type_name == "map":
            return {name: dict(tags)}
        if taken.type_name == "list":
            key, value = _spelling(taken.member)
            return {name: [{key: k, value: v} for k, v in tags.items()]}
    if "TagSpecifications" in shape.members:
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": listed}]}
    return {}


def _spelling(tag: Any) -> tuple[str, str]:
    key = next(name for name in tag.members if name.lower().endswith("key"))
    value = next(name for name in tag.members if name.lower().endswith("value"))
    return key, value


# A builder, and which inputs it reads, by its name.
BUILDERS: dict[str, tuple[Build, frozenset[str]]] = {}


def reads(*inputs: str) -> Callable[[Build], Build]:
    """Enter a builder under its function's name, and say which inputs it has read."""

    def enter_builder(build: Build) -> Build:
        BUILDERS[build.__name__] = (build, frozenset(inputs))
        return build

    return enter_builder


TYPES: dict[str, TypeCalls] = {}


def enter(token: str, told: Mapping[str, Any]) -> None:
    """Enter a type as the catalogue has it: its calls, and what stands apart."""
    calls = tuple(map(_call, told["calls"]))
    TYPES[f"aws:{token}"] = TypeCalls(calls=calls, apart=told.get("apart", {}))


def _call(told: Mapping[str, Any]) -> TypeCall:
    service, _, operation = told["call"].partition(".")
    build, read = BUILDERS[told["build"]] if "build" in told else (None, frozenset())
    return TypeCall(
        service=service,
        operation=operation,
        names=told.get("names", {}),
        inside=told.get("inside", {}),
        built=read | {*told.get("read", ()), *told.get("inside", ())},
        build=build,
        where=frozenset(told.get("where", ())),
        tagged=told.get("tagged", ""),
        given=told.get("given", {}),
    )


def refusals(wanted: Wanted) -> Iterator[Refusal]:
    """Yield what the models of a resource's calls rule out."""
    for each in TYPES[wanted.type].calls:
        if each.takes(wanted.inputs):
            yield from breaches(each.service, each.operation, each.parameters(wanted))


Inputs = Mapping[str, Any]


def pick(inputs: Inputs, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the inputs that are given, under their API names: {"cidrBlock": "CidrBlock"}."""
    return {member: inputs[key] for key, member in names.items() if inputs.get(key) is not None}


def attributes(inputs: Inputs, names: Mapping[str, str]) -> dict[str, str]:
    """Return inputs as a service's attributes, by the names it has for them: every value a text."""
    return {member: text(value) for member, value in pick(inputs, names).items()}
