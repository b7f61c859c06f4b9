"""λ rotate: reads what a plan rests on, and changes nothing in the cluster.

It starts runs and answers people; whatever is done to nodes is done by the tick.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.cluster.operated import Operated
from core.settings.functions import RotateSettings
from infra import iam
from infra.functions import rbac
from infra.functions.definition import Definition, Scope, find_open, keep_the_ledger, look, send


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        send(scope, "AskForATurn", "ticks"),
        *keep_the_ledger(scope),
        find_open(scope),
        look(
            "autoscaling:DescribeAutoScalingGroups",
            "ec2:DescribeImages",
            "ec2:DescribeInstances",
            "ec2:DescribeLaunchTemplateVersions",
        ),
    ]


def _rights(cluster: Operated) -> rbac.Rights:
    return rbac.Rights(
        group="stillwater:rotate",
        everywhere=[
            rbac.may("", ["nodes"], ["list"]),
            rbac.may("storage.k8s.io", ["csinodes"], ["list"]),
            *rbac.may_read_node_claims(cluster),
        ],
        inside=[
            rbac.may("", ["pods"], ["list"]),
            *rbac.may_read_operator(cluster),
            *rbac.may_read_metrics(cluster),
            *rbac.may_get("secrets", cluster.secrets["rotate"]),
        ],
    )


ROTATE = Definition(
    name="rotate",
    description="Plan, start and stop a rotation of nodes, when a person asks",
    settings=RotateSettings,
    may=_may,
    kubernetes=_rights,
)
