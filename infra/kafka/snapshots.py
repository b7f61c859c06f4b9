"""Snapshots of Kafka's volumes: on a schedule by AWS's Data Lifecycle Manager, or by hand.

The schedule needs nothing of the cluster: it finds volumes by a tag that the storage class gives
each of them, and keeps working while Kubernetes does not. The VolumeSnapshotClass is for whoever
takes one with kubectl. Either kind outlives what it was taken from. A snapshot holds what one
broker had on disk at one moment; docs/how-to/restore-a-broker-from-a-snapshot.md says what that is
worth.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec
from core.cluster import Snapshots as Schedule
from core.ground import naming
from core.ground.constants import RETAIN_VOLUME
from infra import iam
from infra.kafka.storage import volume_tags
from infra.tags import SNAPSHOT_TAG, cluster_tags
from infra.versions import SNAPSHOT_API

TYPE = "stillwater:infra:Snapshots"
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
        super().__init__(TYPE, name, None, opts)
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
