"""Ids and ARNs by their form, on whatever resource they are given: a line each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.fields import values
from local.refusals.limits import EVERY_TYPE, Refuser, limit
from local.refusals.patterns import enter_patterns
from local.refusals.refusal import Refusal, Wanted

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/"
_EKS = "https://docs.aws.amazon.com/eks/latest/"
_ELB = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/"
_IAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/"
_SCHEDULER = "https://docs.aws.amazon.com/scheduler/latest/APIReference/"
_LISTENER = Refuser("lb/listener:Listener", "CreateListener", "ValidationError")
_NODES = Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException")
# Where a resource names another by its id: what the id begins with, and EC2's code.
_IDS = (
    ("vpcId", "vpc", "InvalidVpcID.NotFound"),
    ("vpcs.*.vpcId", "vpc", "InvalidVPCId"),
    *(
        (path, "subnet", "InvalidSubnetID.NotFound")
        for path in ("subnetId", "subnetIds.*", "vpcConfig.subnetIds.*", "vpcZoneIdentifiers.*")
    ),
    *(
        (path, "sg", "InvalidGroupId.Malformed")
        for path in (
            *("securityGroupId", "securityGroupIds.*", "vpcConfig.securityGroupIds.*"),
            "vpcSecurityGroupIds.*",
        )
    ),
    ("subnets.*", "subnet", "SubnetNotFound"),
    ("securityGroups.*", "sg", "InvalidSecurityGroup"),
    ("natGatewayId", "nat", "InvalidNatGatewayID.Malformed"),
    ("egressOnlyGatewayId", "eigw", "InvalidGatewayID.NotFound"),
    ("networkInterfaceId", "eni", "InvalidNetworkInterfaceID.NotFound"),
    ("transitGatewayId", "tgw", "InvalidTransitGatewayID.NotFound"),
    ("vpcEndpointId", "vpce", "InvalidVpcEndpointId.NotFound"),
    ("vpcPeeringConnectionId", "pcx", "InvalidVpcPeeringConnectionID.NotFound"),
    ("allocationId", "eipalloc", "InvalidAllocationID.NotFound"),
    ("prefixListId", "pl", "InvalidPrefixListID.Malformed"),
    ("routeTableId", "rtb", "InvalidRouteTableID.NotFound"),
    ("launchTemplate.id", "lt", "InvalidLaunchTemplateId.Malformed"),
)
_ROLES = (
    *("roleArn", "nodeRoleArn", "serviceAccountRoleArn", "executionRoleArn", "target.roleArn"),
    *("taskRoleArn", "podIdentityAssociations.*.roleArn"),
)
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/.+")


@limit(EVERY_TYPE, source=f"{_EC2}APIReference/errors-overview.html")
def ids_of_what_is_named(wanted: Wanted) -> Iterator[Refusal]:
    """An id begins with the kind that it is of."""
    for path, prefix, code in _IDS:
        for value in values(wanted.inputs, path):
            if not str(value).startswith(f"{prefix}-"):
                message = f'Invalid id: "{value}" (expecting "{prefix}-...")'
                yield Refusal("the provider's call", code, message, path.partition(".")[0])


@limit(EVERY_TYPE, source=f"{_IAM}reference_identifiers.html")
def roles_by_their_arns(wanted: Wanted) -> Iterator[Refusal]:
    """A role is named by its whole ARN."""
    for path in _ROLES:
        for value in values(wanted.inputs, path):
            if value and _ROLE.fullmatch(str(value)) is None:
                message = f"{value} is an invalid ARN of a role"
                at = path.partition(".")[0]
                yield Refusal("the provider's check", "Invalid Attribute Value", message, at)


enter_patterns(
    Refuser("ec2/launchTemplate:LaunchTemplate", "CreateLaunchTemplate", "Invalid Attribute Value"),
    f"{_EC2}APIReference/API_LaunchTemplateIamInstanceProfileSpecificationRequest.html",
    (
        "iamInstanceProfile.arn",
        r"arn:aws[a-z-]*:iam::\d{12}:instance-profile/.+",
        "{0} is an invalid ARN of an instance profile",
    ),
)
enter_patterns(
    Refuser("cloudwatch/eventTarget:EventTarget", "PutTargets", "Invalid Attribute Value"),
    "https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_InputTransformer.html",
    (
        "inputTransformer.inputTemplate",
        r".{1,8192}",
        "expected length of input_template to be in the range (1 - 8192), got {0}",
    ),
)
enter_patterns(
    Refuser("scheduler/schedule:Schedule", "CreateSchedule", "Invalid Attribute Value"),
    f"{_SCHEDULER}API_CreateSchedule.html",
    *(
        (
            key,
            r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})",
            "expected a time as RFC 3339 has it, got {0}",
        )
        for key in ("startDate", "endDate")
    ),
)
enter_patterns(
    Refuser("scheduler/schedule:Schedule", "CreateSchedule", "Invalid Attribute Value"),
    f"{_SCHEDULER}API_Target.html",
    ("target.arn", r"arn:.+", "{0} is an invalid ARN: arn: invalid prefix"),
)
enter_patterns(
    Refuser("ec2/route:Route", "CreateRoute", "InvalidGatewayID.NotFound"),
    f"{_EC2}APIReference/API_CreateRoute.html",
    ("gatewayId", r"(igw|vgw|vpce)-.+|local", "The gateway ID '{0}' does not exist"),
)
for way in ("Ingress", "Egress"):
    token, operation = (
        f"vpc/securityGroup{way}Rule:SecurityGroup{way}Rule",
        f"AuthorizeSecurityGroup{way}",
    )
    enter_patterns(
        Refuser(token, operation, "InvalidGroupId.Malformed"),
        f"{_EC2}APIReference/API_UserIdGroupPair.html",
        (
            "referencedSecurityGroupId",
            r"(\d{12}/)?sg-.+",
            'Invalid id: "{0}" (expecting "sg-...")',
        ),
    )
    enter_patterns(
        Refuser(token, operation, "Invalid Attribute Value"),
        f"{_EC2}APIReference/API_IpRange.html",
        ("cidrIpv4", r"[^:]*", "{0} is no IPv4 CIDR block"),
    )
enter_patterns(
    _LISTENER,
    f"{_ELB}API_Action.html",
    (
        "defaultActions.*.targetGroupArn",
        r"arn:aws[a-z-]*:elasticloadbalancing:.+:targetgroup/.+",
        "'{0}' is not a valid target group ARN",
    ),
)
enter_patterns(
    _LISTENER,
    f"{_ELB}API_CreateListener.html",
    (
        "loadBalancerArn",
        r"arn:aws[a-z-]*:elasticloadbalancing:.+:loadbalancer/.+",
        "'{0}' is not a valid load balancer ARN",
    ),
)
enter_patterns(
    Refuser("lb/targetGroup:TargetGroup", "CreateTargetGroup", "ValidationError"),
    f"{_ELB}API_Matcher.html",
    (
        "healthCheck.matcher",
        r"\d{1,3}(-\d{1,3})?(,\d{1,3}(-\d{1,3})?)*",
        "Health check matcher '{0}' is not valid",
    ),
)
enter_patterns(
    Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError"),
    "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateAutoScalingGroup.html",
    (
        "targetGroupArns.*",
        r"arn:aws[a-z-]*:elasticloadbalancing:.+:targetgroup/.+",
        "Provided Target Groups may not be valid: {0}",
    ),
)
enter_patterns(
    Refuser("eks/cluster:Cluster", "CreateCluster", "InvalidParameterException"),
    f"{_EKS}APIReference/API_Provider.html",
    (
        "encryptionConfig.provider.keyArn",
        r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/.+",
        "{0} is not the ARN of a key",
    ),
)
enter_patterns(
    _NODES,
    f"{_EKS}userguide/eks-linux-ami-versions.html",
    (
        # Of Linux, of Bottlerocket (a commit's beginning), of Windows.
        "releaseVersion",
        r"1\.\d{2}\.\d+-[0-9a-f]{8}|1\.\d{2}-\d{4}\.\d{2}\.\d{2}",
        "Requested release version {0} is not valid",
    ),
)
enter_patterns(
    _NODES,
    f"{_EKS}APIReference/API_CreateNodegroup.html",
    ("instanceTypes.*", r"[a-z][a-z0-9-]*\.[a-z0-9-]+", "The instance type {0} does not exist"),
)
enter_patterns(
    Refuser("kms/alias:Alias", "CreateAlias", "ValidationException"),
    "https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateAlias.html",
    ("targetKeyId", r"(?!alias/).+", "Aliases must refer to keys. Not aliases"),
)
enter_patterns(
    Refuser("dynamodb/table:Table", "UpdateTimeToLive", "ValidationException"),
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TimeToLiveSpecification.html",
    ("ttl.attributeName", r".{0,255}", "Member must have length less than or equal to 255"),
)
enter_patterns(
    Refuser(
        "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        "PutBucketLifecycleConfiguration",
        "InvalidArgument",
    ),
    "https://docs.aws.amazon.com/AmazonS3/latest/API/API_LifecycleExpiration.html",
    (
        "rules.*.expiration.date",
        r"\d{4}-\d{2}-\d{2}T00:00:00(\.0+)?(Z|\+00:00)",
        "'Date' must be at midnight GMT",
    ),
)
enter_patterns(
    Refuser("cloudwatch/metricAlarm:MetricAlarm", "PutMetricAlarm", "Invalid Attribute Value"),
    "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
    (
        "evaluateLowSampleCountPercentiles",
        r"evaluate|ignore",
        "expected evaluate_low_sample_count_percentiles to be one of [evaluate ignore], got {0}",
    ),
)
