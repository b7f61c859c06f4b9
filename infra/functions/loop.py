"""The functions of the loop and how they are woken.

    events queue -> interruption -> ticks queue -> tick -> ticks queue ...
    every minute -> sweep        -> ticks queue
    a person     -> rotate       -> ticks queue

Permissions follow the list of calls in handlers/__init__.py. Tick, sweep and rotate speak to the
API server, tick and rotate to the brokers too, so they stand in the VPC and have access entries;
interruption starts faster and goes on working when the VPC's way out does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster import ClusterSpec, Maintenance
from core.constants import TICKS_MAX_RECEIVE_COUNT
from core.timing import drain_life_seconds
from infra import iam
from infra.functions.archive import Archive
from infra.functions.function import Function, FunctionArgs, Placement
from infra.functions.kept import Kept, keep
from infra.functions.ledger import Ledger
from infra.functions.packaging import Package
from infra.functions.queues import Queue, QueueArgs
from infra.functions.schedule import Schedule, wake
from infra.kafka import identity as kafka_identity
from infra.nodes.groups import group_arns

TYPE = "stillwater:infra:Functions"
# The sweep looks at everything: one that fails needs no dead letter, the next makes up for it.
SWEEP_SCHEDULE = "rate(1 minute)"
INTERRUPTION_BATCH = 10
# One incident per invocation: a slow one delays no other.
TICK_BATCH = 1
# The least AWS accepts is 2; the ledger's lease keeps two ticks from acting on one incident.
MAXIMUM_CONCURRENCY = 5
TICK_LOOKS = (
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeVolumes",
)
READ_QUEUE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")


@dataclass(frozen=True, kw_only=True)
class FunctionsArgs:
    spec: ClusterSpec
    account: iam.Account
    package: Package
    ledger: Ledger
    archive: Archive
    # None: Slack is off.
    stories_queue: Queue | None
    events_queue_arn: pulumi.Input[str]
    nth_queue_arn: pulumi.Input[str]
    nth_queue_url: pulumi.Input[str]
    eks_endpoint: pulumi.Input[str]
    eks_ca: pulumi.Input[str]
    bootstrap: pulumi.Input[str]
    placement: Placement


class Functions(pulumi.ComponentResource):
    """interruption, tick, sweep and rotate, by name."""

    functions: Mapping[str, Function]
    ticks_queue: Queue
    # What handlers.settings reads, for functions made elsewhere, too.
    environment: Mapping[str, pulumi.Input[str]]
    # What is too long for it, of all of them.
    kept: Kept

    def __init__(
        self, name: str, args: FunctionsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.ticks_queue = self._ticks_queue()
        self.environment = environment(args, self.ticks_queue.url)
        self.kept = keep(
            f"{name}-kept", args.ledger, "loop", {"STILLWATER_EKS_CA": args.eks_ca}, self
        )
        self.functions = {
            "interruption": self._function(
                "interruption", "What AWS announced becomes an incident", self._opening()
            ),
            "tick": self._function(
                "tick",
                "Observe an incident, decide, act, tick again",
                [*self._following(*TICK_LOOKS), *self._acting()],
                args.placement,
            ),
            "sweep": self._function(
                "sweep",
                "What no event told and no tick carries, and what is over",
                [
                    *self._following(
                        "ec2:DescribeInstances",
                        "ec2:DescribeInstanceStatus",
                        "ec2:DescribeAvailabilityZones",
                    ),
                    self._args.archive.may_write(),
                ],
                args.placement,
            ),
            "rotate": self._function(
                "rotate",
                "Plan, start and stop a rotation of nodes, when a person asks",
                self._planning(),
                args.placement,
            ),
        }
        self._feed("interruption", args.events_queue_arn, INTERRUPTION_BATCH)
        self._feed("tick", self.ticks_queue.arn, TICK_BATCH)
        asked = Schedule(
            prefix=args.spec.prefix,
            role="sweep",
            does="wakes the sweep",
            expression=SWEEP_SCHEDULE,
        )
        wake(f"{name}-sweep", asked, self.functions["sweep"], self)
        self.register_outputs({"ticks_queue_url": self.ticks_queue.url})

    def _ticks_queue(self) -> Queue:
        timings = self._args.spec.timings
        return Queue(
            f"{self._name}-ticks",
            QueueArgs(
                queue_name=naming.queue(self._args.spec.prefix, "ticks"),
                visibility_timeout_seconds=timings.queue_visibility_timeout_seconds,
                retention_seconds=timings.events_queue_retention_seconds,
                max_receive_count=TICKS_MAX_RECEIVE_COUNT,
            ),
            opts=self._child,
        )

    def _function(
        self,
        role: str,
        description: str,
        statements: Sequence[iam.Statement],
        placement: Placement | None = None,
    ) -> Function:
        return Function(
            f"{self._name}-{role}",
            FunctionArgs(
                function_name=naming.function(self._args.spec.prefix, role),
                description=description,
                handler=f"handlers.{role}.handler",
                package=self._args.package,
                timeout_seconds=self._args.spec.timings.lambda_timeout_seconds,
                # Without a place in the VPC, no function speaks to the API server.
                environment=self.environment
                if placement is None
                else {**self.environment, **self.kept.environment},
                after=[] if placement is None else [self.kept.item],
                statements=statements,
                account=self._args.account,
                placement=placement,
            ),
            opts=self._child,
        )

    def _opening(self) -> list[iam.Statement]:
        return [
            _read(self._args.events_queue_arn),
            *self._sending(),
            self._ledger("dynamodb:GetItem", "dynamodb:PutItem"),
            self._find_open(),
            _look("ec2:DescribeInstances", "ec2:DescribeVolumes", "ec2:DescribeAvailabilityZones"),
        ]

    def _following(self, *looks: str) -> list[iam.Statement]:
        return [
            *self._sending(),
            self._ledger("dynamodb:GetItem", "dynamodb:PutItem"),
            self._find_open(),
            _look("autoscaling:DescribeAutoScalingGroups", *looks),
        ]

    def _planning(self) -> list[iam.Statement]:
        return [
            _send("AskForATurn", self.ticks_queue.arn),
            self._ledger("dynamodb:GetItem", "dynamodb:PutItem"),
            self._find_open(),
            _look(
                "autoscaling:DescribeAutoScalingGroups",
                "ec2:DescribeInstances",
                "ec2:DescribeLaunchTemplateVersions",
            ),
        ]

    def _acting(self) -> list[iam.Statement]:
        return [
            _read(self.ticks_queue.arn),
            iam.Statement(
                sid="ForwardToTheTerminationHandler",
                actions=["sqs:SendMessage"],
                resources=[self._args.nth_queue_arn],
            ),
            iam.Statement(
                sid="HoldAndReleaseNodes",
                actions=[
                    "autoscaling:CompleteLifecycleAction",
                    "autoscaling:RecordLifecycleActionHeartbeat",
                    "autoscaling:SetDesiredCapacity",
                    "autoscaling:SetInstanceProtection",
                    "autoscaling:TerminateInstanceInAutoScalingGroup",
                ],
                resources=group_arns(self._args.spec, self._args.account),
            ),
        ]

    def _sending(self) -> list[iam.Statement]:
        statements = [_send("AskForATick", self.ticks_queue.arn)]
        if self._args.stories_queue is not None:
            statements.append(_send("AskForAStory", self._args.stories_queue.arn))
        return statements

    def _ledger(self, *actions: str) -> iam.Statement:
        return iam.Statement(
            sid="KeepTheLedger", actions=actions, resources=[self._args.ledger.table_arn]
        )

    def _find_open(self) -> iam.Statement:
        return iam.Statement(
            sid="FindOpenIncidents",
            actions=["dynamodb:Query"],
            resources=[self._args.ledger.open_index_arn],
        )

    def _feed(self, role: str, queue_arn: pulumi.Input[str], batch_size: int) -> None:
        function = self.functions[role]
        aws.lambda_.EventSourceMapping(
            f"{self._name}-{role}-source",
            event_source_arn=queue_arn,
            function_name=function.name,
            batch_size=batch_size,
            # One bad message must not bring the good ones of its batch back.
            function_response_types=["ReportBatchItemFailures"],
            scaling_config=aws.lambda_.EventSourceMappingScalingConfigArgs(
                maximum_concurrency=MAXIMUM_CONCURRENCY
            ),
            opts=self._child,
        )


def environment(
    args: FunctionsArgs, ticks_queue_url: pulumi.Input[str]
) -> dict[str, pulumi.Input[str]]:
    """Return the variables from which handlers.settings reads everything it needs."""
    spec, timings = args.spec, args.spec.timings
    stories = args.stories_queue
    return {
        **({} if stories is None else {"STILLWATER_STORIES_QUEUE_URL": stories.url}),
        "STILLWATER_ARCHIVE_BUCKET": args.archive.bucket,
        "STILLWATER_PREFIX": spec.prefix,
        "STILLWATER_CLUSTER": spec.name,
        "STILLWATER_NAMESPACE": spec.kubernetes.namespace,
        "STILLWATER_REGION": spec.region,
        "STILLWATER_LEDGER_TABLE": args.ledger.table_name,
        "STILLWATER_TICKS_QUEUE_URL": ticks_queue_url,
        "STILLWATER_NTH_QUEUE_URL": args.nth_queue_url,
        "STILLWATER_EKS_CLUSTER": spec.prefix,
        "STILLWATER_EKS_ENDPOINT": args.eks_endpoint,
        "STILLWATER_KAFKA_BOOTSTRAP": args.bootstrap,
        **kafka_identity.environment(spec),
        "STILLWATER_DRAIN_ROUTE": spec.drain_route,
        "STILLWATER_SCALE_IN": spec.scale_in,
        "STILLWATER_ISR_MARGIN": str(spec.isr_margin),
        "STILLWATER_TICK_INTERVAL_S": str(timings.tick_interval_seconds),
        "STILLWATER_HOLD_LIMIT_S": str(timings.hold_limit_seconds),
        "STILLWATER_HEARTBEAT_TIMEOUT_S": str(timings.hook_heartbeat_timeout_seconds),
        "STILLWATER_SESSION_TIMEOUT_S": str(timings.broker_session_timeout_seconds),
        "STILLWATER_POST_CONDITION_HOLD_S": str(timings.post_condition_hold_seconds),
        "STILLWATER_POST_CONDITION_WAIT_S": str(timings.post_condition_wait_seconds),
        "STILLWATER_HOOK_LIMIT_S": str(
            timings.hook_heartbeat_timeout_seconds * timings.hook_heartbeats
        ),
        "STILLWATER_FORWARD_AGAIN_S": str(
            timings.nth_drain_timeout_seconds + timings.nth_visibility_timeout_seconds
        ),
        "STILLWATER_DRAIN_LIFE_S": str(drain_life_seconds(timings)),
        "STILLWATER_PLANNED_MARGIN_S": str(timings.planned_margin_seconds),
        "STILLWATER_GATE": spec.gate,
        "STILLWATER_MAINTENANCE": _window(spec.maintenance),
    }


def _window(maintenance: Maintenance | None) -> str:
    """Return a window as handlers.settings reads it: sat,sun 180 120 (days, start, minutes)."""
    if maintenance is None:
        return "any"
    days = ",".join(maintenance.days)
    return f"{days} {maintenance.start_minute} {maintenance.duration_minutes}"


def _read(queue_arn: pulumi.Input[str]) -> iam.Statement:
    return iam.Statement(sid="ReadItsQueue", actions=READ_QUEUE, resources=[queue_arn])


def _send(sid: str, queue_arn: pulumi.Input[str]) -> iam.Statement:
    return iam.Statement(sid=sid, actions=["sqs:SendMessage"], resources=[queue_arn])


def _look(*actions: str) -> iam.Statement:
    # Describe calls of EC2 and Auto Scaling take no resource.
    return iam.Statement(sid="LookAround", actions=actions, resources=iam.ANY_RESOURCE)
