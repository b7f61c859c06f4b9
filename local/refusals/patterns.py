"""Inputs whose form no model states: a line each, with AWS's code and words and the source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from local.refusals.limits import Refuser, enter_line

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_WATCH = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/"
_SNS = "https://docs.aws.amazon.com/sns/latest/api/"


@dataclass(frozen=True, slots=True)
class Pattern:
    """What an input of a type must match where it is given; `{0}` in the message is its value.

    `key` may be a dotted path: see fields.
    """

    of: Refuser
    key: str
    expression: str
    message: str
    source: str


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        Refuser("sns/topic:Topic", "CreateTopic", "InvalidParameter"),
        "name",
        r"[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo",
        "Invalid parameter: Topic Name",
        f"{_SNS}API_CreateTopic.html",
    ),
    Pattern(
        Refuser("sns/topic:Topic", "SetTopicAttributes", "InvalidParameter"),
        "displayName",
        r".{0,100}",
        "Invalid parameter: DisplayName",
        f"{_SNS}API_SetTopicAttributes.html",
    ),
    Pattern(
        Refuser("cloudwatch/logGroup:LogGroup", "CreateLogGroup", "InvalidParameterException"),
        "name",
        r"(?i:(?!aws/)).+",
        "Log groups starting with AWS/ are reserved for AWS.",
        "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html",
    ),
    Pattern(
        Refuser("cloudwatch/logGroup:LogGroup", "CreateLogGroup", "InvalidParameterException"),
        "kmsKeyId",
        r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/.+",
        "The specified KMS key {0} is not a key's ARN.",
        "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html",
    ),
    Pattern(
        Refuser("eks/addon:Addon", "CreateAddon", "InvalidParameterException"),
        "addonName",
        r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?",
        "Addon {0} specified is not supported",
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html",
    ),
    Pattern(
        Refuser("cloudwatch/dashboard:Dashboard", "PutDashboard", "InvalidParameterInput"),
        "dashboardName",
        r"[A-Za-z0-9_-]{1,255}",
        "The value {0} for field DashboardName contains invalid characters.",
        f"{_WATCH}API_PutDashboard.html",
    ),
    Pattern(
        Refuser("secretsmanager/secret:Secret", "CreateSecret", "ValidationException"),
        "name",
        r"[A-Za-z0-9/_+=.@!-]{1,512}",
        "Invalid name. Must be a valid name containing alphanumeric characters, or any of the "
        "following: -/_+=.@!",
        "https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_CreateSecret.html",
    ),
    Pattern(
        Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException"),
        "nodeGroupName",
        r"[0-9A-Za-z][A-Za-z0-9_-]{0,62}",
        "The nodegroup name can have no more than 63 characters, and only alphanumeric characters, "
        "hyphens and underscores",
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateNodegroup.html",
    ),
    Pattern(
        Refuser("dynamodb/table:Table", "CreateTable", "ValidationException"),
        "name",
        r"[a-zA-Z0-9_.-]{3,255}",
        "TableName must be at least 3 characters long and at most 255 characters long",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html",
    ),
    Pattern(
        Refuser(
            "emrserverless/application:Application", "CreateApplication", "ValidationException"
        ),
        "releaseLabel",
        r"emr(-[a-z]+)?-\d+\.\d+\.\d+(-[a-z0-9]+)?",
        "ReleaseLabel {0} is not supported",
        "https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-versions.html",
    ),
    Pattern(
        Refuser("ec2/vpcEndpoint:VpcEndpoint", "CreateVpcEndpoint", "InvalidServiceName"),
        "serviceName",
        r"[a-z0-9-]+(\.[a-z0-9-]+)+",
        "The Vpc Endpoint Service '{0}' does not exist",
        f"{_EC2}API_CreateVpcEndpoint.html",
    ),
    Pattern(
        Refuser("ec2/subnet:Subnet", "CreateSubnet", "InvalidParameterValue"),
        "availabilityZone",
        r"[a-z]{2}(-[a-z]+)+-\d([a-z]|(-[a-z0-9]+)+)",
        "Value ({0}) for parameter availabilityZone is invalid.",
        f"{_EC2}API_CreateSubnet.html",
    ),
    *(
        Pattern(
            Refuser(
                "eks/podIdentityAssociation:PodIdentityAssociation",
                "CreatePodIdentityAssociation",
                "InvalidParameterException",
            ),
            name,
            r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?",
            "The value {0} is no name of Kubernetes'.",
            "https://docs.aws.amazon.com/eks/latest/APIReference/API_CreatePodIdentityAssociation.html",
        )
        for name in ("namespace", "serviceAccount")
    ),
    Pattern(
        Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError"),
        "name",
        r"[!-9;-~]{1,255}",
        "AutoScalingGroupName {0} may have no colon, space or control character",
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    Pattern(
        Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError"),
        "healthCheckType",
        r"(EC2|EBS|ELB|VPC_LATTICE)(,(EC2|EBS|ELB|VPC_LATTICE))*",
        "Invalid HealthCheckType provided.",
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    Pattern(
        Refuser("autoscaling/lifecycleHook:LifecycleHook", "PutLifecycleHook", "ValidationError"),
        "lifecycleTransition",
        r"autoscaling:EC2_INSTANCE_(LAUNCHING|TERMINATING)",
        "Invalid Lifecycle Transition provided.",
        f"{_SCALING}API_PutLifecycleHook.html",
    ),
    Pattern(
        Refuser("autoscaling/lifecycleHook:LifecycleHook", "PutLifecycleHook", "ValidationError"),
        "defaultResult",
        r"CONTINUE|ABANDON",
        "Invalid Lifecycle Action Result provided.",
        f"{_SCALING}API_PutLifecycleHook.html",
    ),
    Pattern(
        Refuser("eks/accessEntry:AccessEntry", "CreateAccessEntry", "InvalidParameterException"),
        "principalArn",
        r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/.+",
        "The specified principalArn is invalid: invalid principal.",
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAccessEntry.html",
    ),
    Pattern(
        Refuser("eks/accessEntry:AccessEntry", "CreateAccessEntry", "InvalidParameterException"),
        "userName",
        r"(?!(system|eks|aws|amazon|iam):).+",
        "The username is invalid: username cannot begin with system:, eks:, aws:, amazon: or iam:",
        "https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html",
    ),
    *(
        Pattern(
            Refuser(
                f"vpc/securityGroup{way}Rule:SecurityGroup{way}Rule",
                f"AuthorizeSecurityGroup{way}",
                "InvalidParameterValue",
            ),
            "ipProtocol",
            r"-1|tcp|udp|icmp|icmpv6|\d{1,2}|1\d{2}|2[0-4]\d|25[0-5]",
            "Invalid value '{0}' for IP protocol. Unknown protocol.",
            f"{_EC2}API_IpPermission.html",
        )
        for way in ("Ingress", "Egress")
    ),
    Pattern(
        Refuser("lambda/function:Function", "CreateFunction", "ValidationException"),
        # The model's 140 are of an ARN.
        "name",
        r".{0,64}",
        "1 validation error detected: Value '{0}' at 'functionName' failed to satisfy constraint: "
        "Member must have length less than or equal to 64",
        "https://docs.aws.amazon.com/lambda/latest/api/API_CreateFunction.html",
    ),
    Pattern(
        Refuser(
            "ec2/launchTemplate:LaunchTemplate",
            "CreateLaunchTemplate",
            "InvalidLaunchTemplateName.MalformedException",
        ),
        "name",
        r"[a-zA-Z0-9().\-/_]{3,128}",
        "A launch template name must be between 3 and 128 characters, and may contain letters, "
        "numbers, and the following characters: - ( ) . / _.",
        f"{_EC2}API_CreateLaunchTemplate.html",
    ),
    Pattern(
        # Athena and Spark find no other.
        Refuser("glue/catalogDatabase:CatalogDatabase", "CreateDatabase", "InvalidInputException"),
        "name",
        r"[a-z0-9_]{1,255}",
        "Database name {0} must be lower-case letters, digits and underscores",
        "https://docs.aws.amazon.com/athena/latest/ug/tables-databases-columns-names.html",
    ),
    Pattern(
        Refuser(
            "ec2/vpcEndpointService:VpcEndpointService",
            "ModifyVpcEndpointServicePermissions",
            "InvalidPrincipal",
        ),
        "allowedPrincipals.*",
        r"\*|arn:aws[a-z-]*:iam::\d{12}:(root|(user|role)/\S+)",
        "Invalid Principal: '{0}'",
        f"{_EC2}API_ModifyVpcEndpointServicePermissions.html",
    ),
    Pattern(
        # As DescribeAddonVersions lists them; which of them there are, only the account knows.
        Refuser("eks/addon:Addon", "CreateAddon", "InvalidParameterException"),
        "addonVersion",
        r"v\d+\.\d+\.\d+-eksbuild\.\d+",
        "Addon version specified is not supported",
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html",
    ),
)


def enter(*patterns: Pattern) -> None:
    """Enter patterns among the limits."""
    for pattern in patterns:
        enter_line(pattern.of, pattern.key, pattern.source, partial(_mismatch, pattern))


def _mismatch(pattern: Pattern, value: Any) -> str:
    fits = re.fullmatch(pattern.expression, str(value), re.DOTALL)
    return "" if fits else pattern.message.format(str(value)[:200])


enter(*PATTERNS)
