"""Limits on numbers, and on what two settings of one resource must be to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.volumes import sizing
from local.refusals.fields import values
from local.refusals.limits import LAMBDA_QUOTAS, limit, outside
from local.refusals.refusal import Refusal, Wanted

RETENTION_DAYS = frozenset(
    (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922,
     3288, 3653)
)  # fmt: skip
SECONDS_PER_DAY = 86_400
# Between two checks of a target, where nothing is said.
BETWEEN_CHECKS = 30


@limit("lambda/function:Function", source=LAMBDA_QUOTAS)
def layers_of_a_function(wanted: Wanted) -> Iterator[Refusal]:
    """Five."""
    if len(wanted.inputs.get("layers") or ()) > 5:
        message = "Cannot reference more than 5 layers."
        yield Refusal("CreateFunction", "InvalidParameterValueException", message, "layers")


@limit(
    "cloudwatch/logGroup:LogGroup",
    source="https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html",
)
def retention_of_a_log(wanted: Wanted) -> Iterator[Refusal]:
    """One of twenty-two numbers of days."""
    days = wanted.inputs.get("retentionInDays")
    if days and int(days) not in RETENTION_DAYS:
        allowed = ", ".join(str(each) for each in sorted(RETENTION_DAYS))
        message = (
            f"1 validation error detected: Value '{days}' at 'retentionInDays' failed to satisfy "
            f"constraint: Member must satisfy enum value set: [{allowed}]"
        )
        yield Refusal("PutRetentionPolicy", "InvalidParameterException", message, "retentionInDays")


_QUEUE_RANGES = {
    "visibilityTimeoutSeconds": ("VisibilityTimeout", 0, 43_200),
    "messageRetentionSeconds": ("MessageRetentionPeriod", 60, 1_209_600),
    "delaySeconds": ("DelaySeconds", 0, 900),
    "receiveWaitTimeSeconds": ("ReceiveMessageWaitTimeSeconds", 0, 20),
    "maxMessageSize": ("MaximumMessageSize", 1024, 1_048_576),
}


@limit(
    "sqs/queue:Queue",
    source="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html",
)
def attributes_of_a_queue(wanted: Wanted) -> Iterator[Refusal]:
    """Attributes travel as text, so that no model holds their ranges."""
    for key, (name, least, most) in _QUEUE_RANGES.items():
        if outside(wanted.inputs.get(key), least, most):
            message = f"Invalid value for the parameter {name}."
            yield Refusal("CreateQueue", "InvalidAttributeValue", message, key)


@limit(
    "secretsmanager/secret:Secret",
    source="https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_DeleteSecret.html",
)
def recovery_of_a_secret(wanted: Wanted) -> Iterator[Refusal]:
    """7 to 30 days, or none."""
    days = wanted.inputs.get("recoveryWindowInDays")
    if days and outside(days, 7, 30):
        message = "The RecoveryWindowInDays value must be between 7 and 30 days (inclusive)."
        yield Refusal("DeleteSecret", "InvalidParameterException", message, "recoveryWindowInDays")


@limit(
    "autoscaling/group:Group",
    source="https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstanceMaintenancePolicy.html",
)
def sizes_of_a_group(wanted: Wanted) -> Iterator[Refusal]:
    """min <= desired <= max; a maintenance policy's two percentages at most 100 apart."""
    inputs = wanted.inputs
    least, most = int(inputs.get("minSize") or 0), int(inputs.get("maxSize") or 0)
    desired = inputs.get("desiredCapacity")
    if least > most:
        message = "Max bound, must be greater than or equal to min bound"
        yield Refusal("CreateAutoScalingGroup", "ValidationError", message, "maxSize")
    elif desired is not None and not least <= int(desired) <= most:
        message = f"Desired capacity:{desired} must be between the specified min size:{least} and "
        message += f"max size:{most}"
        yield Refusal("CreateAutoScalingGroup", "ValidationError", message, "desiredCapacity")
    policy = inputs.get("instanceMaintenancePolicy") or {}
    low, high = policy.get("minHealthyPercentage"), policy.get("maxHealthyPercentage")
    if (
        low is not None
        and high is not None
        and (outside(low, 0, 100) or outside(high, 100, 200) or int(high) - int(low) > 100)
    ):
        message = "MinHealthyPercentage is 0 to 100, MaxHealthyPercentage 100 to 200, and the "
        message += "difference between them cannot be greater than 100."
        yield Refusal(
            "CreateAutoScalingGroup", "ValidationError", message, "instanceMaintenancePolicy"
        )


@limit(
    "eks/nodeGroup:NodeGroup",
    source="https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupScalingConfig.html",
)
def sizes_of_a_node_group(wanted: Wanted) -> Iterator[Refusal]:
    """min <= desired <= max."""
    scaling = wanted.inputs.get("scalingConfig") or {}
    if scaling and not scaling["minSize"] <= scaling["desiredSize"] <= scaling["maxSize"]:
        message = "desired capacity must be between the minimum and the maximum size"
        yield Refusal("CreateNodegroup", "InvalidParameterException", message, "scalingConfig")


