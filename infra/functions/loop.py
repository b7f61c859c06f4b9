"""The functions of the loop and how they are woken.

    events queue -> interruption -> ticks queue -> tick -> ticks queue ...
    every minute -> sweep        -> ticks queue
    a person     -> rotate       -> ticks queue

Tick, sweep and rotate speak to the API server, tick and rotate to the brokers too, so they stand in
the VPC and have access entries.

Wakes a function at fixed times: an EventBridge rule, its target, and the rule's right to invoke.

Nobody else gets that right by it: the permission names the rule.

Lets a function into the cluster, and gives it the rights its definition names there.

A function that carries no incidents: with its schedule, its settings and its way in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pulumi
import pulumi_aws as aws

from core.cluster.operated import Operated
from core.constants import TICKS_MAX_RECEIVE_COUNT
from infra.functions.catalogue import LOOP, TICK
from infra.functions.definition import Definition, RbacGroup
from infra.functions.function import LambdaFunction, Shared, feed, keep, settings
from infra.functions.termination import MessageQueue, work_queue


def wake(
    name: str,
    definition: Definition,
    prefix: str,
    function: LambdaFunction,
    parent: pulumi.Resource,
) -> None:
    """Have a function called on the schedule that its definition names, if any."""
    if definition.schedule is None:
        return
    child = pulumi.ResourceOptions(parent=parent)
    expression, does = definition.schedule
    rule = aws.cloudwatch.EventRule(
        f"{name}-schedule",
        # Rules that pass announcements on are named beside it: `-health` is one of them.
        name=f"{prefix}-{definition.name}-schedule",
        description=f"Stillwater {prefix}: {does}",
        schedule_expression=expression,
        opts=child,
    )
    permission = aws.lambda_.Permission(
        f"{name}-permission",
        action="lambda:InvokeFunction",
        function=function.name,
        principal="events.amazonaws.com",
        source_arn=rule.arn,
        opts=child,
    )
    aws.cloudwatch.EventTarget(
        f"{name}-target",
        rule=rule.name,
        target_id=definition.name,
        arn=function.arn,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[permission]),
    )


@dataclass(frozen=True, kw_only=True)
class Names:
    """What a function's way in is called in Pulumi's state.

    What is called otherwise there is taken away and made again, and a function is shut out between.
    """

    type: str
    component: str
    entry: str = "entry"
    everywhere: str = "cluster-role"


NAMES: Mapping[str, Names] = {
    "tick": Names(
        type="stillwater:infra:HandlerAccess", component="handlers-access", entry="tick-entry"
    ),
    "sweep": Names(
        type="stillwater:infra:SweepAccess", component="sweep-access", everywhere="role"
    ),
    "rotate": Names(type="stillwater:infra:RotateAccess", component="rotate-access"),
    "volumes": Names(type="stillwater:infra:VolumesAccess", component="volumes-access"),
}


class FunctionAccess(pulumi.ComponentResource):
    """An access entry of EKS, and RBAC roles for the group behind it."""

    def __init__(
        self,
        definition: Definition,
        cluster: Operated,
        role: aws.iam.Role,
        *,
        below: str = "",
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        known = NAMES[definition.name]
        names = replace(known, component=f"{below}{known.component}")
        super().__init__(names.type, names.component, None, opts)
        grant(names, definition, cluster, role, parent=self)
        self.register_outputs({})


def grant(
    names: Names,
    definition: Definition,
    cluster: Operated,
    role: aws.iam.Role,
    *,
    parent: pulumi.Resource,
) -> None:
    """Make the entry and the roles of a function below a component."""
    if definition.kubernetes is None:
        return
    name, rights = names.component, definition.kubernetes(cluster)
    called = cluster.group(rights.group)
    group = RbacGroup(name=called, role=called.replace(":", "-"), parent=parent)
    for limit in rights.limits:
        group.limit(f"{name}-{limit.resource}-limit", limit)
    group.enter(f"{name}-{names.entry}", cluster.eks_cluster, role)
    if rights.everywhere:
        group.everywhere(f"{name}-{names.everywhere}", rights.everywhere)
    for short, (namespace, rules) in rights.elsewhere.items():
        group.inside(f"{name}-{short}", namespace, rules)
    if rights.inside:
        group.inside(f"{name}-role", cluster.namespace, rights.inside)


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


TYPE = "stillwater:infra:Functions"


class LoopFunctions(pulumi.ComponentResource):
    """interruption, tick, sweep and rotate, by name."""

    functions: Mapping[str, LambdaFunction]
    ticks_queue: MessageQueue

    def __init__(
        self,
        name: str,
        shared: Shared,
        events_queue_arn: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
        *,
        definitions: Sequence[Definition] = LOOP,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        cluster, functions = shared.scope.cluster, dict[str, LambdaFunction]()
        self.ticks_queue = work_queue(
            # People send there, too: a tick says no more than that an incident is to be looked at.
            f"{name}-ticks",
            cluster,
            "ticks",
            TICKS_MAX_RECEIVE_COUNT,
            None,
            self,
        )
        late = {**shared.late, "ticks_queue_url": self.ticks_queue.url}
        told = {each.name: settings(each, cluster, late) for each in definitions}
        # What they keep is the same for all: the API server, pools' labels, Kafka's addresses.
        kept = keep(f"{name}-kept", "loop", late["ledger_table"], told[TICK.name], self)
        sources = {"events": events_queue_arn, "ticks": self.ticks_queue.arn}
        for each in definitions:
            called = f"{name}-{each.name}"
            function = shared.function(called, each, told[each.name], kept, self)
            functions[each.name] = function
            if each.reads is not None:
                feed(called, each, sources[each.reads.queue], function, self)
            wake(called, each, cluster.prefix, function, self)
        self.functions = functions
        self.register_outputs({"ticks_queue_url": self.ticks_queue.url})
