"""Numbers whose range no model of AWS's states: a line each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from local.refusals.limits import Refuser, enter_line, outside

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

    of: Refuser
    path: str
    least: float
    most: float
    source: str


BOUNDS: tuple[Bounds, ...] = (
    # -1 takes away what was set before.
    Bounds(
        Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError"),
        "defaultInstanceWarmup",
        -1,
        MOST,
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    Bounds(
        Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError"),
        "mixedInstancesPolicy.instancesDistribution.onDemandPercentageAboveBaseCapacity",
        0,
        100,
        f"{_SCALING}API_InstancesDistribution.html",
    ),
    Bounds(
        Refuser("dynamodb/table:Table", "UpdateContinuousBackups", "ValidationException"),
        "pointInTimeRecovery.recoveryPeriodInDays",
        1,
        35,
        "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PointInTimeRecoverySpecification.html",
    ),
    *(
        Bounds(Refuser(token, operation, code), path, least, most, source)
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
        Refuser("kms/key:Key", "EnableKeyRotation", "ValidationException"),
        "rotationPeriodInDays",
        90,
        2560,
        "https://docs.aws.amazon.com/kms/latest/APIReference/API_EnableKeyRotation.html",
    ),
    *(
        Bounds(
            Refuser("sns/topic:Topic", "SetTopicAttributes", "Invalid Attribute Value"),
            f"{kind}SuccessFeedbackSampleRate",
            0,
            100,
            "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
        )
        for kind in ("application", "firehose", "http", "lambda", "sqs")
    ),
    Bounds(
        Refuser(
            "ec2/launchTemplate:LaunchTemplate", "CreateLaunchTemplate", "InvalidParameterValue"
        ),
        "blockDeviceMappings.*.ebs.volumeInitializationRate",
        100,
        300,
        "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateEbsBlockDeviceRequest.html",
    ),
    Bounds(
        Refuser("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", "ValidationError"),
        "targetGroupHealth.unhealthyStateRouting.minimumHealthyTargetsCount",
        1,
        MOST,
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_TargetGroupAttribute.html",
    ),
    Bounds(
        Refuser("route53/record:Record", "ChangeResourceRecordSets", "InvalidInput"),
        "weightedRoutingPolicies.*.weight",
        0,
        255,
        "https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html",
    ),
)


def _out_of_bounds(bounds: Bounds, value: Any) -> str:
    if not outside(value, bounds.least, bounds.most):
        return ""
    ends = f"between {bounds.least:.0f} and {bounds.most:.0f}"
    return f"Value '{value}' at '{bounds.path}' must be {ends}"


def enter_bounds(*bounds: Bounds) -> None:
    """Enter bounds among the limits."""
    for each in bounds:
        enter_line(each.of, each.path, each.source, partial(_out_of_bounds, each))


enter_bounds(*BOUNDS)
