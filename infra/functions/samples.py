"""λ samples, every hour: it files what Prometheus remembers where the report's job reads it.

It stands beside the bucket, in the analytics layer, and only where a Prometheus is named. It asks
by GET alone, writes files and deletes none; old ones expire by the bucket's own rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from core import naming
from core.cluster.operated import Operated
from core.settings.volumes import SamplesSettings
from infra import buckets, iam
from infra.functions import prometheus, rbac
from infra.functions.definition import Definition, Scope, read_settings

# A day that nobody filed takes some minutes to catch up with.
TIMEOUT_SECONDS = 300


def _may(scope: Scope) -> Sequence[iam.Statement]:
    of = scope.account
    bucket = buckets.bucket_name(scope.cluster.prefix, "billing", of.account_id)
    arn, folder = f"arn:{of.partition}:s3:::{bucket}", naming.SAMPLES_FOLDER
    return [
        read_settings(scope),
        iam.Statement(
            sid="SeeWhatIsFiled",
            actions=["s3:ListBucket"],
            resources=[arn],
            conditions={"StringLike": {"s3:prefix": f"{folder}/*"}},
        ),
        iam.Statement(
            sid="FileSamples", actions=["s3:PutObject"], resources=[f"{arn}/{folder}/hour-*"]
        ),
        *prometheus.workspace(scope),
    ]


def _rights(cluster: Operated) -> rbac.Rights:
    inside, elsewhere = prometheus.service(cluster)
    return rbac.Rights(group="stillwater:samples", inside=inside, elsewhere=elsewhere)


SAMPLES = Definition(
    name="samples",
    description="Files what Prometheus remembers, for the report",
    settings=SamplesSettings,
    may=_may,
    own_settings=lambda cluster: {"prometheus": cluster.volumes and cluster.volumes.prometheus},
    kubernetes=_rights,
    schedule=("rate(1 hour)", "files the last hour's samples"),
    timeout_seconds=TIMEOUT_SECONDS,
)
