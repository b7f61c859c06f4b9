"""Protects what must never be deleted by accident.

`pulumi destroy`, or a change that means a replacement, stops at these until the spec says that the
environment is ephemeral. The leaves are protected one by one: children in other providers go before
a protected parent is even looked at (pulumi#6191), so protecting the cluster alone saves nothing.
Volumes are none of Pulumi's; their storage class retains them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

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
