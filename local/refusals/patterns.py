"""Inputs whose form no model states: a line each, below whose refusal and page it is."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from local.refusals.limits import Refuser, enter_line

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_EKS = "https://docs.aws.amazon.com/eks/latest/APIReference/"
_LOGS = "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_SNS = "https://docs.aws.amazon.com/sns/latest/api/"
_ADDON = Refuser("eks/addon:Addon", "CreateAddon", "InvalidParameterException")
_ENTRY = Refuser("eks/accessEntry:AccessEntry", "CreateAccessEntry", "InvalidParameterException")


def enter_patterns(of: Refuser, source: str, *rows: tuple[str, str, str]) -> None:
    """Enter what inputs must match where they are given: (path, expression, message).

    A path may be a dotted one: see fields. `{0}` in a message is the value.
    """
    for path, expression, message in rows:
        enter_line(of, path, source, partial(_mismatch, expression, message))


def enter_forms(of: Refuser, source: str, *rows: tuple[str, str]) -> None:
    """Enter what inputs must match where nobody was shown AWS's words: (path, expression)."""
    for path, expression in rows:
        message = f"Value '{{0}}' at '{path}' is not valid"
        enter_patterns(of, source, (path, expression, message))


def _mismatch(expression: str, message: str, value: Any) -> str:
    fits = re.fullmatch(expression, str(value), re.DOTALL)
    return "" if fits else message.format(str(value)[:200])


