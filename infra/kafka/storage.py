"""Builds the classes of Kafka's volumes: encrypted gp3, bound where the pod is, growable, kept.

A volume is made in the zone its pod was scheduled to, and it outlives its claim: deleting a
cluster by mistake loses no data. IOPS and throughput are a VolumeAttributesClass, the part of a
volume that may change while it is in use. Every volume has one, the baseline too: Kubernetes lets
a volume change its class, but never drop it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec, NodePool, Storage
from core.ground import naming
from core.ground.constants import RETAIN_VOLUME
from core.ground.instances import table
from core.volumes.deciding import class_of
from core.volumes.sizing import Performance, lesser, steps
from infra.tags import cluster_tags

TYPE = "stillwater:infra:Storage"
# Kubernetes keeps a class until its last volume has left it, and ours outlive the cluster's claims:
# whoever waited for the deletion would wait for ever.
SKIP_AWAIT = "pulumi.com/skipAwait"


def attributes_class(volume: Storage) -> str:
    """Return the VolumeAttributesClass of a volume.

    >>> attributes_class(Storage(size_gib=100, iops=4000, throughput_mib_per_s=250))
    'gp3-4000-250'
    """
    return class_of(volume.gp3.performance)


class KafkaStorage(pulumi.ComponentResource):
    """The storage class of every Kafka volume, and an attributes class per performance asked."""

    def __init__(
        self, name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        k8s.storage.v1.StorageClass(
            f"{name}-class",
            metadata={"name": naming.STORAGE_CLASS},
            provisioner=naming.EBS_CSI_DRIVER,
            parameters={
                "type": "gp3",
                # The driver's own default is false.
                "encrypted": "true",
                **({} if spec.encryption_key is None else {"kmsKeyId": spec.encryption_key}),
                "csi.storage.k8s.io/fstype": "xfs",
                **volume_tags(cluster_tags(spec).volume_tags(spec.prefix)),
            },
            volume_binding_mode="WaitForFirstConsumer",
            allow_volume_expansion=True,
            reclaim_policy=RETAIN_VOLUME,
            opts=child,
        )
        wanted_ones = _performances(spec.pools, may_change=spec.volumes.applies)
        for class_name, wanted in sorted(wanted_ones.items()):
            k8s.storage.v1.VolumeAttributesClass(
                f"{name}-{class_name}",
                metadata={"name": class_name, "annotations": {SKIP_AWAIT: "true"}},
                driver_name=naming.EBS_CSI_DRIVER,
                parameters={
                    "type": "gp3",
                    "iops": str(wanted.iops),
                    "throughput": str(wanted.throughput_mib_per_s),
                },
                opts=child,
            )
        self.register_outputs({})


def _performances(pools: Sequence[NodePool], *, may_change: bool) -> dict[str, Performance]:
    """Return every performance a volume has or may be given, by its class.

    Where volumes are raised and lowered it is by λ volumes, which makes no class.
    """
    found = {volume.gp3.performance for pool in pools for volume in pool.volumes}
    if may_change:
        found.update(step for pool in pools for step in _reachable(pool))
    return {class_of(each): each for each in found}


def _reachable(pool: NodePool) -> Iterator[Performance]:
    """Yield what the advisor may choose for a pool's volumes: steps up to its ceiling."""
    policy, instance = pool.policy(), table().types.get(pool.instance_type)
    for number, volume in enumerate(pool.volumes):
        beside = [v.gp3.performance for n, v in enumerate(pool.volumes) if n != number]
        most = lesser(policy.ceiling, instance, beside, bursting=policy.may_burst)
        # A controller's volumes are grown and never raised.
        yield from steps(
            volume.gp3.performance, volume.gp3.performance if policy.grow_only else most
        )


def volume_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return tags as parameters of a storage or snapshot class.

    The CSI driver knows nothing of a provider's default tags.
    """
    return {
        f"tagSpecification_{number}": f"{key}={value}"
        for number, (key, value) in enumerate(sorted(tags.items()), start=1)
    }
