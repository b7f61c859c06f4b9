"""Reads AWS for the doctor into a Snapshot: Describe, Get and List calls alone.

Every reader yields the parts it names as it gets them, so that a refusal costs only what comes
after it. docs/how-to/doctor.md lists the calls; a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from botocore.config import Config
from botocore.exceptions import ClientError

from cli.aws import filtered_pages, pages
from cli.target import Target
from core import naming
from core.checks.balancing import name_in
from core.checks.drift import Expectation
from core.constants import HOOKS
from core.model import snapshot
from handlers.adapters.calls import portions

T = TypeVar("T")
Found = tuple[str, Mapping[str, Any]]

# Load balancers answer questions about attributes one group and one listener at a time.
CONNECTIONS = 8
CLIENT = Config(
    connect_timeout=5,
    read_timeout=15,
    retries={"mode": "standard", "total_max_attempts": 5},
    max_pool_connections=4 * CONNECTIONS,
)
ZONE_TAG = f"{naming.NODE_TEMPLATE}/label/{naming.ZONE_LABEL}"
NAMES_PER_CALL = 50


class LiveAccount:
    """One account in one region, through the session of a target."""

    def __init__(self, target: Target, expected: Expectation) -> None:
        self._expected = expected.snapshot
        clients: dict[str, Any] = {
            service: target.session.client(
                service,
                endpoint_url=target.endpoint_url,
                config=CLIENT,
            )
            for service in ("autoscaling", "ec2", "elbv2", "sqs", "cloudwatch", "eks", "sts")
        }
        self._scaling, self._ec2 = clients["autoscaling"], clients["ec2"]
        self._balancing, self._sqs = clients["elbv2"], clients["sqs"]
        self._alarms, self._eks, self._sts = (clients[s] for s in ("cloudwatch", "eks", "sts"))

    def number(self) -> str:
        """Return the account's id; the call needs no permission."""
        return str(self._sts.get_caller_identity()["Account"])

    def eks_cluster(self, name: str) -> tuple[str, str]:
        """Return the endpoint and the certificate authority (base64) of an EKS cluster."""
        found = self._eks.describe_cluster(name=name)["cluster"]
        return str(found["endpoint"]), str(found["certificateAuthority"]["data"])

    def readers(self) -> list[tuple[tuple[str, ...], Callable[[], Iterator[Found]]]]:
        """Return each reader with the parts it yields."""
        return [
            (("groups",), self._groups),
            (("hooks",), self._hooks),
            (("balancers", "listeners"), self._balancer),
            (("target_groups",), self._target_groups),
            (("queues",), self._queues),
            (("alarms",), self._metric_alarms),
        ]

    def _groups(self) -> Iterator[Found]:
        groups = [
            group
            for names in portions(self._expected.groups or (), NAMES_PER_CALL)
            for group in pages(
                self._scaling,
                "describe_auto_scaling_groups",
                "AutoScalingGroups",
                AutoScalingGroupNames=names,
            )
        ]
        zones = self._zones({s for group in groups for s in _subnets(group)})
        yield "groups", {g["AutoScalingGroupName"]: _group(g, zones) for g in groups}

    def _zones(self, subnet_ids: set[str]) -> dict[str, str]:
        # By a filter, since naming a subnet that is gone would refuse the whole call.
        found = filtered_pages(self._ec2, "describe_subnets", "Subnets", "subnet-id", subnet_ids)
        return {subnet["SubnetId"]: subnet["AvailabilityZone"] for subnet in found}

    def _hooks(self) -> Iterator[Found]:
        groups = list(self._expected.groups or ())
        found = {}
        for group, hooks in zip(groups, _at_once(self._hooks_of, groups), strict=True):
            for hook in hooks:
                name = str(hook["LifecycleHookName"])
                if name in HOOKS:
                    found[snapshot.hook_of(name, group)] = snapshot.Hook(
                        transition=hook["LifecycleTransition"],
                        default_result=hook["DefaultResult"],
                        heartbeat_seconds=hook["HeartbeatTimeout"],
                    )
        yield "hooks", found

    def _hooks_of(self, group: str) -> list[Mapping[str, Any]]:
        try:
            answer = self._scaling.describe_lifecycle_hooks(AutoScalingGroupName=group)
        except ClientError as error:
            return _absent(error, "ValidationError", [])
        return list(answer["LifecycleHooks"])

    def _balancer(self) -> Iterator[Found]:
        (name,) = self._expected.balancers or ("",)
        try:
            balancers = self._balancing.describe_load_balancers(Names=[name])["LoadBalancers"]
        except ClientError as error:
            balancers = _absent(error, "LoadBalancerNotFound", [])
        yield (
            "balancers",
            {
                b["LoadBalancerName"]: snapshot.Balancer(
                    zones=frozenset(zone["ZoneName"] for zone in b["AvailabilityZones"])
                )
                for b in balancers
            },
        )
        listeners = [
            listener
            for balancer in balancers
            for listener in pages(
                self._balancing,
                "describe_listeners",
                "Listeners",
                LoadBalancerArn=balancer["LoadBalancerArn"],
            )
        ]
        read = _at_once(self._listener, listeners)
        yield (
            "listeners",
            {str(each["Port"]): seen for each, seen in zip(listeners, read, strict=True)},
        )

    def _listener(self, listener: Mapping[str, Any]) -> snapshot.BalancerListener:
        answer = self._balancing.describe_listener_attributes(ListenerArn=listener["ListenerArn"])
        idle = _pairs(answer["Attributes"]).get("tcp.idle_timeout.seconds")
        arns = [a["TargetGroupArn"] for a in listener["DefaultActions"] if "TargetGroupArn" in a]
        return snapshot.BalancerListener(
            target_group=name_in(arns[0]) if len(arns) == 1 else None,
            idle_timeout_seconds=None if idle is None else int(idle),
        )

    def _target_groups(self) -> Iterator[Found]:
        # All of the region's: naming one that is gone would refuse the whole call.
        every = pages(self._balancing, "describe_target_groups", "TargetGroups")
        wanted = self._expected.target_groups or {}
        groups = [group for group in every if group["TargetGroupName"] in wanted]
        read = _at_once(self._target_group, groups)
        yield (
            "target_groups",
            {g["TargetGroupName"]: seen for g, seen in zip(groups, read, strict=True)},
        )

    def _target_group(self, group: Mapping[str, Any]) -> snapshot.TargetGroup:
        answer = self._balancing.describe_target_group_attributes(
            TargetGroupArn=group["TargetGroupArn"]
        )
        attributes = _pairs(answer["Attributes"])
        failover = "target_group_health.dns_failover.minimum_healthy_targets.count"
        return snapshot.TargetGroup(
            interval_seconds=group["HealthCheckIntervalSeconds"],
            timeout_seconds=group["HealthCheckTimeoutSeconds"],
            healthy_threshold=group["HealthyThresholdCount"],
            unhealthy_threshold=group["UnhealthyThresholdCount"],
            deregistration_seconds=int(attributes["deregistration_delay.timeout_seconds"]),
            connection_termination=attributes.get(
                "deregistration_delay.connection_termination.enabled", "none"
            ),
            cross_zone=attributes.get("load_balancing.cross_zone.enabled", "none"),
            dns_failover=attributes.get(failover, "none"),
        )

    def _queues(self) -> Iterator[Found]:
        names = list(self._expected.queues or ())
        read = zip(names, _at_once(self._queue, names), strict=True)
        yield "queues", {name: queue for name, queue in read if queue is not None}

    def _queue(self, name: str) -> snapshot.Queue | None:
        try:
            url = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
        except self._sqs.exceptions.QueueDoesNotExist:
            # By its class: the code is the query protocol's, or JSON's, as the endpoint pleases.
            return None
        found = self._sqs.get_queue_attributes(
            QueueUrl=url,
            AttributeNames=["MessageRetentionPeriod", "VisibilityTimeout", "RedrivePolicy"],
        )["Attributes"]
        redrive = json.loads(found.get("RedrivePolicy") or "{}")
        dead_letters = str(redrive.get("deadLetterTargetArn", "")).rpartition(":")[2]
        # Nobody receives from dead letters but a person: any visibility timeout will do.
        wanted = (self._expected.queues or {})[name].visibility_seconds
        return snapshot.Queue(
            retention_seconds=int(found["MessageRetentionPeriod"]),
            visibility_seconds=None if wanted is None else int(found["VisibilityTimeout"]),
            dead_letters=dead_letters or None,
            max_receive_count=int(redrive["maxReceiveCount"]) if redrive else None,
        )

    def _metric_alarms(self) -> Iterator[Found]:
        yield (
            "alarms",
            {
                alarm["AlarmName"]: snapshot.Alarm(
                    acts=bool(alarm["ActionsEnabled"] and alarm["AlarmActions"])
                )
                for names in portions(self._expected.alarms or (), NAMES_PER_CALL)
                for alarm in pages(
                    self._alarms, "describe_alarms", "MetricAlarms", AlarmNames=names
                )
            },
        )


