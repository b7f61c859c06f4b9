"""Lists how many of a kind one parent takes: rules of a group, targets of a rule, and the like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from local.refusals.limits import IAM_QUOTAS, Refuser


@dataclass(frozen=True, slots=True)
class CountedInput:
    """How many of a type one parent takes, by the input that names it."""

    of: Refuser
    parent: str
    most: int
    message: str
    source: str


# What a parent brings along of a type: the parent, its own name (None: its id), and the list.
BROUGHT: Mapping[str, tuple[str, str | None, str]] = {
    "autoscaling/lifecycleHook:LifecycleHook": (
        *("autoscaling/group:Group", "name", "initialLifecycleHooks"),
    ),
    "ec2/route:Route": ("ec2/routeTable:RouteTable", None, "routes"),
    "iam/rolePolicyAttachment:RolePolicyAttachment": ("iam/role:Role", "name", "managedPolicyArns"),
    **{
        f"vpc/securityGroup{way}Rule:SecurityGroup{way}Rule": (
            *("ec2/securityGroup:SecurityGroup", None, way.lower()),
        )
        for way in ("Ingress", "Egress")
    },
}
COUNTED: tuple[CountedInput, ...] = (
    *(
        CountedInput(
            Refuser(
                f"vpc/securityGroup{way}Rule:SecurityGroup{way}Rule",
                f"AuthorizeSecurityGroup{way}",
                "RulesPerSecurityGroupLimitExceeded",
            ),
            "securityGroupId",
            60,
            "The maximum number of rules per security group has been reached.",
            "https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html",
        )
        for way in ("Ingress", "Egress")
    ),
    CountedInput(
        Refuser(
            "iam/rolePolicyAttachment:RolePolicyAttachment", "AttachRolePolicy", "LimitExceeded"
        ),
        "role",
        10,
        "Cannot exceed quota for PoliciesPerRole: 10",
        IAM_QUOTAS,
    ),
    CountedInput(
        Refuser("lb/listener:Listener", "CreateListener", "TooManyListeners"),
        "loadBalancerArn",
        50,
        "The maximum number of listeners has been reached for this load balancer",
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-limits.html",
    ),
    CountedInput(
        Refuser("autoscaling/lifecycleHook:LifecycleHook", "PutLifecycleHook", "LimitExceeded"),
        "autoscalingGroupName",
        50,
        "You have exceeded the limit of 50 lifecycle hooks per Auto Scaling group",
        "https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-quotas.html",
    ),
    CountedInput(
        Refuser("cloudwatch/eventTarget:EventTarget", "PutTargets", "LimitExceededException"),
        "rule",
        5,
        "The requested resource exceeds the maximum number allowed.",
        "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html",
    ),
    CountedInput(
        Refuser("cloudwatch/eventRule:EventRule", "PutRule", "LimitExceededException"),
        "eventBusName",
        300,
        "The requested resource exceeds the maximum number allowed.",
        "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html",
    ),
    CountedInput(
        Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "ResourceLimitExceededException"),
        "clusterName",
        30,
        "The maximum number of managed node groups per cluster has been reached",
        "https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html",
    ),
    CountedInput(
        Refuser("ec2/vpc:Vpc", "CreateVpc", "VpcLimitExceeded"),
        "region",
        5,
        "The maximum number of VPCs has been reached.",
        "https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html",
    ),
    CountedInput(
        Refuser("ec2/route:Route", "CreateRoute", "RouteLimitExceeded"),
        "routeTableId",
        500,
        "The maximum number of routes has been reached.",
        "https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html",
    ),
    CountedInput(
        Refuser("ec2/vpcEndpoint:VpcEndpoint", "CreateVpcEndpoint", "VpcEndpointLimitExceeded"),
        "vpcId",
        50,
        "The maximum number of VPC endpoints has been reached.",
        "https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-limits-endpoints.html",
    ),
    CountedInput(
        Refuser("kms/alias:Alias", "CreateAlias", "LimitExceededException"),
        "targetKeyId",
        50,
        "The request was rejected because a quota was exceeded: aliases per KMS key.",
        "https://docs.aws.amazon.com/kms/latest/developerguide/resource-limits.html",
    ),
    CountedInput(
        Refuser(
            "eks/podIdentityAssociation:PodIdentityAssociation",
            "CreatePodIdentityAssociation",
            "ResourceLimitExceededException",
        ),
        "clusterName",
        5000,
        "The number of Pod Identity associations per cluster has been reached",
        "https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html",
    ),
    *(
        CountedInput(
            Refuser(token, operation, code),
            parent,
            most,
            f"The maximum of {most} has been reached.",
            s,
        )
        for token, parent, most, operation, code, s in (
            (
                *("lb/loadBalancer:LoadBalancer", "region", 50, "CreateLoadBalancer"),
                "TooManyLoadBalancers",
                "https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-limits.html",
            ),
            (
                *("autoscaling/group:Group", "region", 500, "CreateAutoScalingGroup"),
                "LimitExceeded",
                "https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-quotas.html",
            ),
            (
                *("dlm/lifecyclePolicy:LifecyclePolicy", "region", 100, "CreateLifecyclePolicy"),
                "LimitExceededException",
                "https://docs.aws.amazon.com/ebs/latest/userguide/dlm-quotas.html",
            ),
            (
                *("eks/cluster:Cluster", "region", 100, "CreateCluster"),
                "ResourceLimitExceededException",
                "https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html",
            ),
            (
                *("route53/record:Record", "zoneId", 10_000, "ChangeResourceRecordSets"),
                "InvalidChangeBatch",
                "https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html",
            ),
        )
    ),
    *(
        CountedInput(
            Refuser(token, operation, code),
            parent,
            most,
            "The maximum number has been reached.",
            "https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html",
        )
        for token, parent, most, operation, code in (
            ("ec2/subnet:Subnet", "vpcId", 200, "CreateSubnet", "SubnetLimitExceeded"),
            (
                "ec2/routeTable:RouteTable",
                "vpcId",
                200,
                "CreateRouteTable",
                "RouteTableLimitExceeded",
            ),
            (
                *("ec2/internetGateway:InternetGateway", "region", 5),
                *("CreateInternetGateway", "InternetGatewayLimitExceeded"),
            ),
        )
    ),
)
