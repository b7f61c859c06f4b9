"""Numbers whose range no model of AWS's states: a line each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from local.refusals.fields import values
from local.refusals.limits import LIMITS, InputLimit, outside
from local.refusals.refusal import Refusal, Wanted

_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_SCALING_API = f"{_SCALING}API_CreateAutoScalingGroup.html"
_EKS_API = "https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupUpdateConfig.html"
_S3_API = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_LifecycleRule.html"
_GROUP, _NODES = "autoscaling/group:Group", "eks/nodeGroup:NodeGroup"
_RULES = "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
_HEARTBEAT = "initialLifecycleHooks.*.heartbeatTimeout"
_REFRESHED = "instanceRefresh.preferences.minHealthyPercentage"
_OLD, _ABORT = (
    "rules.*.noncurrentVersionExpiration",
    "rules.*.abortIncompleteMultipartUpload.daysAfterInitiation",
)
_MAKE, _PUT = "CreateAutoScalingGroup", "PutBucketLifecycleConfiguration"
_EKS = "InvalidParameterException"
MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that an input may be."""

    token: str
    path: str
    least: float
    most: float
    operation: str
    code: str
    source: str


BOUNDS: tuple[Bounds, ...] = (
    # -1 takes away what was set before.
    Bounds(
        "autoscaling/group:Group",
        "defaultInstanceWarmup",
        -1,
        MOST,
        "CreateAutoScalingGroup",
        "ValidationError",
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    Bounds(
        "autoscaling/group:Group",
        "mixedInstancesPolicy.instancesDistribution.onDemandPercentageAboveBaseCapacity",
        0,
        100,
        "CreateAutoScalingGroup",
        "ValidationError",
        f"{_SCALING}API_InstancesDistribution.html",
    ),
    Bounds(
        "dynamodb/table:Table",
        "pointInTimeRecovery.recoveryPeriodInDays",
        1,
        35,
        "UpdateContinuousBackups",
        "ValidationException",
        "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PointInTimeRecoverySpecification.html",
    ),
    *(
        Bounds(token, path, least, most, operation, code, source)
        for token, path, least, most, operation, code, source in (
            (_GROUP, "defaultCooldown", 0, MOST, _MAKE, "ValidationError", _SCALING_API),
            (_GROUP, _HEARTBEAT, 30, 7200, _MAKE, "ValidationError", _SCALING_API),
            (_GROUP, _REFRESHED, 0, 100, "StartInstanceRefresh", "ValidationError", _SCALING_API),
            (_NODES, "updateConfig.maxUnavailable", 1, 100, "CreateNodegroup", _EKS, _EKS_API),
            (_RULES, f"{_OLD}.noncurrentDays", 1, MOST, _PUT, "InvalidArgument", _S3_API),
            (_RULES, f"{_OLD}.newerNoncurrentVersions", 1, 100, _PUT, "InvalidArgument", _S3_API),
            (_RULES, _ABORT, 1, MOST, _PUT, "InvalidArgument", _S3_API),
            (_RULES, "rules.*.transitions.*.days", 0, MOST, _PUT, "InvalidArgument", _S3_API),
        )
    ),
    Bounds(
        "kms/key:Key",
        "rotationPeriodInDays",
        90,
        2560,
        "EnableKeyRotation",
        "ValidationException",
        "https://docs.aws.amazon.com/kms/latest/APIReference/API_EnableKeyRotation.html",
    ),
    *(
        Bounds(
            "sns/topic:Topic",
            f"{kind}SuccessFeedbackSampleRate",
            0,
            100,
            "SetTopicAttributes",
            "Invalid Attribute Value",
            "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
        )
        for kind in ("application", "firehose", "http", "lambda", "sqs")
    ),
    Bounds(
        "ec2/launchTemplate:LaunchTemplate",
        "blockDeviceMappings.*.ebs.volumeInitializationRate",
        100,
        300,
        "CreateLaunchTemplate",
        "InvalidParameterValue",
        "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateEbsBlockDeviceRequest.html",
    ),
    Bounds(
        "lb/targetGroup:TargetGroup",
        "targetGroupHealth.unhealthyStateRouting.minimumHealthyTargetsCount",
        1,
        MOST,
        "ModifyTargetGroupAttributes",
        "ValidationError",
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_TargetGroupAttribute.html",
    ),
    Bounds(
        "route53/record:Record",
        "weightedRoutingPolicies.*.weight",
        0,
        255,
        "ChangeResourceRecordSets",
        "InvalidInput",
        "https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html",
    ),
)


def _limit(bounds: Bounds) -> InputLimit:
    def find(wanted: Wanted) -> Iterator[Refusal]:
        for value in values(wanted.inputs, bounds.path):
            if outside(value, bounds.least, bounds.most):
                message = f"Value '{value}' at '{bounds.path}' must be between {bounds.least:.0f} "
                message += f"and {bounds.most:.0f}"
                at = bounds.path.partition(".")[0]
                yield Refusal(bounds.operation, bounds.code, message, at)

    name = f"{bounds.path}-of-{bounds.token.partition(':')[2]}"
    return InputLimit(name, (f"aws:{bounds.token}",), bounds.source, find)


def enter_bounds(*bounds: Bounds) -> None:
    """Enter bounds among the limits."""
    LIMITS.extend(map(_limit, bounds))


enter_bounds(*BOUNDS)
