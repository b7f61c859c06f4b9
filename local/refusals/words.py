"""Inputs that are one of a few words where no model of AWS's lists them: a line each.

`PROVIDER` marks what the provider's own schema turns down before any call is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from local.refusals.fields import values
from local.refusals.limits import LIMITS, InputLimit
from local.refusals.refusal import Refusal, Wanted

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

    token: str
    path: str
    allowed: tuple[str, ...]
    operation: str
    code: str
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
        _GROUP,
        "metricsGranularity",
        ("1Minute",),
        "EnableMetricsCollection",
        "ValidationError",
        f"{_SCALING}API_EnableMetricsCollection.html",
    ),
    AllowedWords(
        _GROUP,
        "enabledMetrics.*",
        _METRICS,
        "EnableMetricsCollection",
        "ValidationError",
        f"{_SCALING}API_EnableMetricsCollection.html",
    ),
    AllowedWords(
        _GROUP,
        "desiredCapacityType",
        ("units", "vcpu", "memory-mib"),
        "CreateAutoScalingGroup",
        "ValidationError",
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    AllowedWords(
        _GROUP,
        f"{_DISTRIBUTION}.onDemandAllocationStrategy",
        ("lowest-price", "prioritized"),
        "CreateAutoScalingGroup",
        "ValidationError",
        f"{_SCALING}API_InstancesDistribution.html",
    ),
    AllowedWords(
        _GROUP,
        f"{_DISTRIBUTION}.spotAllocationStrategy",
        (
            "capacity-optimized",
            "capacity-optimized-prioritized",
            "lowest-price",
            "price-capacity-optimized",
        ),
        "CreateAutoScalingGroup",
        "ValidationError",
        f"{_SCALING}API_InstancesDistribution.html",
    ),
    *(
        AllowedWords(
            _GROUP,
            path,
            allowed,
            "CreateAutoScalingGroup",
            PROVIDER,
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
            _TEMPLATE,
            path,
            ("true", "false"),
            "CreateLaunchTemplate",
            PROVIDER,
            _TEMPLATES,
            fold=True,
        )
        for path in (
            *("blockDeviceMappings.*.ebs.encrypted", "ebsOptimized", "monitoring.enabled"),
            "blockDeviceMappings.*.ebs.deleteOnTermination",
        )
    ),
    AllowedWords(
        _TEMPLATE,
        "creditSpecification.cpuCredits",
        ("standard", "unlimited"),
        "CreateLaunchTemplate",
        "InvalidParameterValue",
        f"{_EC2}API_CreditSpecificationRequest.html",
    ),
    AllowedWords(
        "ec2/vpc:Vpc",
        "instanceTenancy",
        ("default", "dedicated"),
        "CreateVpc",
        PROVIDER,
        f"{_EC2}API_CreateVpc.html",
    ),
    AllowedWords(
        "ec2/vpcEndpointService:VpcEndpointService",
        "supportedIpAddressTypes.*",
        ("ipv4", "ipv6"),
        "CreateVpcEndpointServiceConfiguration",
        PROVIDER,
        f"{_EC2}API_CreateVpcEndpointServiceConfiguration.html",
    ),
    *(
        AllowedWords(
            "eks/addon:Addon",
            key,
            allowed,
            operation,
            PROVIDER,
            f"{_REGISTRY}eks_addon",
        )
        for key, allowed, operation in (
            ("resolveConflictsOnCreate", ("NONE", "OVERWRITE"), "CreateAddon"),
            ("resolveConflictsOnUpdate", ("NONE", "OVERWRITE", "PRESERVE"), "UpdateAddon"),
        )
    ),
    AllowedWords(
        "emrserverless/application:Application",
        "type",
        ("SPARK", "HIVE"),
        "CreateApplication",
        PROVIDER,
        f"{_REGISTRY}emrserverless_application",
        fold=True,
    ),
    AllowedWords(
        _LISTENER,
        "alpnPolicy",
        ("HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred", "None"),
        "CreateListener",
        PROVIDER,
        f"{_BALANCING}API_CreateListener.html",
        fold=True,
    ),
    AllowedWords(
        _BALANCER,
        "dnsRecordClientRoutingPolicy",
        (
            "any_availability_zone",
            "availability_zone_affinity",
            "partial_availability_zone_affinity",
        ),
        "ModifyLoadBalancerAttributes",
        PROVIDER,
        f"{_BALANCING}API_LoadBalancerAttribute.html",
    ),
    AllowedWords(
        _BALANCER,
        "enforceSecurityGroupInboundRulesOnPrivateLinkTraffic",
        ("on", "off"),
        "SetSecurityGroups",
        PROVIDER,
        f"{_BALANCING}API_SetSecurityGroups.html",
    ),
    AllowedWords(
        _TARGETS,
        "preserveClientIp",
        ("true", "false"),
        "ModifyTargetGroupAttributes",
        PROVIDER,
        f"{_REGISTRY}lb_target_group",
        fold=True,
    ),
    AllowedWords(
        _TARGETS,
        "loadBalancingCrossZoneEnabled",
        ("true", "false", "use_load_balancer_configuration"),
        "ModifyTargetGroupAttributes",
        PROVIDER,
        f"{_REGISTRY}lb_target_group",
        fold=True,
    ),
    AllowedWords(
        _TARGETS,
        "stickiness.type",
        (
            *("app_cookie", "lb_cookie", "source_ip", "source_ip_dest_ip"),
            "source_ip_dest_ip_proto",
        ),
        "ModifyTargetGroupAttributes",
        PROVIDER,
        f"{_REGISTRY}lb_target_group",
    ),
    AllowedWords(
        _TABLE,
        "streamViewType",
        ("KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE"),
        "CreateTable",
        "ValidationException",
        f"{_TABLES}API_StreamSpecification.html",
    ),
    AllowedWords(
        "lambda/permission:Permission",
        "functionUrlAuthType",
        ("AWS_IAM", "NONE"),
        "AddPermission",
        PROVIDER,
        "https://docs.aws.amazon.com/lambda/latest/api/API_AddPermission.html",
    ),
    AllowedWords(
        "sns/topic:Topic",
        "signatureVersion",
        ("1", "2"),
        "SetTopicAttributes",
        PROVIDER,
        "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
    ),
    AllowedWords(
        "sns/topic:Topic",
        "tracingConfig",
        ("Active", "PassThrough"),
        "SetTopicAttributes",
        PROVIDER,
        "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
    ),
    AllowedWords(
        "route53/record:Record",
        "failoverRoutingPolicies.*.type",
        ("PRIMARY", "SECONDARY"),
        "ChangeResourceRecordSets",
        PROVIDER,
        "https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html",
    ),
    AllowedWords(
        "sqs/queue:Queue",
        "deduplicationScope",
        ("messageGroup", "queue"),
        "CreateQueue",
        PROVIDER,
        "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html",
    ),
    AllowedWords(
        "sqs/queue:Queue",
        "fifoThroughputLimit",
        ("perQueue", "perMessageGroupId"),
        "CreateQueue",
        PROVIDER,
        "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html",
    ),
)


def _limit(words: AllowedWords) -> InputLimit:
    allowed = {each.lower() if words.fold else each for each in words.allowed}

    def find(wanted: Wanted) -> Iterator[Refusal]:
        for value in values(wanted.inputs, words.path):
            said = _value_text(value).lower() if words.fold else _value_text(value)
            if said not in allowed:
                message = f"expected {words.path} to be one of [{', '.join(words.allowed)}], got "
                message += str(value)[:200]
                yield Refusal(words.operation, words.code, message, words.path.partition(".")[0])

    name = f"{words.path}-of-{words.token.partition(':')[2]}"
    return InputLimit(name, (f"aws:{words.token}",), words.source, find)


def _value_text(value: object) -> str:
    # The engine's numbers are floats.
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole and isinstance(value, float) else str(value)


def enter_words(*words: AllowedWords) -> None:
    """Enter lines of words among the limits."""
    LIMITS.extend(map(_limit, words))


enter_words(*WORDS)
