"""Ids and ARNs by their form, on whatever resource they are given: a line each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.fields import values
from local.refusals.limits import EVERY_TYPE, Refuser, limit
from local.refusals.patterns import Pattern, enter
from local.refusals.refusal import Refusal, Wanted

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/"
_IAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/"
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


enter(
    Pattern(
        Refuser(
            "ec2/launchTemplate:LaunchTemplate", "CreateLaunchTemplate", "Invalid Attribute Value"
        ),
        "iamInstanceProfile.arn",
        r"arn:aws[a-z-]*:iam::\d{12}:instance-profile/.+",
        "{0} is an invalid ARN of an instance profile",
        f"{_EC2}APIReference/API_LaunchTemplateIamInstanceProfileSpecificationRequest.html",
    ),
    Pattern(
        Refuser("cloudwatch/eventTarget:EventTarget", "PutTargets", "Invalid Attribute Value"),
        "inputTransformer.inputTemplate",
        r".{1,8192}",
        "expected length of input_template to be in the range (1 - 8192), got {0}",
        "https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_InputTransformer.html",
    ),
    *(
        Pattern(
            Refuser("scheduler/schedule:Schedule", "CreateSchedule", "Invalid Attribute Value"),
            key,
            r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})",
            "expected a time as RFC 3339 has it, got {0}",
            "https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html",
        )
        for key in ("startDate", "endDate")
    ),
    Pattern(
        Refuser("ec2/route:Route", "CreateRoute", "InvalidGatewayID.NotFound"),
        "gatewayId",
        r"(igw|vgw|vpce)-.+|local",
        "The gateway ID '{0}' does not exist",
        f"{_EC2}APIReference/API_CreateRoute.html",
    ),
    *(
        Pattern(
            Refuser(
                f"vpc/securityGroup{way}Rule:SecurityGroup{way}Rule",
                f"AuthorizeSecurityGroup{way}",
                "InvalidGroupId.Malformed",
            ),
            "referencedSecurityGroupId",
            r"(\d{12}/)?sg-.+",
            'Invalid id: "{0}" (expecting "sg-...")',
            f"{_EC2}APIReference/API_UserIdGroupPair.html",
        )
        for way in ("Ingress", "Egress")
    ),
    *(
        Pattern(
            Refuser(
                f"vpc/securityGroup{way}Rule:SecurityGroup{way}Rule",
                f"AuthorizeSecurityGroup{way}",
                "Invalid Attribute Value",
            ),
            "cidrIpv4",
            r"[^:]*",
            "{0} is no IPv4 CIDR block",
            f"{_EC2}APIReference/API_IpRange.html",
        )
        for way in ("Ingress", "Egress")
    ),
    Pattern(
        Refuser("lb/listener:Listener", "CreateListener", "ValidationError"),
        "defaultActions.*.targetGroupArn",
        r"arn:aws[a-z-]*:elasticloadbalancing:.+:targetgroup/.+",
        "'{0}' is not a valid target group ARN",
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_Action.html",
    ),
    Pattern(
        Refuser("lb/listener:Listener", "CreateListener", "ValidationError"),
        "loadBalancerArn",
        r"arn:aws[a-z-]*:elasticloadbalancing:.+:loadbalancer/.+",
        "'{0}' is not a valid load balancer ARN",
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_CreateListener.html",
    ),
    Pattern(
        Refuser("lb/targetGroup:TargetGroup", "CreateTargetGroup", "ValidationError"),
        "healthCheck.matcher",
        r"\d{1,3}(-\d{1,3})?(,\d{1,3}(-\d{1,3})?)*",
        "Health check matcher '{0}' is not valid",
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_Matcher.html",
    ),
    Pattern(
        Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError"),
        "targetGroupArns.*",
        r"arn:aws[a-z-]*:elasticloadbalancing:.+:targetgroup/.+",
        "Provided Target Groups may not be valid: {0}",
        "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateAutoScalingGroup.html",
    ),
    Pattern(
        Refuser("eks/cluster:Cluster", "CreateCluster", "InvalidParameterException"),
        "encryptionConfig.provider.keyArn",
        r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/.+",
        "{0} is not the ARN of a key",
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_Provider.html",
    ),
    Pattern(
        Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException"),
        # Of Linux, of Bottlerocket (a commit's beginning), of Windows.
        "releaseVersion",
        r"1\.\d{2}\.\d+-[0-9a-f]{8}|1\.\d{2}-\d{4}\.\d{2}\.\d{2}",
        "Requested release version {0} is not valid",
        "https://docs.aws.amazon.com/eks/latest/userguide/eks-linux-ami-versions.html",
    ),
    Pattern(
        Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException"),
        "instanceTypes.*",
        r"[a-z][a-z0-9-]*\.[a-z0-9-]+",
        "The instance type {0} does not exist",
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateNodegroup.html",
    ),
    Pattern(
        Refuser("kms/alias:Alias", "CreateAlias", "ValidationException"),
        "targetKeyId",
        r"(?!alias/).+",
        "Aliases must refer to keys. Not aliases",
        "https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateAlias.html",
    ),
    Pattern(
        Refuser("dynamodb/table:Table", "UpdateTimeToLive", "ValidationException"),
        "ttl.attributeName",
        r".{0,255}",
        "Member must have length less than or equal to 255",
        "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TimeToLiveSpecification.html",
    ),
    Pattern(
        Refuser(
            "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
            "PutBucketLifecycleConfiguration",
            "InvalidArgument",
        ),
        "rules.*.expiration.date",
        r"\d{4}-\d{2}-\d{2}T00:00:00(\.0+)?(Z|\+00:00)",
        "'Date' must be at midnight GMT",
        "https://docs.aws.amazon.com/AmazonS3/latest/API/API_LifecycleExpiration.html",
    ),
    Pattern(
        Refuser("cloudwatch/metricAlarm:MetricAlarm", "PutMetricAlarm", "Invalid Attribute Value"),
        "evaluateLowSampleCountPercentiles",
        r"evaluate|ignore",
        "expected evaluate_low_sample_count_percentiles to be one of [evaluate ignore], got {0}",
        "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
    ),
    Pattern(
        Refuser("scheduler/schedule:Schedule", "CreateSchedule", "Invalid Attribute Value"),
        "target.arn",
        r"arn:.+",
        "{0} is an invalid ARN: arn: invalid prefix",
        "https://docs.aws.amazon.com/scheduler/latest/APIReference/API_Target.html",
    ),
)