enter_patterns(
    Refuser("sns/topic:Topic", "CreateTopic", "InvalidParameter"),
    f"{_SNS}API_CreateTopic.html",
    ("name", r"[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo", "Invalid parameter: Topic Name"),
)
enter_patterns(
    Refuser("sns/topic:Topic", "SetTopicAttributes", "InvalidParameter"),
    f"{_SNS}API_SetTopicAttributes.html",
    ("displayName", r".{0,100}", "Invalid parameter: DisplayName"),
)
enter_patterns(
    Refuser("cloudwatch/logGroup:LogGroup", "CreateLogGroup", "InvalidParameterException"),
    f"{_LOGS}API_CreateLogGroup.html",
    ("name", r"(?i:(?!aws/)).+", "Log groups starting with AWS/ are reserved for AWS."),
    (
        "kmsKeyId",
        r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/.+",
        "The specified KMS key {0} is not a key's ARN.",
    ),
)
enter_patterns(
    _ADDON,
    f"{_EKS}API_DescribeAddonVersions.html",
    ("addonName", r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?", "Addon {0} specified is not supported"),
    # As DescribeAddonVersions lists them; which of them there are, only the account knows.
    ("addonVersion", r"v\d+\.\d+\.\d+-eksbuild\.\d+", "Addon version specified is not supported"),
)
enter_patterns(
    Refuser("cloudwatch/dashboard:Dashboard", "PutDashboard", "InvalidParameterInput"),
    "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutDashboard.html",
    (
        "dashboardName",
        r"[A-Za-z0-9_-]{1,255}",
        "The value {0} for field DashboardName contains invalid characters.",
    ),
)
enter_patterns(
    Refuser("secretsmanager/secret:Secret", "CreateSecret", "ValidationException"),
    "https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_CreateSecret.html",
    (
        "name",
        r"[A-Za-z0-9/_+=.@!-]{1,512}",
        (
            "Invalid name. Must be a valid name containing alphanumeric characters, or any of the "
            "following: -/_+=.@!"
        ),
    ),
)
enter_patterns(
    Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException"),
    f"{_EKS}API_CreateNodegroup.html",
    (
        "nodeGroupName",
        r"[0-9A-Za-z][A-Za-z0-9_-]{0,62}",
        (
            "The nodegroup name can have no more than 63 characters, and only alphanumeric "
            "characters, hyphens and underscores"
        ),
    ),
)
enter_patterns(
    Refuser("dynamodb/table:Table", "CreateTable", "ValidationException"),
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html",
    (
        "name",
        r"[a-zA-Z0-9_.-]{3,255}",
        "TableName must be at least 3 characters long and at most 255 characters long",
    ),
)
enter_patterns(
    Refuser("emrserverless/application:Application", "CreateApplication", "ValidationException"),
    "https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-versions.html",
    (
        "releaseLabel",
        r"emr(-[a-z]+)?-\d+\.\d+\.\d+(-[a-z0-9]+)?",
        "ReleaseLabel {0} is not supported",
    ),
)
enter_patterns(
    Refuser("ec2/vpcEndpoint:VpcEndpoint", "CreateVpcEndpoint", "InvalidServiceName"),
    f"{_EC2}API_CreateVpcEndpoint.html",
    (
        "serviceName",
        r"[a-z0-9-]+(\.[a-z0-9-]+)+",
        "The Vpc Endpoint Service '{0}' does not exist",
    ),
)
enter_patterns(
    Refuser("ec2/subnet:Subnet", "CreateSubnet", "InvalidParameterValue"),
    f"{_EC2}API_CreateSubnet.html",
    (
        "availabilityZone",
        r"[a-z]{2}(-[a-z]+)+-\d([a-z]|(-[a-z0-9]+)+)",
        "Value ({0}) for parameter availabilityZone is invalid.",
    ),
)
enter_patterns(
    Refuser(
        "eks/podIdentityAssociation:PodIdentityAssociation",
        "CreatePodIdentityAssociation",
        "InvalidParameterException",
    ),
    f"{_EKS}API_CreatePodIdentityAssociation.html",
    *(
        (key, r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", "The value {0} is no name of Kubernetes'.")
        for key in ("namespace", "serviceAccount")
    ),
)
enter_patterns(
    Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError"),
    f"{_SCALING}API_CreateAutoScalingGroup.html",
    (
        "name",
        r"[!-9;-~]{1,255}",
        "AutoScalingGroupName {0} may have no colon, space or control character",
    ),
    (
        "healthCheckType",
        r"(EC2|EBS|ELB|VPC_LATTICE)(,(EC2|EBS|ELB|VPC_LATTICE))*",
        "Invalid HealthCheckType provided.",
    ),
)
enter_patterns(
    Refuser("autoscaling/lifecycleHook:LifecycleHook", "PutLifecycleHook", "ValidationError"),
    f"{_SCALING}API_PutLifecycleHook.html",
    (
        "lifecycleTransition",
        r"autoscaling:EC2_INSTANCE_(LAUNCHING|TERMINATING)",
        "Invalid Lifecycle Transition provided.",
    ),
    ("defaultResult", r"CONTINUE|ABANDON", "Invalid Lifecycle Action Result provided."),
)
enter_patterns(
    _ENTRY,
    f"{_EKS}API_CreateAccessEntry.html",
    (
        "principalArn",
        r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/.+",
        "The specified principalArn is invalid: invalid principal.",
    ),
)
enter_patterns(
    _ENTRY,
    "https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html",
    (
        "userName",
        r"(?!(system|eks|aws|amazon|iam):).+",
        "The username is invalid: username cannot begin with system:, eks:, aws:, amazon: or iam:",
    ),
)
for way in ("Ingress", "Egress"):
    enter_patterns(
        Refuser(
            f"vpc/securityGroup{way}Rule:SecurityGroup{way}Rule",
            f"AuthorizeSecurityGroup{way}",
            "InvalidParameterValue",
        ),
        f"{_EC2}API_IpPermission.html",
        (
            "ipProtocol",
            r"-1|tcp|udp|icmp|icmpv6|\d{1,2}|1\d{2}|2[0-4]\d|25[0-5]",
            "Invalid value '{0}' for IP protocol. Unknown protocol.",
        ),
    )
enter_patterns(
    Refuser("lambda/function:Function", "CreateFunction", "ValidationException"),
    "https://docs.aws.amazon.com/lambda/latest/api/API_CreateFunction.html",
    (
        # The model's 140 are of an ARN.
        "name",
        r".{0,64}",
        (
            "1 validation error detected: Value '{0}' at 'functionName' failed to satisfy "
            "constraint: Member must have length less than or equal to 64"
        ),
    ),
)
enter_patterns(
    Refuser(
        "ec2/launchTemplate:LaunchTemplate",
        "CreateLaunchTemplate",
        "InvalidLaunchTemplateName.MalformedException",
    ),
    f"{_EC2}API_CreateLaunchTemplate.html",
    (
        "name",
        r"[a-zA-Z0-9().\-/_]{3,128}",
        (
            "A launch template name must be between 3 and 128 characters, and may contain letters, "
            "numbers, and the following characters: - ( ) . / _."
        ),
    ),
)
enter_patterns(
    # Athena and Spark find no other.
    Refuser("glue/catalogDatabase:CatalogDatabase", "CreateDatabase", "InvalidInputException"),
    "https://docs.aws.amazon.com/athena/latest/ug/tables-databases-columns-names.html",
    (
        "name",
        r"[a-z0-9_]{1,255}",
        "Database name {0} must be lower-case letters, digits and underscores",
    ),
)
enter_patterns(
    Refuser(
        "ec2/vpcEndpointService:VpcEndpointService",
        "ModifyVpcEndpointServicePermissions",
        "InvalidPrincipal",
    ),
    f"{_EC2}API_ModifyVpcEndpointServicePermissions.html",
    (
        "allowedPrincipals.*",
        # "Principal ARNs with path components aren't supported."
        r"\*|arn:aws[a-z-]*:iam::\d{12}:(root|(user|role)/[^\s/]+)",
        "Invalid Principal: '{0}'",
    ),
)
