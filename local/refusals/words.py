"""Inputs that are one of a few words where no model of AWS's lists them: a line each.

`PROVIDER` marks what the provider's own schema turns down before any call is made.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from local.refusals.limits import Refuser, enter_line

PROVIDER = "Invalid Attribute Value"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_BALANCING = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/"
_REGISTRY = "https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/"
_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
_GROUP, _TEMPLATE = "autoscaling/group:Group", "ec2/launchTemplate:LaunchTemplate"
_TARGETS = "lb/targetGroup:TargetGroup"
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


def enter_words(
    of: Refuser, source: str, *rows: tuple[str, tuple[str, ...]], fold: bool = False
) -> None:
    """Enter what inputs may say: (path, words); `fold`: whatever their case."""
    for path, words in rows:
        enter_line(of, path, source, partial(_unknown_word, path, words, fold=fold))


def _unknown_word(path: str, words: tuple[str, ...], value: Any, *, fold: bool) -> str:
    said = _value_text(value)
    if said in words or (fold and said.lower() in map(str.lower, words)):
        return ""
    return f"expected {path} to be one of [{', '.join(words)}], got {str(value)[:200]}"


def _value_text(value: object) -> str:
    # The engine's numbers are floats.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


enter_words(
    Refuser(_GROUP, "EnableMetricsCollection", "ValidationError"),
    f"{_SCALING}API_EnableMetricsCollection.html",
    ("metricsGranularity", ("1Minute",)),
    ("enabledMetrics.*", _METRICS),
)
enter_words(
    Refuser(_GROUP, "CreateAutoScalingGroup", "ValidationError"),
    f"{_SCALING}API_CreateAutoScalingGroup.html",
    ("desiredCapacityType", ("units", "vcpu", "memory-mib")),
)
enter_words(
    Refuser(_GROUP, "CreateAutoScalingGroup", "ValidationError"),
    f"{_SCALING}API_InstancesDistribution.html",
    (f"{_DISTRIBUTION}.onDemandAllocationStrategy", ("lowest-price", "prioritized")),
    (
        f"{_DISTRIBUTION}.spotAllocationStrategy",
        (
            *("capacity-optimized", "capacity-optimized-prioritized", "lowest-price"),
            "price-capacity-optimized",
        ),
    ),
)
enter_words(
    Refuser(_GROUP, "CreateAutoScalingGroup", PROVIDER),
    f"{_REGISTRY}autoscaling_group",
    ("instanceRefresh.strategy", ("Rolling", "ReplaceRootVolume")),
    ("warmPool.poolState", ("Stopped", "Running", "Hibernated")),
    ("initialLifecycleHooks.*.defaultResult", ("CONTINUE", "ABANDON")),
    (
        "initialLifecycleHooks.*.lifecycleTransition",
        ("autoscaling:EC2_INSTANCE_LAUNCHING", "autoscaling:EC2_INSTANCE_TERMINATING"),
    ),
)
enter_words(
    Refuser(_TEMPLATE, "CreateLaunchTemplate", PROVIDER),
    f"{_REGISTRY}launch_template",
    ("blockDeviceMappings.*.ebs.encrypted", ("true", "false")),
    ("ebsOptimized", ("true", "false")),
    ("monitoring.enabled", ("true", "false")),
    ("blockDeviceMappings.*.ebs.deleteOnTermination", ("true", "false")),
    fold=True,
)
enter_words(
    Refuser(_TEMPLATE, "CreateLaunchTemplate", "InvalidParameterValue"),
    f"{_EC2}API_CreditSpecificationRequest.html",
    ("creditSpecification.cpuCredits", ("standard", "unlimited")),
)
enter_words(
    Refuser("ec2/vpc:Vpc", "CreateVpc", PROVIDER),
    f"{_EC2}API_CreateVpc.html",
    ("instanceTenancy", ("default", "dedicated")),
)
enter_words(
    Refuser(
        "ec2/vpcEndpointService:VpcEndpointService",
        "CreateVpcEndpointServiceConfiguration",
        PROVIDER,
    ),
    f"{_EC2}API_CreateVpcEndpointServiceConfiguration.html",
    ("supportedIpAddressTypes.*", ("ipv4", "ipv6")),
)
enter_words(
    Refuser("eks/addon:Addon", "CreateAddon", PROVIDER),
    f"{_REGISTRY}eks_addon",
    ("resolveConflictsOnCreate", ("NONE", "OVERWRITE")),
)
enter_words(
    Refuser("eks/addon:Addon", "UpdateAddon", PROVIDER),
    f"{_REGISTRY}eks_addon",
    ("resolveConflictsOnUpdate", ("NONE", "OVERWRITE", "PRESERVE")),
)
enter_words(
    Refuser("emrserverless/application:Application", "CreateApplication", PROVIDER),
    f"{_REGISTRY}emrserverless_application",
    ("type", ("SPARK", "HIVE")),
    fold=True,
)
enter_words(
    Refuser("lb/listener:Listener", "CreateListener", PROVIDER),
    f"{_BALANCING}API_CreateListener.html",
    ("alpnPolicy", ("HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred", "None")),
    fold=True,
)
enter_words(
    Refuser("lb/loadBalancer:LoadBalancer", "ModifyLoadBalancerAttributes", PROVIDER),
    f"{_BALANCING}API_LoadBalancerAttribute.html",
    (
        "dnsRecordClientRoutingPolicy",
        (
            *("any_availability_zone", "availability_zone_affinity"),
            "partial_availability_zone_affinity",
        ),
    ),
)
enter_words(
    Refuser("lb/loadBalancer:LoadBalancer", "SetSecurityGroups", PROVIDER),
    f"{_BALANCING}API_SetSecurityGroups.html",
    ("enforceSecurityGroupInboundRulesOnPrivateLinkTraffic", ("on", "off")),
)
enter_words(
    Refuser(_TARGETS, "ModifyTargetGroupAttributes", PROVIDER),
    f"{_REGISTRY}lb_target_group",
    ("preserveClientIp", ("true", "false")),
    ("loadBalancingCrossZoneEnabled", ("true", "false", "use_load_balancer_configuration")),
    fold=True,
)
enter_words(
    Refuser(_TARGETS, "ModifyTargetGroupAttributes", PROVIDER),
    f"{_REGISTRY}lb_target_group",
    (
        "stickiness.type",
        (
            *("app_cookie", "lb_cookie", "source_ip", "source_ip_dest_ip"),
            "source_ip_dest_ip_proto",
        ),
    ),
)
enter_words(
    Refuser("dynamodb/table:Table", "CreateTable", "ValidationException"),
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_StreamSpecification.html",
    ("streamViewType", ("KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE")),
)
enter_words(
    Refuser("lambda/permission:Permission", "AddPermission", PROVIDER),
    "https://docs.aws.amazon.com/lambda/latest/api/API_AddPermission.html",
    ("functionUrlAuthType", ("AWS_IAM", "NONE")),
)
enter_words(
    Refuser("sns/topic:Topic", "SetTopicAttributes", PROVIDER),
    "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
    ("signatureVersion", ("1", "2")),
    ("tracingConfig", ("Active", "PassThrough")),
)
enter_words(
    Refuser("route53/record:Record", "ChangeResourceRecordSets", PROVIDER),
    "https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html",
    ("failoverRoutingPolicies.*.type", ("PRIMARY", "SECONDARY")),
)
enter_words(
    Refuser("sqs/queue:Queue", "CreateQueue", PROVIDER),
    f"{_SQS}API_SetQueueAttributes.html",
    ("deduplicationScope", ("messageGroup", "queue")),
    ("fifoThroughputLimit", ("perQueue", "perMessageGroupId")),
)
