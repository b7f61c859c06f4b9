"""Lists what there is once, by its name, and how many of a kind one parent takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from local.refusals.limits import IAM_QUOTAS, Refuser


@dataclass(frozen=True, slots=True)
class Unique:
    """What there is once, by these inputs: in the account and region, or in what they name."""

    by: tuple[str, ...]
    operation: str
    code: str
    message: str
    # An input that the provider draws where the program gives none.
    drawn: str = ""


UNIQUE: Mapping[str, Unique] = {
    "autoscaling/group:Group": Unique(
        ("name",),
        "CreateAutoScalingGroup",
        "AlreadyExists",
        "AutoScalingGroup by this name already exists - A group with the name {0} already exists",
    ),
    "dynamodb/table:Table": Unique(
        ("name",), "CreateTable", "ResourceInUseException", "Table already exists: {0}"
    ),
    "ec2/launchTemplate:LaunchTemplate": Unique(
        ("name",),
        "CreateLaunchTemplate",
        "InvalidLaunchTemplateName.AlreadyExistsException",
        "Launch template name already in use.",
    ),
    "ec2/securityGroup:SecurityGroup": Unique(
        ("vpcId", "name"),
        "CreateSecurityGroup",
        "InvalidGroup.Duplicate",
        "The security group '{1}' already exists for VPC '{0}'",
    ),
    "eks/accessEntry:AccessEntry": Unique(
        ("clusterName", "principalArn"),
        "CreateAccessEntry",
        "ResourceInUseException",
        "The specified access entry resource is already in use on this cluster.",
    ),
    "eks/addon:Addon": Unique(
        ("clusterName", "addonName"),
        "CreateAddon",
        "ResourceInUseException",
        "Addon already exists.",
    ),
    "eks/cluster:Cluster": Unique(
        ("name",),
        "CreateCluster",
        "ResourceInUseException",
        "Cluster already exists with name: {0}",
    ),
    "eks/podIdentityAssociation:PodIdentityAssociation": Unique(
        ("clusterName", "namespace", "serviceAccount"),
        "CreatePodIdentityAssociation",
        "ResourceInUseException",
        "Association already exists",
    ),
    "ec2/route:Route": Unique(
        ("routeTableId", "destinationCidrBlock"),
        "CreateRoute",
        "RouteAlreadyExists",
        "The route identified by {1} already exists.",
    ),
    "glue/catalogDatabase:CatalogDatabase": Unique(
        ("name",), "CreateDatabase", "AlreadyExistsException", "Database {0} already exists."
    ),
    "lambda/functionUrl:FunctionUrl": Unique(
        ("functionName", "qualifier"),
        "CreateFunctionUrlConfig",
        "ResourceConflictException",
        "FunctionUrlConfig exists for this Lambda function",
    ),
    "route53/record:Record": Unique(
        ("zoneId", "type", "setIdentifier", "name"),
        "ChangeResourceRecordSets",
        "InvalidChangeBatch",
        "Tried to create resource record set [name='{3}', type='{1}'] but it already exists",
    ),
    "scheduler/schedule:Schedule": Unique(
        ("groupName", "name"),
        "CreateSchedule",
        "ConflictException",
        "Schedule {1} already exists.",
    ),
    "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation": Unique(
        ("vpcEndpointId", "routeTableId"),
        "ModifyVpcEndpoint",
        "RouteAlreadyExists",
        "route table {1} already has a route to the endpoint {0}",
    ),
    "lambda/eventSourceMapping:EventSourceMapping": Unique(
        ("eventSourceArn", "functionName"),
        "CreateEventSourceMapping",
        "ResourceConflictException",
        'An event source mapping with SQS arn (" {0} ") and function (" {1} ") already exists.',
    ),
    "route53/zone:Zone": Unique(
        ("name", "vpcs"),
        "CreateHostedZone",
        "ConflictingDomainExists",
        "The VPC is already associated with another private hosted zone of the name {0}",
    ),
    "ec2/internetGateway:InternetGateway": Unique(
        ("vpcId",),
        "AttachInternetGateway",
        "Resource.AlreadyAssociated",
        "Network {0} already has an internet gateway attached",
    ),
    "ec2/natGateway:NatGateway": Unique(
        ("allocationId",),
        "CreateNatGateway",
        "Resource.AlreadyAssociated",
        "Elastic IP address [{0}] is already associated",
    ),
    "ec2/routeTableAssociation:RouteTableAssociation": Unique(
        ("subnetId",),
        "AssociateRouteTable",
        "Resource.AlreadyAssociated",
        "the specified association conflicts with an existing association of {0}",
    ),
    "eks/nodeGroup:NodeGroup": Unique(
        ("clusterName", "nodeGroupName"),
        "CreateNodegroup",
        "ResourceInUseException",
        "NodeGroup already exists with name {1} and cluster name {0}",
    ),
    "iam/instanceProfile:InstanceProfile": Unique(
        ("name",),
        "CreateInstanceProfile",
        "EntityAlreadyExists",
        "Instance Profile {0} already exists.",
    ),
    "iam/policy:Policy": Unique(
        ("name",),
        "CreatePolicy",
        "EntityAlreadyExists",
        "A policy called {0} already exists. Duplicate names are not allowed.",
    ),
    "iam/role:Role": Unique(
        ("name",), "CreateRole", "EntityAlreadyExists", "Role with name {0} already exists."
    ),
    "kms/alias:Alias": Unique(
        ("name",),
        "CreateAlias",
        "AlreadyExistsException",
        "An alias with the name {0} already exists",
    ),
    "lambda/permission:Permission": Unique(
        ("function", "statementId", "qualifier"),
        "AddPermission",
        "ResourceConflictException",
        "The statement id ({1}) provided already exists. Please provide a new statement id",
        "statementId",
    ),
    "lambda/function:Function": Unique(
        ("name",), "CreateFunction", "ResourceConflictException", "Function already exist: {0}"
    ),
    "lb/listener:Listener": Unique(
        ("loadBalancerArn", "port"),
        "CreateListener",
        "DuplicateListener",
        "A listener already exists on this port for this load balancer '{0}'",
    ),
    "lb/loadBalancer:LoadBalancer": Unique(
        ("name",),
        "CreateLoadBalancer",
        "DuplicateLoadBalancerName",
        "A load balancer with the same name '{0}' exists, but with different settings",
    ),
    "lb/targetGroup:TargetGroup": Unique(
        ("name",),
        "CreateTargetGroup",
        "DuplicateTargetGroupName",
        "A target group with the same name '{0}' exists, but with different settings",
    ),
    "cloudwatch/logGroup:LogGroup": Unique(
        ("name",),
        "CreateLogGroup",
        "ResourceAlreadyExistsException",
        "The specified log group already exists",
    ),
    "s3/bucket:Bucket": Unique(
        ("bucket",),
        "CreateBucket",
        "BucketAlreadyOwnedByYou",
        "Your previous request to create the named bucket succeeded and you already own it.",
    ),
    "secretsmanager/secret:Secret": Unique(
        ("name",),
        "CreateSecret",
        "ResourceExistsException",
        "The operation failed because the secret {0} already exists.",
    ),
    "sqs/queue:Queue": Unique(
        ("name",), "CreateQueue", "QueueAlreadyExists", "A queue already exists with the same name"
    ),
}


@dataclass(frozen=True, slots=True)
class CountedInput:
    """How many of a type one parent takes, by the input that names it."""

    of: Refuser
    parent: str
    most: int
    message: str
    source: str


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
