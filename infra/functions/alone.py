"""A function that carries no incidents: with its schedule, its settings and its way in."""

from __future__ import annotations

import pulumi

from infra.functions.access import NAMES, Names, grant
from infra.functions.definition import Definition
from infra.functions.function import LambdaFunction, Shared
from infra.functions.kept import keep
from infra.functions.schedule import wake
from infra.functions.settings import settings


class Alone(pulumi.ComponentResource):
    """One function, called by its own name."""

    function: LambdaFunction

    def __init__(
        self,
        definition: Definition,
        shared: Shared,
        *,
        below: str = "",
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        cluster = shared.scope.cluster
        role, name = definition.name, f"{below}{definition.name}"
        super().__init__(f"stillwater:infra:{role.title()}", name, None, opts)
        told = settings(definition, cluster, shared.late)
        kept = None
        if definition.kubernetes is not None:
            kept = keep(f"{name}-kept", role, shared.late["ledger_table"], told, self)
        self.function = shared.function(f"{name}-function", definition, told, kept, self)
        if role not in NAMES:
            names = Names(type="", component=name)
            grant(names, definition, cluster, self.function.role, parent=self)
        wake(name, definition, cluster.prefix, self.function, self)
        self.register_outputs({"name": self.function.name})
