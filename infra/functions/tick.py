"""λ tick: one turn of the loop; the function that acts on nodes.

Through the API server it reads the metrics of Kafka's own pods, each by name and port (ADR 0012).
It places the out-of-service taint on a node whose instance EC2 says has ended, deletes the
attachments such an instance left behind when its Node went first, and keeps a waiting replacement
from Cluster Autoscaler: RBAC knows no single taint or annotation, so it may patch nodes. Nodes are
drained by the node termination handler alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.cluster import ClusterSpec
from core.settings.functions import Tick
from infra import iam
from infra.functions import rbac
from infra.functions.definition import (
    Definition,
    Reads,
    Scope,
    ask_and_tell,
    find_open,
    keep_the_ledger,
    look,
    read_queue,
    send,
)
from infra.functions.settings import kafka_secrets
from infra.kafka.cluster import exporting_pods
from infra.nodes.groups import group_arns


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        *ask_and_tell(scope),
        keep_the_ledger(scope),
        find_open(scope),
        look(
            "autoscaling:DescribeAutoScalingGroups",
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceStatus",
            "ec2:DescribeVolumes",
        ),
        read_queue(scope, "ticks"),
        send(scope, "ForwardToTheTerminationHandler", "nth"),
        iam.Statement(
            sid="HoldAndReleaseNodes",
            actions=[
                "autoscaling:CompleteLifecycleAction",
                "autoscaling:RecordLifecycleActionHeartbeat",
                "autoscaling:SetDesiredCapacity",
                "autoscaling:SetInstanceProtection",
                "autoscaling:TerminateInstanceInAutoScalingGroup",
            ],
            resources=group_arns(scope.spec, scope.account),
        ),
    ]


def _rights(spec: ClusterSpec) -> rbac.Rights:
    return rbac.Rights(
        group="stillwater:handlers",
        everywhere=[
            rbac.may("", ["nodes"], ["get", "list", "patch"]),
            rbac.may("storage.k8s.io", ["csinodes", "volumeattachments"], ["list"]),
            rbac.may("storage.k8s.io", ["volumeattachments"], ["delete"]),
        ],
        inside=[
            rbac.may("", ["pods"], ["list"]),
            rbac.may("policy", ["poddisruptionbudgets"], ["list"]),
            *rbac.may_get("secrets", kafka_secrets(spec, "tick")),
            *rbac.may_read_metrics(exporting_pods(spec)),
        ],
    )


TICK = Definition(
    name="tick",
    description="Observe an incident, decide, act, tick again",
    settings=Tick,
    may=_may,
    kubernetes=_rights,
    # One incident per invocation: a slow one delays no other. The ledger's lease keeps two ticks
    # from acting on one incident.
    reads=Reads(queue="ticks", batch=1, at_once=5),
)
