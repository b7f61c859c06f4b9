"""Builds the tags every resource carries, and protects what must never be deleted by accident.

A provider's default tags do not reach what an Auto Scaling group, a launch template or the EBS CSI
driver creates: those get them explicitly. `pulumi destroy` stops at protected resources until the
spec says ephemeral. Leaves are protected one by one, since children in other providers go before a
protected parent is looked at (pulumi#6191). Volumes are retained by their storage class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec
from core.ground import naming

MANAGED_BY_TAG = "managed-by"
# What the snapshot schedule finds Kafka's volumes by; root volumes do not carry it.
SNAPSHOT_TAG = "stillwater:snapshots"
# How long Cluster Autoscaler lets an idle node of Kafka's be: it has no word for `for ever`. The
# idle node may be the replacement that a broker is about to move to.
NEVER_SCALED_DOWN = "8760h"


@dataclass(frozen=True, kw_only=True)
class Tags:
    """What every resource of one cluster is tagged with; the user's tags may not hide ours."""

    cluster: str
    # None: of a cluster that exists, which has no environments.
    environment: str | None
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> dict[str, str]:
        """Tags that only the resources of this one cluster carry; permissions ask for them."""
        tags = {naming.CLUSTER_TAG: self.cluster}
        if self.environment is not None:
            tags[naming.ENVIRONMENT_TAG] = self.environment
        return tags

    @property
    def ours(self) -> dict[str, str]:
        return {**self.identity, MANAGED_BY_TAG: "stillwater"}

    @property
    def everywhere(self) -> dict[str, str]:
        return {**self.extra, **self.ours}

    def name_tags(self, name: str) -> dict[str, str]:
        """Tags for a resource whose only name in the console is its Name tag."""
        return {**self.everywhere, "Name": name}

    def volume_tags(self, prefix: str) -> dict[str, str]:
        """Tags of a volume that Kafka keeps its data on, but for the user's.

        They stand in a storage class, which Kubernetes never lets change; the user's come from the
        EBS CSI driver's own settings (infra.eks.cluster), which do.
        """
        return {**self.ours, SNAPSHOT_TAG: prefix}

    def node_tags(self, name: str, pool: str, eks_cluster: str, prefix: str) -> dict[str, str]:
        """Tags an EC2 instance of a pool must carry.

        The managed tag is how the node termination handler tells our instances from others in a
        shared account; without it every event is ignored.
        """
        return {
            **self.name_tags(name),
            naming.POOL_TAG: pool,
            f"kubernetes.io/cluster/{eks_cluster}": "owned",
            naming.managed_tag(prefix): "true",
        }


def cluster_tags(spec: ClusterSpec) -> Tags:
    return Tags(cluster=spec.name, environment=spec.environment, extra=dict(spec.tags))


def node_template_tags(eks_cluster: str, zone: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Tags from which Cluster Autoscaler builds a node it has never seen.

    Without the zones a group at zero is never scaled up for a pod whose volume is in that zone
    (autoscaler#3230): older volumes carry the CSI driver's own zone label, newer ones Kubernetes'.
    """
    options = f"{naming.NODE_TEMPLATE}/autoscaling-options"
    every_label = {naming.ZONE_LABEL: zone, naming.EBS_ZONE_LABEL: zone, **labels}
    taint = f"{naming.DEDICATED_TAINT_VALUE}:NoSchedule"
    return {
        "k8s.io/cluster-autoscaler/enabled": "true",
        f"k8s.io/cluster-autoscaler/{eks_cluster}": "owned",
        **{f"{naming.NODE_TEMPLATE}/label/{key}": value for key, value in every_label.items()},
        f"{naming.NODE_TEMPLATE}/taint/{naming.DEDICATED_TAINT_KEY}": taint,
        f"{options}/scaledownunneededtime": NEVER_SCALED_DOWN,
        f"{options}/scaledownunreadytime": NEVER_SCALED_DOWN,
    }


def group_tags(
    propagated: Mapping[str, str], own: Mapping[str, str]
) -> list[aws.autoscaling.GroupTagArgs]:
    """Return an Auto Scaling group's tags: those its instances inherit, and those they do not."""
    return [
        aws.autoscaling.GroupTagArgs(key=key, value=value, propagate_at_launch=inherited)
        for tags, inherited in ((propagated, True), (own, False))
        for key, value in sorted(tags.items())
    ]


# Type -> what is lost with it.
STATEFUL: Mapping[str, str] = {
    "aws:dynamodb/table:Table": "which nodes are on their way out",
    "aws:ec2/subnet:Subnet": "every node in it",
    "aws:ec2/vpc:Vpc": "everything in it",
    "aws:ec2/vpcEndpointService:VpcEndpointService": "every client that came through PrivateLink",
    "aws:eks/cluster:Cluster": "every object in Kubernetes",
    "aws:kms/key:Key": "every secret it encrypted",
    "aws:lb/loadBalancer:LoadBalancer": "the address that every client knows",
    "aws:route53/zone:Zone": "the name that every client knows",
    "aws:s3/bucket:Bucket": "bills and history",
    "kubernetes:core/v1:Namespace": "the cluster's claims, and Kafka with them",
    "kubernetes:kafka.strimzi.io/v1:Kafka": "Kafka",
    "kubernetes:kafka.strimzi.io/v1:KafkaNodePool": "the brokers of a zone",
    "kubernetes:storage.k8s.io/v1:StorageClass": "the setting that keeps volumes",
}


def protect(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Protect a stateful resource; what says otherwise itself is left as it is."""
    if args.type_ not in STATEFUL or args.opts.protect is not None:
        return None
    return pulumi.ResourceTransformationResult(
        props=args.props,
        opts=pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(protect=True)),
    )


def options(*, ephemeral: bool) -> pulumi.ResourceOptions:
    """Return the options every component of an environment starts from."""
    return pulumi.ResourceOptions(transformations=[] if ephemeral else [protect])
