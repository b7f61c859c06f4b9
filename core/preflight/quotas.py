"""Which quotas a cluster meets: Service Quotas' names for them, and what they are called here.

Sources: the quota pages of EC2, VPC, Elastic Load Balancing, Auto Scaling, EKS, KMS, EBS and
EventBridge. A quota is found by the name that Service Quotas prints, since codes say nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.instances import STANDARD_QUOTA


@dataclass(frozen=True, slots=True)
class QuotaName:
    """One quota: its service's code and its name in Service Quotas, and its name in a sentence."""

    service: str
    name: str
    what: str


QUOTAS = {
    "vcpus_standard": QuotaName(
        "ec2",
        STANDARD_QUOTA,
        "vCPUs of standard on-demand instances",
    ),
    "gp3_tib": QuotaName(
        "ebs",
        "Storage for General Purpose SSD (gp3) volumes, in TiB",
        "TiB of gp3 volumes",
    ),
    "elastic_ips": QuotaName("ec2", "EC2-VPC Elastic IPs", "Elastic IP addresses"),
    "vpcs": QuotaName("vpc", "VPCs per Region", "VPCs"),
    "nlbs": QuotaName(
        "elasticloadbalancing", "Network Load Balancers per Region", "network load balancers"
    ),
    "listeners_per_nlb": QuotaName(
        "elasticloadbalancing",
        "Listeners per Network Load Balancer",
        "listeners of a network load balancer",
    ),
    "target_groups": QuotaName("elasticloadbalancing", "Target Groups per Region", "target groups"),
    "auto_scaling_groups": QuotaName(
        "autoscaling", "Auto Scaling groups per region", "Auto Scaling groups"
    ),
    "eks_clusters": QuotaName("eks", "Clusters", "EKS clusters"),
    "kms_keys": QuotaName("kms", "Customer Master Keys (CMKs)", "KMS keys"),
    "rules": QuotaName("events", "Rules", "EventBridge rules of the default bus"),
}
