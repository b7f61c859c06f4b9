"""The operations layer of one Kafka that exists, by the names and ids of what is there.

    EventBridge rules -> events queue -> interruption -> ticks queue -> tick -> ledger, thread

At level `watch` everything here is made beside what is theirs and nothing of theirs is changed: the
functions' rights say so, which tests/unit/infra/test_adopted.py counts one by one. At `gate` an
eviction gate answers beside them. At `act` the groups that were named get hooks and a tag, as
resources of their own, unless another Stillwater manages them, and a termination handler of ours
stands beside theirs where the description asks for one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pulumi
import pulumi_aws as aws

from core.cluster.operated import Operated
from core.ground import naming
from core.ground.constants import HOOKS
from core.ground.errors import InvalidInput
from core.ground.naming import CLUSTER_TAG
from infra import iam, pods
from infra.alerts.topic import AlertTopic
from infra.charts.nth import NodeTerminationHandler, NodeTerminationHandlerArgs
from infra.functions import packaging
from infra.functions.catalogue import alone, carrying
from infra.functions.definition import Scope
from infra.functions.function import (
    ArchiveBucket,
    FunctionPlacement,
    LedgerTable,
    Shared,
    server_addresses,
)
from infra.functions.loop import NAMES, Alone, FunctionAccess, LoopFunctions, Stories
from infra.functions.termination import Group, Termination, TerminationArgs
from infra.gate import EvictionGate
from infra.nodes.groups import Hooks, HooksArgs


def refuse_others(groups: Sequence[str], ours: Collection[str], opts: pulumi.InvokeOptions) -> None:
    """Raise InvalidInput for groups whose tag names neither of `ours`."""
    tags = {name: aws.autoscaling.get_group(name=name, opts=opts).tags for name in groups}
    owners = {
        name: tag.value for name, found in tags.items() for tag in found if tag.key == CLUSTER_TAG
    }
    problems = [
        f"Auto Scaling group {name} has the tag {CLUSTER_TAG}={owner}: another Stillwater manages "
        f"it; leave it to that one, or take it out of scaling_groups."
        for name, owner in owners.items()
        if owner not in ours
    ]
    if problems:
        raise InvalidInput(problems)


class IncidentFunctions:
    """Ledger, archive, alarms, the functions and the eviction gate, of our own stacks and beside
    a cluster that exists; `below` begins their names in Pulumi's state.
    """

    alerts_topic: pulumi.Output[str] | None = None

    def __init__(
        self,
        below: str,
        shared: Shared,
        events_queue_arn: pulumi.Input[str],
        *,
        makes_gate: bool = True,
        aws_opts: pulumi.ResourceOptions,
        both_opts: pulumi.ResourceOptions,
    ) -> None:
        scope, cluster = shared.scope, shared.scope.cluster
        self.ledger = LedgerTable(f"{below}ledger", cluster, opts=aws_opts)
        self.archive = ArchiveBucket(f"{below}archive", scope, opts=aws_opts)
        table = self.ledger.table_name
        late = {**shared.late, "ledger_table": table, "archive_bucket": self.archive.bucket}
        if cluster.slack is not None:
            stories = Stories(f"{below}stories", scope, shared.package, table, opts=aws_opts)
            late["stories_queue_url"] = stories.queue.url
        if cluster.alerts.enabled:
            self.alerts_topic = AlertTopic(f"{below}alerts", scope, opts=aws_opts).topic_arn
            late["alerts_topic_arn"] = self.alerts_topic
        shared = replace(shared, late=late)
        self.handlers = LoopFunctions(f"{below}handlers", shared, events_queue_arn, opts=aws_opts)
        self.functions = {
            **self.handlers.functions,
            **{
                each.name: Alone(each, shared, below=below, opts=both_opts).function
                for each in alone(cluster)
            },
        }
        self.access = {
            each.name: FunctionAccess(
                each, cluster, self.functions[each.name].role, below=below, opts=both_opts
            )
            for each in (*carrying(cluster), *alone(cluster))
            if each.name in NAMES
        }
        if cluster.eviction_gate is not None and makes_gate:
            late["ticks_queue_url"] = self.handlers.ticks_queue.url
            EvictionGate(f"{below}gate", scope, late, opts=both_opts)


TYPE = "stillwater:infra:Operations"


@dataclass(frozen=True, kw_only=True)
class OperationsArgs:
    """One Kafka, where its API server is, and where the functions stand."""

    cluster: Operated
    account: iam.Account
    # Its Auto Scaling groups, as EventBridge matches their names.
    groups: Sequence[Group]
    endpoint: pulumi.Input[str]
    # The API server's authority, as EKS gives it: base64.
    authority: pulumi.Input[str]
    # HOST:PORT, several with commas.
    bootstrap: str
    subnet_ids: Sequence[pulumi.Input[str]]
    security_group_ids: Sequence[pulumi.Input[str]]
    # An eviction gate that the description has may be made elsewhere.
    makes_gate: bool = True


class Operations(pulumi.ComponentResource):
    """Ledger, queues, rules and functions; needs an AWS and a Kubernetes provider."""

    ledger_table: pulumi.Output[str]
    events_queue_url: pulumi.Output[str]
    ticks_queue_url: pulumi.Output[str]
    incidents_bucket: pulumi.Output[str]

    def __init__(
        self, name: str, args: OperationsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        cluster, child = args.cluster, pulumi.ResourceOptions(parent=self)
        announced = Termination(
            f"{name}-termination",
            TerminationArgs(
                prefix=cluster.prefix,
                account=args.account,
                groups=args.groups,
                # Who watches hears of a machine in whosever hook it waits; who acts, in ours.
                hooks=HOOKS if cluster.acts else (),
                timings=cluster.timings,
                drain_route="held",
                handler=cluster.installs_handler,
            ),
            opts=child,
        )
        late = server_addresses(cluster.eks_cluster, args.endpoint, args.authority, args.bootstrap)
        if cluster.installs_handler:
            late = {**late, "nth_queue_url": announced.handlers_queue.url}
        made = IncidentFunctions(
            f"{name}-",
            Shared(
                scope=Scope(cluster=cluster, account=args.account),
                package=packaging.build(),
                late=late,
                placement=FunctionPlacement(
                    subnet_ids=args.subnet_ids, security_group_ids=args.security_group_ids
                ),
            ),
            announced.events_queue.arn,
            makes_gate=args.makes_gate,
            aws_opts=child,
            both_opts=child,
        )
        drains = [_handler(name, args, announced, child)] if cluster.installs_handler else []
        if cluster.acts:
            Hooks(
                f"{name}-hooks",
                HooksArgs(
                    scaling_groups={group: group for group in cluster.scaling_groups},
                    heartbeat_timeout_seconds=cluster.timings.hook_heartbeat_timeout_seconds,
                    cluster=cluster.prefix,
                    answering=[made.handlers, *made.access.values(), *drains],
                ),
                opts=child,
            )
        self.ledger_table = made.ledger.table_name
        self.events_queue_url = announced.events_queue.url
        self.ticks_queue_url = made.handlers.ticks_queue.url
        self.incidents_bucket = pulumi.Output.from_input(made.archive.bucket)
        self.register_outputs(
            {
                "ledger_table": self.ledger_table,
                "events_queue_url": self.events_queue_url,
                "ticks_queue_url": self.ticks_queue_url,
            }
        )


def _handler(
    name: str, args: OperationsArgs, announced: Termination, opts: pulumi.ResourceOptions
) -> NodeTerminationHandler:
    """Install a termination handler that hears what the tick forwards, and nothing else."""
    cluster = args.cluster
    return NodeTerminationHandler(
        f"{name}-nth",
        NodeTerminationHandlerArgs(
            prefix=cluster.prefix,
            region=cluster.region,
            eks_cluster=cluster.eks_cluster,
            queue_url=announced.handlers_queue.url,
            queue_arn=announced.handlers_queue.arn,
            group_arns=[args.account.group_arn(group) for group in cluster.scaling_groups],
            timings=cluster.timings,
            drain_route="held",
            webhook=None,
            release=naming.adopted_handler(cluster.prefix),
            managed_tag=None,
            affinity=pods.off_kafkas_machines(cluster.pool_labels or {}),
        ),
        opts=opts,
    )