@limit(
    "ec2/launchTemplate:LaunchTemplate",
    source="https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html",
)
def gp3_volumes(wanted: Wanted) -> Iterator[Refusal]:
    """The ranges of gp3, and its two ratios."""
    for volume in values(wanted.inputs, "blockDeviceMappings.*.ebs"):
        if volume.get("volumeType") == "gp3":
            yield from _gp3(volume)


def _gp3(volume: Mapping[str, Any]) -> Iterator[Refusal]:
    size = int(volume.get("volumeSize") or sizing.SMALLEST_GIB)
    iops = int(volume.get("iops") or sizing.LEAST_IOPS)
    throughput = int(volume.get("throughput") or sizing.LEAST_MIB_PER_S)
    most_iops = max(sizing.LEAST_IOPS, size * sizing.IOPS_PER_GIB)
    wrong = ""
    if outside(size, sizing.SMALLEST_GIB, sizing.LARGEST_GIB):
        least, most = sizing.SMALLEST_GIB, sizing.LARGEST_GIB
        wrong = f"Volume size of {size} GiB is not between {least} and {most}"
    elif outside(iops, sizing.LEAST_IOPS, sizing.MOST_IOPS):
        least, most = sizing.LEAST_IOPS, sizing.MOST_IOPS
        wrong = f"Volume iops of {iops} is out of range; gp3 has {least}-{most}."
    elif iops > most_iops:
        wrong = f"Iops to volume size ratio of {iops / size:.0f} is too high; maximum is 500"
    elif outside(throughput, sizing.LEAST_MIB_PER_S, sizing.MOST_MIB_PER_S):
        wrong = f"Volume throughput of {throughput} is out of range; gp3 has 125-2000 MiB/s."
    elif throughput * sizing.IOPS_PER_MIB_PER_S > iops:
        wrong = f"Throughput (MiBps) to iops ratio of {throughput / iops} is too high; maximum is "
        wrong += "0.250000"
    if wrong:
        code = "InvalidParameterCombination" if "ratio" in wrong else "InvalidParameterValue"
        yield Refusal("CreateVolume", code, wrong, "blockDeviceMappings")


@limit(
    "cloudwatch/metricAlarm:MetricAlarm",
    source="https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
)
def series_of_an_alarm(wanted: Wanted) -> Iterator[Refusal]:
    """A period of 10, 20, 30 or whole minutes, at most a day looked at, one series returned."""
    inputs = wanted.inputs
    queries = inputs.get("metricQueries") or ()
    metrics = [query["metric"] for query in queries if query.get("metric")]
    periods = [metric["period"] for metric in metrics] or [inputs.get("period") or 60]
    for period in periods:
        if period not in {10, 20, 30} and (period < 60 or period % 60):
            message = f"Invalid metric query period {period}: valid are 10, 20, 30 and multiples "
            message += "of 60"
            yield Refusal("PutMetricAlarm", "ValidationError", message, "metricQueries")
    looked = max(periods) * int(inputs.get("evaluationPeriods") or 1)
    if looked > (7 * SECONDS_PER_DAY if max(periods) >= 3600 else SECONDS_PER_DAY):
        message = "Metrics cannot be checked across more than a day (EvaluationPeriods * Period "
        message += "must be <= 86400)."
        yield Refusal("PutMetricAlarm", "ValidationError", message, "evaluationPeriods")
    # The provider sends false where the program says nothing.
    if queries and sum(bool(query.get("returnData")) for query in queries) != 1:
        message = "Exactly one element of the metrics list should return data"
        yield Refusal("PutMetricAlarm", "ValidationError", message, "metricQueries")
    datapoints = inputs.get("datapointsToAlarm")
    if datapoints is not None and int(datapoints) > int(inputs.get("evaluationPeriods") or 1):
        message = "DatapointsToAlarm must be less than or equal to EvaluationPeriods"
        yield Refusal("PutMetricAlarm", "ValidationError", message, "datapointsToAlarm")


@limit(
    "lb/targetGroup:TargetGroup",
    source="https://docs.aws.amazon.com/elasticloadbalancing/latest/network/target-group-health-checks.html",
)
def health_check_of_a_group(wanted: Wanted) -> Iterator[Refusal]:
    """A check takes no longer than until the next."""
    check = wanted.inputs.get("healthCheck") or {}
    timeout, interval = check.get("timeout"), check.get("interval") or BETWEEN_CHECKS
    if timeout is not None and int(timeout) > int(interval):
        message = "Health check timeout must be smaller than or equal to the interval"
        yield Refusal("CreateTargetGroup", "ValidationError", message, "healthCheck")
