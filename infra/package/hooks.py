"""`Hooks` for programs in any language: the hooks on groups that are somebody else's.

Pulumi reads the annotations and the sentences below them into the schema, so annotations here are
types and never strings.
"""

import re
from collections.abc import Mapping
from typing import TypedDict

import pulumi

from core.constants import HOOKS
from infra.adopt import hooks
from infra.package import facts

TYPE = "stillwater:index:Hooks"
CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
# What Auto Scaling takes for a heartbeat.
SHORTEST_SECONDS, LONGEST_SECONDS = 30, 7200


class HooksArgs(TypedDict):
    scaling_groups: Mapping[str, pulumi.Input[str]]
    """Auto Scaling groups by name, each below a key of yours; another group's output may be a name.
    The keys decide which hooks there are and stand in their names."""
    cluster: str
    """Whose hooks these are: the value of the tag `stillwater:cluster` on each group."""
    heartbeat_timeout_seconds: int
    """How long a machine waits without a heartbeat before it is kept (ABANDON): 30 to 7200."""


class Hooks(pulumi.ComponentResource):
    """The lifecycle hooks `drain` and `gate` on Auto Scaling groups that stay as they are, and the
    tag that says whose they are.

    A hook without the functions that answer it keeps every machine that terminates: name those in
    `dependsOn`."""

    hook_names: pulumi.Output[list[str]]
    """What the hooks are called, in the order in which they are completed."""

    def __init__(
        self, name: str, args: HooksArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        seconds = facts.whole_number(
            args, "heartbeat_timeout_seconds", SHORTEST_SECONDS, LONGEST_SECONDS
        )
        hooks.Hooks(
            name,
            hooks.HooksArgs(
                scaling_groups=facts.by_key(args, "scaling_groups"),
                heartbeat_timeout_seconds=seconds,
                cluster=facts.text(args, "cluster", CLUSTER, "shop-orders"),
                answering=facts.before(opts),
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.hook_names = pulumi.Output.from_input(list(HOOKS))
        self.register_outputs({"hookNames": self.hook_names})
