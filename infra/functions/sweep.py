"""λ sweep: looks at everything every minute, and files what is over.

One that fails needs no dead letter, the next makes up for it. What the tick is allowed to change,
the sweep has no use for.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.cluster.operated import Operated
from core.settings.functions import SweepSettings
from infra import iam
from infra.functions import archive, rbac
from infra.functions.definition import Definition, Scope, look, write_incidents


def _may(scope: Scope) -> Sequence[iam.Statement]:
    account = scope.account
    bucket = archive.bucket_name(scope.cluster.prefix, account.account_id)
    filed = f"arn:{account.partition}:s3:::{bucket}/{archive.PREFIX}*"
    return [
        *write_incidents(scope),
        look(
            "autoscaling:DescribeAutoScalingGroups",
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceStatus",
        ),
        iam.Statement(sid="FileIncidents", actions=["s3:PutObject"], resources=[filed]),
    ]


def _rights(cluster: Operated) -> rbac.Rights:
    return rbac.Rights(
        group="stillwater:sweep",
        everywhere=[
            rbac.may("", ["nodes"], ["list"]),
            rbac.may("storage.k8s.io", ["csinodes"], ["list"]),
            *rbac.may_read_node_claims(cluster),
        ],
        inside=[rbac.may("", ["pods"], ["list"])],
    )


SWEEP = Definition(
    name="sweep",
    description="What no event told and no tick carries, and what is over",
    settings=SweepSettings,
    may=_may,
    own_settings=lambda cluster: {"tick_interval_seconds": cluster.timings.tick_interval_seconds},
    kubernetes=_rights,
    schedule=("rate(1 minute)", "wakes the sweep"),
)
