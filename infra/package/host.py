"""Serves the components to the engine, which asks on behalf of a program in any language.

The schema follows from the components' annotations; docs/reference keeps a copy of it.
"""

from __future__ import annotations

import inspect
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pulumi
from pulumi.errors import InputPropertiesError
from pulumi.provider import ConstructResult
from pulumi.provider import main as serve
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from core.ground.errors import StillwaterError
from infra.package.broker_nodes import BrokerNodes, Hooks
from infra.package.operations import EvictionGate, Operations
from infra.package.report import BillExport, Report

NAME = "stillwater"
DISTRIBUTION = "stillwater-kafka"
COMPONENTS: tuple[type[pulumi.ComponentResource], ...] = (
    BillExport,
    BrokerNodes,
    EvictionGate,
    Hooks,
    Operations,
    Report,
)


class Package(ComponentProvider):
    """Makes components; a mistake in what they are given is its sentence, without a traceback."""

    def __init__(self) -> None:
        super().__init__(list(COMPONENTS), NAME, version=_version())
        # Docstrings come as they are indented in the source.
        described = _unindent(json.loads(self.schema or "{}"))
        # Without them the SDK of Go names types that it does not have: those of a plain map.
        described["language"]["go"]["generateExtraInputTypes"] = True
        self.schema = json.dumps(described)

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        if missing := self._left_out(resource_type, inputs):
            raise InputPropertiesError(f"{', '.join(missing)}: required, and not given.", [])
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if isinstance(error.inner, StillwaterError):
                # Without a list, though an empty one, the SDK cannot answer.
                raise InputPropertiesError(str(error.inner), []) from None
            raise

    def _left_out(self, resource_type: str, inputs: pulumi.Inputs) -> list[str]:
        """Return the required arguments that a program of a language without types left out."""
        component = json.loads(self.schema or "{}")["resources"].get(resource_type, {})
        return [each for each in component.get("requiredInputs", []) if inputs.get(each) is None]


def schema() -> dict[str, Any]:
    """Return the package's schema, as `pulumi package get-schema` shows it."""
    described: dict[str, Any] = json.loads(Package().schema or "{}")
    return described


def main() -> None:
    """Serve until the engine is done; its arguments are the command line's."""
    serve(Package(), sys.argv[1:])


def _unindent(value: Any) -> Any:
    if isinstance(value, list):
        return [_unindent(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: inspect.cleandoc(each)
        if key == "description" and isinstance(each, str)
        else _unindent(each)
        for key, each in value.items()
    }


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # a checkout whose requirements alone are installed
        return "0.2.0"
