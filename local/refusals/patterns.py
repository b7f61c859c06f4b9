"""Inputs whose form no model states: a line each, with AWS's code and words and the source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from local.refusals.fields import values
from local.refusals.limits import LIMITS, InputLimit
from local.refusals.refusal import Refusal, Wanted

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_WATCH = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/"
_SNS = "https://docs.aws.amazon.com/sns/latest/api/"


@dataclass(frozen=True, slots=True)
class Pattern:
    """What an input of a type must match where it is given; `{0}` in the message is its value.

    `key` may be a dotted path: see fields.
    """

    token: str
    key: str
    expression: str
    operation: str
    code: str
    message: str
    source: str


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "sns/topic:Topic",
        "name",
        r"[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo",
        "CreateTopic",
        "InvalidParameter",
        "Invalid parameter: Topic Name",
        f"{_SNS}API_CreateTopic.html",
    ),
    Pattern(
        "sns/topic:Topic",
        "displayName",
        r".{0,100}",
        "SetTopicAttributes",
        "InvalidParameter",
        "Invalid parameter: DisplayName",
        f"{_SNS}API_SetTopicAttributes.html",
    ),
    Pattern(
        "cloudwatch/logGroup:LogGroup",
        "name",
        r"(?i:(?!aws/)).+",
        "CreateLogGroup",
        "InvalidParameterException",
        "Log groups starting with AWS/ are reserved for AWS.",
        "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html",
    ),
    Pattern(
        "cloudwatch/logGroup:LogGroup",
        "kmsKeyId",
        r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/.+",
        "CreateLogGroup",
        "InvalidParameterException",
        "The specified KMS key {0} is not a key's ARN.",
        "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html",
    ),
    Pattern(
        "eks/addon:Addon",
        "addonName",
        r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?",
        "CreateAddon",
        "InvalidParameterException",
        "Addon {0} specified is not supported",
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html",
    ),
    Pattern(
        "cloudwatch/dashboard:Dashboard",
        "dashboardName",
        r"[A-Za-z0-9_-]{1,255}",
        "PutDashboard",
        "InvalidParameterInput",
        "The value {0} for field DashboardName contains invalid characters.",
        f"{_WATCH}API_PutDashboard.html",
    ),
    Pattern(
        "secretsmanager/secret:Secret",
        "name",
        r"[A-Za-z0-9/_+=.@!-]{1,512}",
        "CreateSecret",
        "ValidationException",
        "Invalid name. Must be a valid name containing alphanumeric characters, or any of the "
        "following: -/_+=.@!",
        "https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_CreateSecret.html",
    ),
    Pattern(
        "eks/nodeGroup:NodeGroup",
        "nodeGroupName",
        r"[0-9A-Za-z][A-Za-z0-9_-]{0,62}",
        "CreateNodegroup",
        "InvalidParameterException",
        "The nodegroup name can have no more than 63 characters, and only alphanumeric characters, "
        "hyphens and underscores",
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateNodegroup.html",
    ),
    Pattern(
        "dynamodb/table:Table",
        "name",
        r"[a-zA-Z0-9_.-]{3,255}",
        "CreateTable",
        "ValidationException",
        "TableName must be at least 3 characters long and at most 255 characters long",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html",
    ),
    Pattern(
        "emrserverless/application:Application",
        "releaseLabel",
        r"emr(-[a-z]+)?-\d+\.\d+\.\d+(-[a-z0-9]+)?",
        "CreateApplication",
        "ValidationException",
        "ReleaseLabel {0} is not supported",
        "https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-versions.html",
    ),
    Pattern(
        "ec2/vpcEndpoint:VpcEndpoint",
        "serviceName",
        r"[a-z0-9-]+(\.[a-z0-9-]+)+",
        "CreateVpcEndpoint",
        "InvalidServiceName",
        "The Vpc Endpoint Service '{0}' does not exist",
        f"{_EC2}API_CreateVpcEndpoint.html",
    ),
    Pattern(
        "ec2/subnet:Subnet",
        "availabilityZone",
        r"[a-z]{2}(-[a-z]+)+-\d([a-z]|(-[a-z0-9]+)+)",
        "CreateSubnet",
        "InvalidParameterValue",
        "Value ({0}) for parameter availabilityZone is invalid.",
        f"{_EC2}API_CreateSubnet.html",
    ),
    *(
        Pattern(
            "eks/podIdentityAssociation:PodIdentityAssociation",
            name,
            r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?",
            "CreatePodIdentityAssociation",
            "InvalidParameterException",
            "The value {0} is no name of Kubernetes'.",
            "https://docs.aws.amazon.com/eks/latest/APIReference/API_CreatePodIdentityAssociation.html",
        )
        for name in ("namespace", "serviceAccount")
    ),
    Pattern(
        "autoscaling/group:Group",
        "name",
        r"[!-9;-~]{1,255}",
        "CreateAutoScalingGroup",
        "ValidationError",
        "AutoScalingGroupName {0} may have no colon, space or control character",
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    Pattern(
        "autoscaling/group:Group",
        "healthCheckType",
        r"(EC2|EBS|ELB|VPC_LATTICE)(,(EC2|EBS|ELB|VPC_LATTICE))*",
        "CreateAutoScalingGroup",
        "ValidationError",
        "Invalid HealthCheckType provided.",
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    Pattern(
        "autoscaling/lifecycleHook:LifecycleHook",
        "lifecycleTransition",
        r"autoscaling:EC2_INSTANCE_(LAUNCHING|TERMINATING)",
        "PutLifecycleHook",
        "ValidationError",
        "Invalid Lifecycle Transition provided.",
        f"{_SCALING}API_PutLifecycleHook.html",
    ),
    Pattern(
        "autoscaling/lifecycleHook:LifecycleHook",
        "defaultResult",
        r"CONTINUE|ABANDON",
        "PutLifecycleHook",
        "ValidationError",
        "Invalid Lifecycle Action Result provided.",
        f"{_SCALING}API_PutLifecycleHook.html",
    ),
    Pattern(
        "eks/accessEntry:AccessEntry",
        "principalArn",
        r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/.+",
        "CreateAccessEntry",
        "InvalidParameterException",
        "The specified principalArn is invalid: invalid principal.",
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAccessEntry.html",
    ),
    Pattern(
        "eks/accessEntry:AccessEntry",
        "userName",
        r"(?!(system|eks|aws|amazon|iam):).+",
        "CreateAccessEntry",
        "InvalidParameterException",
        "The username is invalid: username cannot begin with system:, eks:, aws:, amazon: or iam:",
        "https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html",
    ),
    *(
        Pattern(
            f"vpc/securityGroup{way}Rule:SecurityGroup{way}Rule",
            "ipProtocol",
            r"-1|tcp|udp|icmp|icmpv6|\d{1,2}|1\d{2}|2[0-4]\d|25[0-5]",
            f"AuthorizeSecurityGroup{way}",
            "InvalidParameterValue",
            "Invalid value '{0}' for IP protocol. Unknown protocol.",
            f"{_EC2}API_IpPermission.html",
        )
        for way in ("Ingress", "Egress")
    ),
)


def _limit(pattern: Pattern) -> InputLimit:
    compiled = re.compile(pattern.expression, re.DOTALL)

    def find(wanted: Wanted) -> Iterator[Refusal]:
        for value in values(wanted.inputs, pattern.key):
            if compiled.fullmatch(str(value)) is None:
                message = pattern.message.format(str(value)[:200])
                at = pattern.key.partition(".")[0]
                yield Refusal(pattern.operation, pattern.code, message, at)

    name = f"{pattern.key}-of-{pattern.token.partition(':')[2]}"
    return InputLimit(name, (f"aws:{pattern.token}",), pattern.source, find)


def enter(*patterns: Pattern) -> None:
    """Enter patterns among the limits."""
    LIMITS.extend(map(_limit, patterns))


enter(*PATTERNS)
