"""Builds the classes of Kafka's volumes (encrypted gp3, growable, kept) and their snapshots.

A volume is made in the zone its pod was scheduled to, and outlives its claim. IOPS and throughput
are a VolumeAttributesClass, which a volume may change but never drop, so every volume has one. Data
Lifecycle Manager takes snapshots by a tag, with no need of Kubernetes; the VolumeSnapshotClass is
for kubectl. docs/how-to/restore-a-broker-from-a-snapshot.md says what a snapshot is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec, NodePool, Storage
from core.cluster import Snapshots as Schedule
from core.ground import naming
from core.ground.constants import RETAIN_VOLUME
from core.ground.instances import table
from core.volumes.deciding import class_of
from core.volumes.sizing import Performance, lesser, steps
from infra import iam
from infra.tags import SNAPSHOT_TAG, cluster_tags
from infra.versions import SNAPSHOT_API

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


SNAPSHOTS_TYPE = "stillwater:infra:Snapshots"
SNAPSHOT_CLASS = "ebs-kafka"


class SnapshotResources(pulumi.ComponentResource):
    """The snapshot class, and the lifecycle policy where the spec has a schedule."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        account: iam.Account,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(SNAPSHOTS_TYPE, name, None, opts)
        self._name, self._prefix = name, spec.prefix
        child = pulumi.ResourceOptions(parent=self)
        _SnapshotClass(f"{name}-class", cluster_tags(spec).everywhere, child)
        if spec.snapshots is not None:
            self._lifecycle(spec.snapshots, account)
        self.register_outputs({})

    def _lifecycle(self, schedule: Schedule, account: iam.Account) -> None:
        role, _ = iam.service_role(
            f"{self._name}-role",
            role_name=f"{self._prefix}-snapshots",
            service="dlm.amazonaws.com",
            source="policy/*",  # the schedule's id comes after its role
            managed_policies={},
            parent=self,
        )
        permission = iam.allow(
            f"{self._name}-policy", role, _statements(self._prefix, account), self
        )
        aws.dlm.LifecyclePolicy(
            f"{self._name}-schedule",
            description=f"Kafka volumes of {self._prefix}",
            execution_role_arn=role.arn,
            state="ENABLED",
            policy_details={
                "policy_type": "EBS_SNAPSHOT_MANAGEMENT",
                "resource_types": ["VOLUME"],
                # Several tags would mean any of them: one, whose value no other cluster has.
                "target_tags": {SNAPSHOT_TAG: self._prefix},
                "schedules": [_schedule(schedule)],
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[permission]),
        )


class _SnapshotClass(pulumi.CustomResource):
    """A VolumeSnapshotClass, whose settings stand where CustomResource allows a spec alone."""

    def __init__(self, name: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions) -> None:
        kind = "VolumeSnapshotClass"
        super().__init__(
            f"kubernetes:{SNAPSHOT_API}:{kind}",
            name,
            {
                "apiVersion": SNAPSHOT_API,
                "kind": kind,
                "metadata": {"name": SNAPSHOT_CLASS},
                "driver": naming.EBS_CSI_DRIVER,
                # Deleting the VolumeSnapshot, or its namespace, leaves the snapshot in EBS.
                "deletionPolicy": RETAIN_VOLUME,
                "parameters": volume_tags(tags),
            },
            opts,
        )


def _schedule(schedule: Schedule) -> aws.dlm.LifecyclePolicyPolicyDetailsScheduleArgsDict:
    return {
        "name": f"every-{schedule.every_hours}-hours",
        "create_rule": {
            "interval": schedule.every_hours,
            "interval_unit": "HOURS",
            "times": schedule.start_at_utc,
        },
        "retain_rule": {"count": schedule.kept},
        # Which broker's it is: the driver's tags name the claim.
        "copy_tags": True,
    }


def _statements(prefix: str, account: iam.Account) -> list[iam.Statement]:
    # A snapshot's ARN has no account in it.
    snapshots = f"arn:{account.partition}:ec2:{account.region}::snapshot/*"
    ours = {"StringEquals": {f"aws:ResourceTag/{SNAPSHOT_TAG}": prefix}}
    return [
        iam.Statement(
            sid="SnapshotOurVolumes",
            actions=["ec2:CreateSnapshot"],
            resources=[account.arn("ec2", "volume/*")],
            conditions=ours,
        ),
        iam.Statement(sid="IntoSnapshots", actions=["ec2:CreateSnapshot"], resources=[snapshots]),
        iam.Statement(
            sid="CopyTheirTags",
            actions=["ec2:CreateTags"],
            resources=[snapshots],
            conditions={"StringEquals": {"ec2:CreateAction": "CreateSnapshot"}},
        ),
        iam.Statement(
            sid="DeleteOurOldOnes",
            actions=["ec2:DeleteSnapshot"],
            resources=[snapshots],
            conditions=ours,
        ),
        iam.look("ec2:DescribeInstances", "ec2:DescribeSnapshots", "ec2:DescribeVolumes"),
    ]