def _group(group: Mapping[str, Any], zones: Mapping[str, str]) -> snapshot.Group:
    policy = group.get("InstanceMaintenancePolicy") or {}
    triggers = (group.get("InstanceLifecyclePolicy") or {}).get("RetentionTriggers") or {}
    tags = {tag["Key"]: tag["Value"] for tag in group.get("Tags") or ()}
    return snapshot.Group(
        minimum=group["MinSize"],
        maximum=group["MaxSize"],
        zones=frozenset(zones.get(subnet, subnet) for subnet in _subnets(group)),
        zone_tag=tags.get(ZONE_TAG),
        on_abandon=triggers.get("TerminateHookAbandon"),
        healthy_percent=(
            (policy["MinHealthyPercentage"], policy["MaxHealthyPercentage"]) if policy else None
        ),
        suspended=frozenset(p["ProcessName"] for p in group.get("SuspendedProcesses") or ()),
    )


def _subnets(group: Mapping[str, Any]) -> list[str]:
    return [subnet for subnet in (group.get("VPCZoneIdentifier") or "").split(",") if subnet]


def _pairs(attributes: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {pair["Key"]: pair["Value"] for pair in attributes}


def _absent(error: ClientError, code: str, instead: T) -> T:
    """Return `instead` for the answer that there is no such thing; raise any other."""
    if error.response["Error"]["Code"] == code:
        return instead
    raise error


def _at_once(read: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return list(pool.map(read, items))
