"""Choose the layer by the stack's name and build it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pulumi

from core.errors import InvalidInput
from core.naming import ANALYTICS, FOUNDATION, KAFKA, LAYERS, OPERATIONS, PLATFORM
from infra import spec
from stacks.layer import Layer
from stacks.layers import analytics, foundation, kafka, operations, platform

BUILDERS: Mapping[str, Callable[[Layer], None]] = {
    FOUNDATION: foundation.build,
    PLATFORM: platform.build,
    KAFKA: kafka.build,
    OPERATIONS: operations.build,
    ANALYTICS: analytics.build,
}


def split(stack: str) -> tuple[str, str]:
    """Return environment and layer of a stack's name: `prod-kafka` -> (prod, kafka)."""
    environment, _, layer = stack.rpartition("-")
    if not environment or layer not in BUILDERS:
        problem = (
            f"Stack {stack!r} names no layer: call it <environment>-<layer>, where layer is one "
            f"of {', '.join(LAYERS)}."
        )
        raise InvalidInput([problem])
    return environment, layer


def main() -> None:
    """Build this stack's layer."""
    environment, layer = split(pulumi.get_stack())
    # A user's project may have any name; its settings are `stillwater:...` all the same.
    settings, root = pulumi.Config("stillwater"), Path(pulumi.get_root_directory())
    BUILDERS[layer](Layer(spec.load(settings, environment, root)))
