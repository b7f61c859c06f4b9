"""Makes a cluster's functions: those of the loop, those that stand beside it, and their ways.

    events queue -> interruption -> ticks queue -> tick -> ticks queue ...
    every minute -> sweep        -> ticks queue
    a person     -> rotate       -> ticks queue
    ledger       -> stories queue -> slack

A function with rights in the cluster stands in the VPC and has an access entry. A security group
accepts nothing; what it may reach, the load balancer and the API server must allow. A schedule's
permission names its rule, so nobody else may call by it. Whoever writes to the ledger sends a
message for Slack and goes on: λ slack alone knows the token, and Slack being slow, strict or down
is felt there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pulumi
import pulumi_aws as aws

from core.cluster.operated import Operated
from core.ground.constants import STORIES_MAX_RECEIVE_COUNT, TICKS_MAX_RECEIVE_COUNT
from infra.functions.catalogue import SLACK, TICK, carrying
from infra.functions.definition import Definition, RbacGroup, Scope
from infra.functions.function import LambdaFunction, Shared, feed, keep, settings
from infra.functions.packaging import FunctionPackage
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
        kept = None
        if definition.kubernetes is not None:
            told = settings(definition, cluster, shared.late)
            kept = keep(f"{name}-kept", role, shared.late["ledger_table"], told, self)
        self.function = LambdaFunction(
            f"{name}-function", definition, shared, kept, pulumi.ResourceOptions(parent=self)
        )
        if role not in NAMES:
            names = Names(type="", component=name)
            grant(names, definition, cluster, self.function.role, parent=self)
        wake(name, definition, cluster.prefix, self.function, self)
        self.register_outputs({"name": self.function.name})


LOOP_TYPE = "stillwater:infra:Functions"


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
    ) -> None:
        super().__init__(LOOP_TYPE, name, None, opts)
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
        shared = replace(shared, late=late)
        # What they keep is the same for all: the API server, pools' labels, Kafka's addresses.
        kept = keep(
            f"{name}-kept", "loop", late["ledger_table"], settings(TICK, cluster, late), self
        )
        sources = {"events": events_queue_arn, "ticks": self.ticks_queue.arn}
        for each in carrying(cluster):
            called = f"{name}-{each.name}"
            child = pulumi.ResourceOptions(parent=self)
            function = LambdaFunction(called, each, shared, kept, child)
            functions[each.name] = function
            if each.reads is not None:
                feed(called, each, sources[each.reads.queue], function, self)
            wake(called, each, cluster.prefix, function, self)
        self.functions = functions
        self.register_outputs({"ticks_queue_url": self.ticks_queue.url})


STORIES_TYPE = "stillwater:infra:Stories"


class Stories(pulumi.ComponentResource):
    """The queue, and the function: it reads incidents, keeps threads and knows one secret."""

    queue: MessageQueue
    function: LambdaFunction

    def __init__(
        self,
        name: str,
        scope: Scope,
        package: FunctionPackage,
        table_name: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(STORIES_TYPE, name, None, opts)
        child, cluster = pulumi.ResourceOptions(parent=self), scope.cluster
        self.queue = work_queue(
            f"{name}-queue",
            cluster,
            "stories",
            STORIES_MAX_RECEIVE_COUNT,
            [scope.account.our_roles(cluster.prefix)],
            self,
        )
        late = {"ledger_table": table_name, "stories_queue_url": self.queue.url}
        shared = Shared(scope=scope, package=package, late=late)
        self.function = LambdaFunction(f"{name}-slack", SLACK, shared, opts=child)
        feed(f"{name}-slack", SLACK, self.queue.arn, self.function, self)
        self.register_outputs({"queue_url": self.queue.url})


NETWORK_TYPE = "stillwater:infra:HandlerNetwork"
HTTPS = 443
ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class HandlerNetworkArgs:
    prefix: str
    vpc_id: pulumi.Input[str]
    cluster_security_group_id: pulumi.Input[str]
    load_balancer_security_group_id: pulumi.Input[str]
    # Ports of the load balancer, first to last.
    advertised_ports: tuple[int, int]


class HandlerNetwork(pulumi.ComponentResource):
    """A security group that reaches the API server, the brokers and AWS, and is reached by none."""

    security_group_id: pulumi.Output[str]

    def __init__(
        self, name: str, args: HandlerNetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(NETWORK_TYPE, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        group = aws.ec2.SecurityGroup(
            f"{name}-group",
            name=f"{args.prefix}-handlers",
            description="Functions that speak to the API server and the brokers",
            vpc_id=args.vpc_id,
            opts=child,
        )
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-to-https",
            security_group_id=group.id,
            description="AWS, Slack and the API server",
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            # AWS's APIs and Slack have no addresses that a rule could name.
            cidr_ipv4=ANYWHERE,
            opts=child,
        )
        first, last = args.advertised_ports
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-to-kafka",
            security_group_id=group.id,
            description="Brokers through the load balancer",
            ip_protocol="tcp",
            from_port=first,
            to_port=last,
            referenced_security_group_id=args.load_balancer_security_group_id,
            opts=child,
        )
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-cluster-from-https",
            security_group_id=args.cluster_security_group_id,
            description="Functions of Stillwater to the API server",
            referenced_security_group_id=group.id,
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            opts=child,
        )
        self.security_group_id = group.id
        self.register_outputs({"security_group_id": self.security_group_id})
