"""Choose the layer by the stack's name and build it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pulumi

from core.cluster.adoption import Adoption, Level
from core.ground.errors import InvalidInput
from core.ground.naming import ANALYTICS, FOUNDATION, KAFKA, LAYERS, OPERATIONS, PLATFORM
from infra import spec
from stacks.layer import Layer
from stacks.layers import adopted, analytics, foundation, kafka, operations, platform

# The levels of adoption that are made.
BUILT = (Level.WATCH, Level.GATE, Level.ACT)
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


def _adopt(described: Adoption, layer: str) -> None:
    if layer != OPERATIONS:
        problem = (
            f"A cluster that exists has one layer, {OPERATIONS}, and this stack is {layer}; "
            f"nothing of {described.eks_cluster} is made here."
        )
        raise InvalidInput([problem])
    if described.level not in BUILT:
        levels = f"{', '.join(BUILT[:-1])} or {BUILT[-1]}"
        problem = (
            f"adopt.level is {described.level}, for which nothing is made; set it to {levels}, or "
            f"take the stack down with `pulumi destroy`."
        )
        raise InvalidInput([problem])
    adopted.build(described)


def main() -> None:
    """Build this stack's layer."""
    environment, layer = split(pulumi.get_stack())
    # A user's project may have any name; its settings are `stillwater:...` all the same.
    settings, root = pulumi.Config("stillwater"), Path(pulumi.get_root_directory())
    described = spec.adopted_description(settings, root)
    if described is not None:
        _adopt(described, layer)
        return
    BUILDERS[layer](Layer(spec.load(settings, environment, root), root))
