"""Inputs that are one of a few words where no model of AWS's lists them: a line each.

`PROVIDER` marks what the provider's own schema turns down before any call is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from local.refusals.limits import Refuser, enter_line

PROVIDER = "Invalid Attribute Value"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_BALANCING = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/"
_TABLES = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
_REGISTRY = "https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/"
_TEMPLATES = f"{_REGISTRY}launch_template"
_GROUP, _TEMPLATE = "autoscaling/group:Group", "ec2/launchTemplate:LaunchTemplate"
_BALANCER, _LISTENER = "lb/loadBalancer:LoadBalancer", "lb/listener:Listener"
_TARGETS, _TABLE = "lb/targetGroup:TargetGroup", "dynamodb/table:Table"


@dataclass(frozen=True, slots=True)
class AllowedWords:
    """What an input may say; `fold`: whatever its case."""

    of: Refuser
    path: str
    allowed: tuple[str, ...]
    source: str
    fold: bool = False


_METRICS = (
    *("GroupMinSize", "GroupMaxSize", "GroupDesiredCapacity", "GroupInServiceInstances"),
    *("GroupPendingInstances", "GroupStandbyInstances", "GroupTerminatingInstances"),
    *("GroupTotalInstances", "GroupInServiceCapacity", "GroupPendingCapacity"),
    *("GroupStandbyCapacity", "GroupTerminatingCapacity", "GroupTotalCapacity"),
    *("WarmPoolDesiredCapacity", "WarmPoolWarmedCapacity", "WarmPoolPendingCapacity"),
    *("WarmPoolTerminatingCapacity", "WarmPoolTotalCapacity"),
    *("GroupAndWarmPoolDesiredCapacity", "GroupAndWarmPoolTotalCapacity"),
)
_DISTRIBUTION = "mixedInstancesPolicy.instancesDistribution"

WORDS: tuple[AllowedWords, ...] = (
    AllowedWords(
        Refuser(_GROUP, "EnableMetricsCollection", "ValidationError"),
        "metricsGranularity",
        ("1Minute",),
        f"{_SCALING}API_EnableMetricsCollection.html",
    ),
    AllowedWords(
        Refuser(_GROUP, "EnableMetricsCollection", "ValidationError"),
        "enabledMetrics.*",
        _METRICS,
        f"{_SCALING}API_EnableMetricsCollection.html",
    ),
    AllowedWords(
        Refuser(_GROUP, "CreateAutoScalingGroup", "ValidationError"),
        "desiredCapacityType",
        ("units", "vcpu", "memory-mib"),
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    AllowedWords(
        Refuser(_GROUP, "CreateAutoScalingGroup", "ValidationError"),
        f"{_DISTRIBUTION}.onDemandAllocationStrategy",
        ("lowest-price", "prioritized"),
        f"{_SCALING}API_InstancesDistribution.html",
    ),
    AllowedWords(
        Refuser(_GROUP, "CreateAutoScalingGroup", "ValidationError"),
        f"{_DISTRIBUTION}.spotAllocationStrategy",
        (
            "capacity-optimized",
            "capacity-optimized-prioritized",
            "lowest-price",
            "price-capacity-optimized",
        ),
        f"{_SCALING}API_InstancesDistribution.html",
    ),
    *(
        AllowedWords(
            Refuser(_GROUP, "CreateAutoScalingGroup", PROVIDER),
            path,
            allowed,
            f"{_REGISTRY}autoscaling_group",
        )
        for path, allowed in (
            ("instanceRefresh.strategy", ("Rolling", "ReplaceRootVolume")),
            ("warmPool.poolState", ("Stopped", "Running", "Hibernated")),
            ("initialLifecycleHooks.*.defaultResult", ("CONTINUE", "ABANDON")),
            (
                "initialLifecycleHooks.*.lifecycleTransition",
                ("autoscaling:EC2_INSTANCE_LAUNCHING", "autoscaling:EC2_INSTANCE_TERMINATING"),
            ),
        )
    ),
    *(
        AllowedWords(
            Refuser(_TEMPLATE, "CreateLaunchTemplate", PROVIDER),
            path,
            ("true", "false"),
            _TEMPLATES,
            fold=True,
        )
        for path in (
            *("blockDeviceMappings.*.ebs.encrypted", "ebsOptimized", "monitoring.enabled"),
            "blockDeviceMappings.*.ebs.deleteOnTermination",
        )
    ),
    AllowedWords(
        Refuser(_TEMPLATE, "CreateLaunchTemplate", "InvalidParameterValue"),
        "creditSpecification.cpuCredits",
        ("standard", "unlimited"),
        f"{_EC2}API_CreditSpecificationRequest.html",
    ),
    AllowedWords(
        Refuser("ec2/vpc:Vpc", "CreateVpc", PROVIDER),
        "instanceTenancy",
        ("default", "dedicated"),
        f"{_EC2}API_CreateVpc.html",
    ),
    AllowedWords(
        Refuser(
            "ec2/vpcEndpointService:VpcEndpointService",
            "CreateVpcEndpointServiceConfiguration",
            PROVIDER,
        ),
        "supportedIpAddressTypes.*",
        ("ipv4", "ipv6"),
        f"{_EC2}API_CreateVpcEndpointServiceConfiguration.html",
    ),
    *(
        AllowedWords(
            Refuser("eks/addon:Addon", operation, PROVIDER), key, allowed, f"{_REGISTRY}eks_addon"
        )
        for key, allowed, operation in (
            ("resolveConflictsOnCreate", ("NONE", "OVERWRITE"), "CreateAddon"),
            ("resolveConflictsOnUpdate", ("NONE", "OVERWRITE", "PRESERVE"), "UpdateAddon"),
        )
    ),
    AllowedWords(
        Refuser("emrserverless/application:Application", "CreateApplication", PROVIDER),
        "type",
        ("SPARK", "HIVE"),
        f"{_REGISTRY}emrserverless_application",
        fold=True,
    ),
    AllowedWords(
        Refuser(_LISTENER, "CreateListener", PROVIDER),
        "alpnPolicy",
        ("HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred", "None"),
        f"{_BALANCING}API_CreateListener.html",
        fold=True,
    ),
    AllowedWords(
        Refuser(_BALANCER, "ModifyLoadBalancerAttributes", PROVIDER),
        "dnsRecordClientRoutingPolicy",
        (
            "any_availability_zone",
            "availability_zone_affinity",
            "partial_availability_zone_affinity",
        ),
        f"{_BALANCING}API_LoadBalancerAttribute.html",
    ),
    AllowedWords(
        Refuser(_BALANCER, "SetSecurityGroups", PROVIDER),
        "enforceSecurityGroupInboundRulesOnPrivateLinkTraffic",
        ("on", "off"),
        f"{_BALANCING}API_SetSecurityGroups.html",
    ),
    AllowedWords(
        Refuser(_TARGETS, "ModifyTargetGroupAttributes", PROVIDER),
        "preserveClientIp",
        ("true", "false"),
        f"{_REGISTRY}lb_target_group",
        fold=True,
    ),
    AllowedWords(
        Refuser(_TARGETS, "ModifyTargetGroupAttributes", PROVIDER),
        "loadBalancingCrossZoneEnabled",
        ("true", "false", "use_load_balancer_configuration"),
        f"{_REGISTRY}lb_target_group",
        fold=True,
    ),
    AllowedWords(
        Refuser(_TARGETS, "ModifyTargetGroupAttributes", PROVIDER),
        "stickiness.type",
        (
            *("app_cookie", "lb_cookie", "source_ip", "source_ip_dest_ip"),
            "source_ip_dest_ip_proto",
        ),
        f"{_REGISTRY}lb_target_group",
    ),
    AllowedWords(
        Refuser(_TABLE, "CreateTable", "ValidationException"),
        "streamViewType",
        ("KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE"),
        f"{_TABLES}API_StreamSpecification.html",
    ),
    AllowedWords(
        Refuser("lambda/permission:Permission", "AddPermission", PROVIDER),
        "functionUrlAuthType",
        ("AWS_IAM", "NONE"),
        "https://docs.aws.amazon.com/lambda/latest/api/API_AddPermission.html",
    ),
    AllowedWords(
        Refuser("sns/topic:Topic", "SetTopicAttributes", PROVIDER),
        "signatureVersion",
        ("1", "2"),
        "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
    ),
    AllowedWords(
        Refuser("sns/topic:Topic", "SetTopicAttributes", PROVIDER),
        "tracingConfig",
        ("Active", "PassThrough"),
        "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
    ),
    AllowedWords(
        Refuser("route53/record:Record", "ChangeResourceRecordSets", PROVIDER),
        "failoverRoutingPolicies.*.type",
        ("PRIMARY", "SECONDARY"),
        "https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html",
    ),
    AllowedWords(
        Refuser("sqs/queue:Queue", "CreateQueue", PROVIDER),
        "deduplicationScope",
        ("messageGroup", "queue"),
        "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html",
    ),
    AllowedWords(
        Refuser("sqs/queue:Queue", "CreateQueue", PROVIDER),
        "fifoThroughputLimit",
        ("perQueue", "perMessageGroupId"),
        "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html",
    ),
)


def _unknown_word(words: AllowedWords, value: Any) -> str:
    said, allowed = _value_text(value), words.allowed
    if said in allowed or (words.fold and said.lower() in map(str.lower, allowed)):
        return ""
    known = f"expected {words.path} to be one of [{', '.join(allowed)}]"
    return f"{known}, got {str(value)[:200]}"


def _value_text(value: object) -> str:
    # The engine's numbers are floats.
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole and isinstance(value, float) else str(value)


def enter_words(*words: AllowedWords) -> None:
    """Enter lines of words among the limits."""
    for each in words:
        enter_line(each.of, each.path, each.source, partial(_unknown_word, each))


enter_words(*WORDS)
