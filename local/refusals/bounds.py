"""Numbers whose range no model of AWS's states: a line each, below whose refusal and page it is."""

from __future__ import annotations

from functools import partial
from typing import Any

from local.refusals.limits import LAMBDA_QUOTAS, Refuser, enter_line, outside

_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_BALANCING = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/"
_KMS = "https://docs.aws.amazon.com/kms/latest/APIReference/"
_GROUP = Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError")
_OLD = "rules.*.noncurrentVersionExpiration"
MOST = 2**31 - 1


def enter_bounds(
    of: Refuser,
    source: str,
    *rows: tuple[str, float, float],
    message: str = "Value '{value}' at '{path}' must be between {least:.0f} and {most:.0f}",
) -> None:
    """Enter the least and the most that inputs may be: (path, least, most)."""
    for path, least, most in rows:
        enter_line(of, path, source, partial(_out_of_bounds, path, least, most, message))


def _out_of_bounds(path: str, least: float, most: float, message: str, value: Any) -> str:
    if not outside(value, least, most):
        return ""
    return message.format(value=value, path=path, least=least, most=most)


enter_bounds(
    _GROUP,
    f"{_SCALING}API_CreateAutoScalingGroup.html",
    # -1 takes away what was set before.
    ("defaultInstanceWarmup", -1, MOST),
    ("defaultCooldown", 0, MOST),
    ("initialLifecycleHooks.*.heartbeatTimeout", 30, 7200),
)
enter_bounds(
    _GROUP,
    f"{_SCALING}API_InstancesDistribution.html",
    ("mixedInstancesPolicy.instancesDistribution.onDemandPercentageAboveBaseCapacity", 0, 100),
)
enter_bounds(
    Refuser("autoscaling/group:Group", "StartInstanceRefresh", "ValidationError"),
    f"{_SCALING}API_CreateAutoScalingGroup.html",
    ("instanceRefresh.preferences.minHealthyPercentage", 0, 100),
)
enter_bounds(
    Refuser("dynamodb/table:Table", "UpdateContinuousBackups", "ValidationException"),
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PointInTimeRecoverySpecification.html",
    ("pointInTimeRecovery.recoveryPeriodInDays", 1, 35),
)
enter_bounds(
    Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException"),
    "https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupUpdateConfig.html",
    ("updateConfig.maxUnavailable", 1, 100),
)
enter_bounds(
    Refuser(
        "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        "PutBucketLifecycleConfiguration",
        "InvalidArgument",
    ),
    "https://docs.aws.amazon.com/AmazonS3/latest/API/API_LifecycleRule.html",
    (f"{_OLD}.noncurrentDays", 1, MOST),
    (f"{_OLD}.newerNoncurrentVersions", 1, 100),
    ("rules.*.abortIncompleteMultipartUpload.daysAfterInitiation", 1, MOST),
    ("rules.*.transitions.*.days", 0, MOST),
)
enter_bounds(
    Refuser("kms/key:Key", "EnableKeyRotation", "ValidationException"),
    f"{_KMS}API_EnableKeyRotation.html",
    ("rotationPeriodInDays", 90, 2560),
)
enter_bounds(
    Refuser("sns/topic:Topic", "SetTopicAttributes", "Invalid Attribute Value"),
    "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
    *(
        (f"{kind}SuccessFeedbackSampleRate", 0, 100)
        for kind in ("application", "firehose", "http", "lambda", "sqs")
    ),
)
enter_bounds(
    Refuser("ec2/launchTemplate:LaunchTemplate", "CreateLaunchTemplate", "InvalidParameterValue"),
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateEbsBlockDeviceRequest.html",
    ("blockDeviceMappings.*.ebs.volumeInitializationRate", 100, 300),
)
enter_bounds(
    Refuser("autoscaling/lifecycleHook:LifecycleHook", "PutLifecycleHook", "ValidationError"),
    f"{_SCALING}API_PutLifecycleHook.html",
    ("heartbeatTimeout", 30, 7200),
    message="The heartbeat timeout must be between 30 and 7200 seconds.",
)
# The model's maxima are of functions on instances of one's own.
enter_bounds(
    Refuser("lambda/function:Function", "CreateFunction", "ValidationException"),
    LAMBDA_QUOTAS,
    ("timeout", 1, 900),
    ("memorySize", 1, 10_240),
    message=(
        "1 validation error detected: Value '{value}' at '{path}' failed to satisfy constraint: "
        "Member must have value less than or equal to {most}"
    ),
)
enter_bounds(
    Refuser("kms/key:Key", "ScheduleKeyDeletion", "ValidationException"),
    f"{_KMS}API_ScheduleKeyDeletion.html",
    ("deletionWindowInDays", 7, 30),
    message="PendingWindowInDays must be between 7 and 30, and is {value}",
)
enter_bounds(
    Refuser("lb/listener:Listener", "ModifyListenerAttributes", "ValidationError"),
    "https://docs.aws.amazon.com/elasticloadbalancing/latest/network/update-idle-timeout.html",
    ("tcpIdleTimeoutSeconds", 60, 6000),
    message="'{value}' is not a valid tcp.idle_timeout.seconds; it is 60 to 6000",
)
enter_bounds(
    Refuser("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", "ValidationError"),
    f"{_BALANCING}API_TargetGroupAttribute.html",
    ("deregistrationDelay", 0, 3600),
    message="'{value}' is not a valid deregistration_delay.timeout_seconds; it is 0 to 3600",
)
enter_bounds(
    Refuser("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", "ValidationError"),
    f"{_BALANCING}API_TargetGroupAttribute.html",
    ("targetGroupHealth.unhealthyStateRouting.minimumHealthyTargetsCount", 1, MOST),
)
enter_bounds(
    Refuser("route53/record:Record", "ChangeResourceRecordSets", "InvalidInput"),
    "https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html",
    ("weightedRoutingPolicies.*.weight", 0, 255),
)
