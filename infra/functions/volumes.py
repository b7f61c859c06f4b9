"""λ volumes: every five minutes it looks at Kafka's volumes and decides what becomes of them.

It follows no incident, writes items of its own in the ledger's table, and alone may read metrics.
In the cluster it patches no claim and no volume: Strimzi writes the one, the EBS driver the other,
and whoever wrote beside them would be undone, or would undo.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.cluster.operated import Operated
from core.incidents.levels import OWN
from core.settings.volumes import VolumesSettings
from infra import iam
from infra.functions import prometheus, rbac
from infra.functions.definition import (
    Definition,
    Scope,
    find_open,
    look,
    on_items,
    read_settings,
)

# The ledger's items of this function: handlers.store.volume_records.
KEYS = "volume#*"


def _may(scope: Scope) -> Sequence[iam.Statement]:
    rotation = f"rotation#{scope.cluster.name}"
    return [
        look(
            "cloudwatch:GetMetricData",
            "ec2:DescribeInstances",
            "ec2:DescribeVolumes",
            "ec2:DescribeVolumesModifications",
        ),
        on_items(scope, "RememberVolumes", ["GetItem", "PutItem"], KEYS),
        read_settings(scope),
        # Who goes next, and how long those were away who went before.
        on_items(scope, "ReadDepartures", ["GetItem"], "incident#*", rotation),
        *prometheus.workspace(scope),
        find_open(scope),
    ]


def _rights(cluster: Operated) -> rbac.Rights:
    pools = ["list", "patch"] if cluster.volumes and cluster.volumes.applies else ["list"]
    asking, elsewhere = prometheus.service(cluster)
    inside = [
        rbac.may("", ["persistentvolumeclaims"], ["list"]),
        rbac.may("kafka.strimzi.io", ["kafkanodepools"], pools),
        rbac.may_read_kafka(cluster),
        *rbac.may_get("secrets", cluster.secrets["volumes"]),
        *asking,
    ]
    return rbac.Rights(
        group="stillwater:volumes",
        everywhere=[
            rbac.may("", ["persistentvolumes"], ["list"]),
            rbac.may("storage.k8s.io", ["volumeattributesclasses"], ["list"]),
        ],
        inside=inside,
        elsewhere=elsewhere,
        limits=volumes_limits() if "patch" in pools and cluster.level == OWN else (),
    )


def volumes_limits() -> list[rbac.WriteLimit]:
    return [
        rbac.WriteLimit(
            resource="kafkanodepools",
            api_group="kafka.strimzi.io",
            spec=[rbac.only_in_spec("storage", "The function of the volumes")],
        )
    ]


VOLUMES = Definition(
    name="volumes",
    description="What Kafka's volumes need, and what of it may be done",
    settings=VolumesSettings,
    may=_may,
    own_settings=lambda cluster: {"volumes": cluster.volumes},
    kubernetes=_rights,
    schedule=("rate(5 minutes)", "looks at the volumes"),
)
