"""Lists what there is once, by its name: in the account and region, or in what it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


def _dns_name(name: str) -> str:
    return name.rstrip(".").lower()


def _function_name(name: str) -> str:
    return name.rpartition(":function:")[2]


@dataclass(frozen=True, slots=True)
class UniqueInputs:
    """What there is once, by these inputs: in the account and region, or in what they name.

    What lacks one of them is not named yet, and never twice.
    """

    by: tuple[str, ...]
    operation: str
    code: str
    message: str
    # Those of `by` that may be left out: the name is then the same without.
    optional: tuple[str, ...] = ()
    # Which spellings are one name.
    alike: Callable[[str], str] = str


UNIQUE: Mapping[str, UniqueInputs] = {
    "autoscaling/group:Group": UniqueInputs(
        ("name",),
        "CreateAutoScalingGroup",
        "AlreadyExists",
        "AutoScalingGroup by this name already exists - A group with the name {0} already exists",
    ),
    "dynamodb/table:Table": UniqueInputs(
        ("name",), "CreateTable", "ResourceInUseException", "Table already exists: {0}"
    ),
    "ec2/launchTemplate:LaunchTemplate": UniqueInputs(
        ("name",),
        "CreateLaunchTemplate",
        "InvalidLaunchTemplateName.AlreadyExistsException",
        "Launch template name already in use.",
    ),
    "ec2/securityGroup:SecurityGroup": UniqueInputs(
        ("vpcId", "name"),
        "CreateSecurityGroup",
        "InvalidGroup.Duplicate",
        "The security group '{1}' already exists for VPC '{0}'",
        optional=("vpcId",),
        alike=str.lower,
    ),
    "eks/accessEntry:AccessEntry": UniqueInputs(
        ("clusterName", "principalArn"),
        "CreateAccessEntry",
        "ResourceInUseException",
        "The specified access entry resource is already in use on this cluster.",
    ),
    "eks/addon:Addon": UniqueInputs(
        ("clusterName", "addonName"),
        "CreateAddon",
        "ResourceInUseException",
        "Addon already exists.",
    ),
    "eks/cluster:Cluster": UniqueInputs(
        ("name",),
        "CreateCluster",
        "ResourceInUseException",
        "Cluster already exists with name: {0}",
    ),
    "eks/podIdentityAssociation:PodIdentityAssociation": UniqueInputs(
        ("clusterName", "namespace", "serviceAccount"),
        "CreatePodIdentityAssociation",
        "ResourceInUseException",
        "Association already exists",
    ),
    "ec2/route:Route": UniqueInputs(
        (
            *("routeTableId", "destinationCidrBlock", "destinationIpv6CidrBlock"),
            "destinationPrefixListId",
        ),
        "CreateRoute",
        "RouteAlreadyExists",
        "The route identified by {1}{2}{3} already exists.",
        optional=(
            *("destinationCidrBlock", "destinationIpv6CidrBlock"),
            "destinationPrefixListId",
        ),
    ),
    "glue/catalogDatabase:CatalogDatabase": UniqueInputs(
        ("name",), "CreateDatabase", "AlreadyExistsException", "Database {0} already exists."
    ),
    "lambda/functionUrl:FunctionUrl": UniqueInputs(
        ("functionName", "qualifier"),
        "CreateFunctionUrlConfig",
        "ResourceConflictException",
        "FunctionUrlConfig exists for this Lambda function",
        optional=("qualifier",),
    ),
    "route53/record:Record": UniqueInputs(
        ("zoneId", "type", "setIdentifier", "name"),
        "ChangeResourceRecordSets",
        "InvalidChangeBatch",
        "Tried to create resource record set [name='{3}', type='{1}'] but it already exists",
        optional=("setIdentifier",),
        alike=_dns_name,
    ),
    "scheduler/schedule:Schedule": UniqueInputs(
        ("groupName", "name"),
        "CreateSchedule",
        "ConflictException",
        "Schedule {1} already exists.",
        optional=("groupName",),
    ),
    "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation": UniqueInputs(
        ("vpcEndpointId", "routeTableId"),
        "ModifyVpcEndpoint",
        "RouteAlreadyExists",
        "route table {1} already has a route to the endpoint {0}",
    ),
    "lambda/eventSourceMapping:EventSourceMapping": UniqueInputs(
        ("eventSourceArn", "functionName"),
        "CreateEventSourceMapping",
        "ResourceConflictException",
        'An event source mapping with SQS arn (" {0} ") and function (" {1} ") already exists.',
        alike=_function_name,
    ),
    "route53/zone:Zone": UniqueInputs(
        ("name", "vpcs"),
        "CreateHostedZone",
        "ConflictingDomainExists",
        "The VPC is already associated with another private hosted zone of the name {0}",
    ),
    # cloud-intelligence-dashboards-framework#995.
    "bcmdata/export:Export": UniqueInputs(
        ("export.name",),
        "CreateExport",
        "ValidationException",
        "Cannot create duplicate export name.",
    ),
    "ec2/internetGateway:InternetGateway": UniqueInputs(
        ("vpcId",),
        "AttachInternetGateway",
        "Resource.AlreadyAssociated",
        "Network {0} already has an internet gateway attached",
    ),
    "ec2/natGateway:NatGateway": UniqueInputs(
        ("allocationId",),
        "CreateNatGateway",
        "Resource.AlreadyAssociated",
        "Elastic IP address [{0}] is already associated",
    ),
    "ec2/routeTableAssociation:RouteTableAssociation": UniqueInputs(
        ("subnetId",),
        "AssociateRouteTable",
        "Resource.AlreadyAssociated",
        "the specified association conflicts with an existing association of {0}",
    ),
    "eks/nodeGroup:NodeGroup": UniqueInputs(
        ("clusterName", "nodeGroupName"),
        "CreateNodegroup",
        "ResourceInUseException",
        "NodeGroup already exists with name {1} and cluster name {0}",
    ),
    "iam/instanceProfile:InstanceProfile": UniqueInputs(
        ("name",),
        "CreateInstanceProfile",
        "EntityAlreadyExists",
        "Instance Profile {0} already exists.",
        alike=str.lower,
    ),
    "iam/policy:Policy": UniqueInputs(
        ("name",),
        "CreatePolicy",
        "EntityAlreadyExists",
        "A policy called {0} already exists. Duplicate names are not allowed.",
        alike=str.lower,
    ),
    "iam/role:Role": UniqueInputs(
        ("name",),
        "CreateRole",
        "EntityAlreadyExists",
        "Role with name {0} already exists.",
        alike=str.lower,
    ),
    "kms/alias:Alias": UniqueInputs(
        ("name",),
        "CreateAlias",
        "AlreadyExistsException",
        "An alias with the name {0} already exists",
    ),
    "lambda/permission:Permission": UniqueInputs(
        ("function", "statementId", "qualifier"),
        "AddPermission",
        "ResourceConflictException",
        "The statement id ({1}) provided already exists. Please provide a new statement id",
        optional=("qualifier",),
    ),
    "lambda/function:Function": UniqueInputs(
        ("name",), "CreateFunction", "ResourceConflictException", "Function already exist: {0}"
    ),
    "lb/listener:Listener": UniqueInputs(
        ("loadBalancerArn", "port"),
        "CreateListener",
        "DuplicateListener",
        "A listener already exists on this port for this load balancer '{0}'",
    ),
    "lb/loadBalancer:LoadBalancer": UniqueInputs(
        ("name",),
        "CreateLoadBalancer",
        "DuplicateLoadBalancerName",
        "A load balancer with the same name '{0}' exists, but with different settings",
    ),
    "lb/targetGroup:TargetGroup": UniqueInputs(
        ("name",),
        "CreateTargetGroup",
        "DuplicateTargetGroupName",
        "A target group with the same name '{0}' exists, but with different settings",
    ),
    "cloudwatch/logGroup:LogGroup": UniqueInputs(
        ("name",),
        "CreateLogGroup",
        "ResourceAlreadyExistsException",
        "The specified log group already exists",
    ),
    "s3/bucket:Bucket": UniqueInputs(
        ("bucket",),
        "CreateBucket",
        "BucketAlreadyOwnedByYou",
        "Your previous request to create the named bucket succeeded and you already own it.",
    ),
    "secretsmanager/secret:Secret": UniqueInputs(
        ("name",),
        "CreateSecret",
        "ResourceExistsException",
        "The operation failed because the secret {0} already exists.",
    ),
    "sqs/queue:Queue": UniqueInputs(
        ("name",), "CreateQueue", "QueueAlreadyExists", "A queue already exists with the same name"
    ),
}
