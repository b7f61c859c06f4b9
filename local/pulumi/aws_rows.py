"""AWS types without code of their own: rows of adapters.toml, and those the store alone knows.

A row says which calls make its type in moto. moto holds some types, drops settings of others and
lacks the rest (research: moto-coverage); these have an id and an ARN, made from the URN.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from local.environment import FUNCTION_URL_PATH
from local.pulumi.aws_adapter import (
    ADAPTERS,
    EC2_TAGS,
    Adapter,
    Aws,
    TagCalls,
    has_changed,
    request,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.catalogue import TYPES
from local.values import Properties

Row = Mapping[str, Any]
# What a call has beside its parameters.
_OF_CALLS = frozenset({"call", "again", "when", "unless", "inputs", "there"})
_ALONE = re.compile(r"\{(\w+)(?:\[(\w+)\])?\}")


def filled(template: Any, known: Mapping[str, Any]) -> Any:
    """Return a template with what is known; one that is a single name keeps the value's type.

    >>> filled({"Ids": ["{id}"], "Days": "{kept[days]}"}, {"id": "a", "kept": {"days": 7}})
    {'Ids': ['a'], 'Days': 7}
    """
    if isinstance(template, Mapping):
        return {key: filled(each, known) for key, each in template.items()}
    if isinstance(template, list):
        return [filled(each, known) for each in template]
    if not isinstance(template, str):
        return template
    alone = _ALONE.fullmatch(template)
    if alone is None:
        return template.format_map(known)
    value = known.get(alone[1])
    return (value or {}).get(alone[2]) if alone[2] else value


class RowAdapter(Adapter):
    """A type that is a row."""

    def __init__(self, token: str, row: Row) -> None:
        self.token, self._row = token, row
        self.name_property = row.get("name")
        self.replaces = frozenset(row.get("replaces", ()))
        if tagging := row.get("tagging"):
            self.tagging = EC2_TAGS if tagging == "ec2" else TagCalls(**tagging)

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        known = {**_whose(aws), **inputs, "token": resource.token(32)}
        known |= self._made(aws, inputs, known)
        known["id"] = filled(self._row["id"], known)
        for number, further in enumerate(TYPES[self.token].calls[1:], start=1):
            if further.takes(inputs):
                self._again(aws, number, known, inputs)
        wanted = [each for each in self._calls("after", "settings") if _is_meant(each, inputs)]
        self._call(aws, wanted, known, inputs)
        return State(known["id"], filled(self._row.get("outputs", {}), known))

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        known = {**_known(aws, existing), **inputs, "was": existing.inputs}
        wanted = [
            each
            for each in self._calls("update", "settings")
            if has_changed(existing, inputs, *each.get("when", inputs))
        ]
        self._call(aws, wanted, known, inputs)
        super().update(aws, existing, inputs)
        if not self._row.get("put"):
            return {}
        return dict(filled(self._row.get("outputs", {}), known | self._made(aws, inputs, known)))

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        if "read" not in self._row:
            return {}
        (answer,) = self._call(aws, [self._row["read"]], _known(aws, existing), existing.inputs)
        return {} if answer.get(self._row["read"].get("there"), True) else None

    def delete(self, aws: Aws, existing: Existing) -> None:
        wanted = [each for each in self._calls("delete") if _is_meant(each, existing.inputs)]
        self._call(aws, wanted, _known(aws, existing), existing.inputs)

    def _calls(self, *kinds: str) -> list[Row]:
        return [call for kind in kinds for call in self._row.get(kind, ())]

    def _made(self, aws: Aws, inputs: Properties, known: Mapping[str, Any]) -> dict[str, Any]:
        """Make the type's first call; return what its answer says of the resource."""
        answer = self.make(aws, inputs, **filled(self._row.get("sent", {}), known))
        for part in filter(None, self._row.get("answer", "").split(".")):
            answer = answer[int(part) if part.isdecimal() else part]
        return dict(answer or {})

    def _again(self, aws: Aws, number: int, known: Mapping[str, Any], inputs: Properties) -> Any:
        """Make the catalogue's call of a number for a resource that is there."""
        return self.make(aws, inputs, number, **filled(self._row.get("further", {}), known))

    def _call(
        self, aws: Aws, calls: Iterable[Row], known: Mapping[str, Any], inputs: Properties
    ) -> list[Any]:
        answers = []
        for row in calls:
            if "again" in row:
                answers.append(self._again(aws, row["again"], known, inputs))
                continue
            service, _, name = row["call"].partition(".")
            client = aws.client(service)
            told = filled({k: v for k, v in row.items() if k not in _OF_CALLS}, known)
            if row.get("inputs"):
                operation = client.meta.method_to_api_mapping[name]
                told = {**request(client, operation, inputs), **told}
            answers.append(
                getattr(client, name)(**{k: v for k, v in told.items() if v is not None})
            )
        return answers


def _is_meant(call: Row, inputs: Properties) -> bool:
    is_set = "when" not in call or any(inputs.get(each) for each in call["when"])
    return is_set and not any(inputs.get(each) for each in call.get("unless", ()))


def _whose(aws: Aws) -> dict[str, str]:
    urls = f"{os.environ.get('AWS_ENDPOINT_URL', '')}{FUNCTION_URL_PATH}"
    return {"account": aws.account, "region": aws.region, "function_urls": urls}


def _known(aws: Aws, existing: Existing) -> dict[str, Any]:
    return {**_whose(aws), **existing.inputs, **existing.outputs, "id": existing.id}


# Properties that name a resource, in the order in which they are tried.
NAME_PROPERTIES = ("name", "bucket", "functionName", "clusterName", "alarmName", "addonName")


def service_of(resource_type: str) -> str:
    """Return the service of a type token: aws:eks/addon:Addon -> eks."""
    return resource_type.split(":")[1].partition("/")[0]


class StoredAdapter(Adapter):
    """A type that moto lacks: it has an id, an ARN and what the program said."""

    def __init__(self, row: Row) -> None:
        self.replaces = frozenset(row.get("replaces", ()))
        self._id = row.get("id")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        kind = resource.type.split("/")[-1].split(":")[0]
        name = next((str(inputs[key]) for key in NAME_PROPERTIES if inputs.get(key)), resource.name)
        if self._id is not None:
            identity = self._id.format_map({**inputs, "token": resource.token(17)})
        else:
            identity = name if inputs.get("name") else f"{name}-{resource.token()}"
        service = service_of(resource.type)
        arn = aws.arn(service, f"{kind}/{identity.replace(':', '/')}")
        return State(identity, {"arn": arn})


# A type that no row names.
STORED = StoredAdapter({})
ROWS: Mapping[str, Row] = tomllib.loads(Path(__file__).with_name("adapters.toml").read_text())
for token, row in ROWS.items():
    full = f"aws:{token}"
    ADAPTERS[full] = StoredAdapter(row) if row.get("stored") else RowAdapter(full, row)
