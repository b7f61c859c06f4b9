"""Inputs of which one resource may give one at most: a line each.

Most are the provider's own (ConflictsWith of its schema), which stops an `up` before any call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from local.refusals.fields import values
from local.refusals.limits import EVERY_TYPE, LIMITS, InputLimit
from local.refusals.refusal import Refusal, Wanted

PROVIDER = "Conflicting configuration arguments"
_REGISTRY = "https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/"
_TEMPLATES = f"{_REGISTRY}launch_template"
_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_ALARM = "cloudwatch/metricAlarm:MetricAlarm"
_GROUP, _TEMPLATE = "autoscaling/group:Group", "ec2/launchTemplate:LaunchTemplate"


@dataclass(frozen=True, slots=True)
class Excluding:
    """Keys of one block (`base`; empty: the resource) that go one without the other."""

    token: str
    base: str
    keys: tuple[str, ...]
    source: str
    operation: str = "the provider's check"
    code: str = PROVIDER


EXCLUDING: tuple[Excluding, ...] = (
    Excluding(EVERY_TYPE, "", ("name", "namePrefix"), f"{_REGISTRY}iam_role"),
    Excluding(
        _ALARM, "", ("threshold", "thresholdMetricId"), f"{_REGISTRY}cloudwatch_metric_alarm"
    ),
    *(
        Excluding(_ALARM, "", (key, "metricQueries"), f"{_REGISTRY}cloudwatch_metric_alarm")
        for key in ("dimensions", "extendedStatistic", "namespace", "period", "statistic", "unit")
    ),
    Excluding(
        _GROUP, "", ("availabilityZones", "vpcZoneIdentifiers"), f"{_REGISTRY}autoscaling_group"
    ),
    Excluding(_GROUP, "", ("loadBalancers", "trafficSources"), f"{_REGISTRY}autoscaling_group"),
    Excluding(_GROUP, "", ("targetGroupArns", "trafficSources"), f"{_REGISTRY}autoscaling_group"),
    Excluding(
        _TEMPLATE,
        "",
        ("networkInterfaces", "vpcSecurityGroupIds"),
        f"{_EC2}API_RequestLaunchTemplateData.html",
        "RunInstances",
        "InvalidParameterCombination",
    ),
    Excluding(
        _TEMPLATE, "", ("securityGroupNames", "vpcSecurityGroupIds"), f"{_REGISTRY}launch_template"
    ),
    Excluding(_TEMPLATE, "", ("instanceRequirements", "instanceType"), _TEMPLATES),
    Excluding(_TEMPLATE, "iamInstanceProfile", ("arn", "name"), f"{_REGISTRY}launch_template"),
    Excluding(
        _TEMPLATE, "", ("defaultVersion", "updateDefaultVersion"), f"{_REGISTRY}launch_template"
    ),
    Excluding(
        "ec2/subnet:Subnet", "", ("availabilityZone", "availabilityZoneId"), f"{_REGISTRY}subnet"
    ),
    Excluding(
        "eks/nodeGroup:NodeGroup",
        "",
        ("nodeGroupName", "nodeGroupNamePrefix"),
        f"{_REGISTRY}eks_node_group",
    ),
    Excluding(
        "cloudwatch/eventRule:EventRule",
        "",
        ("isEnabled", "state"),
        f"{_REGISTRY}cloudwatch_event_rule",
    ),
    Excluding(
        "dlm/lifecyclePolicy:LifecyclePolicy",
        "policyDetails.schedules.*.retainRule",
        ("count", "interval"),
        f"{_REGISTRY}dlm_lifecycle_policy",
    ),
    Excluding(
        "dlm/lifecyclePolicy:LifecyclePolicy",
        "policyDetails.schedules.*.fastRestoreRule",
        ("count", "interval"),
        "https://docs.aws.amazon.com/dlm/latest/APIReference/API_FastRestoreRule.html",
        "CreateLifecyclePolicy",
        "InvalidRequestException",
    ),
    Excluding(
        "lambda/function:Function",
        "",
        ("code", "s3Bucket", "imageUri"),
        f"{_REGISTRY}lambda_function",
    ),
    Excluding("s3/bucket:Bucket", "", ("bucket", "bucketPrefix"), f"{_REGISTRY}s3_bucket"),
    Excluding(
        "s3/bucketObjectv2:BucketObjectv2",
        "",
        ("content", "contentBase64", "source"),
        f"{_REGISTRY}s3_object",
    ),
    Excluding(
        "s3/bucketObjectv2:BucketObjectv2", "", ("etag", "kmsKeyId"), f"{_REGISTRY}s3_object"
    ),
    Excluding(
        "lambda/permission:Permission",
        "",
        ("statementId", "statementIdPrefix"),
        f"{_REGISTRY}lambda_permission",
    ),
    Excluding("route53/zone:Zone", "", ("delegationSetId", "vpcs"), f"{_REGISTRY}route53_zone"),
    Excluding(
        "secretsmanager/secretVersion:SecretVersion",
        "",
        ("secretString", "secretBinary"),
        f"{_REGISTRY}secretsmanager_secret_version",
    ),
    Excluding(
        "scheduler/schedule:Schedule",
        "target",
        ("ecsParameters", "eventbridgeParameters", "kinesisParameters", "sqsParameters"),
        "https://docs.aws.amazon.com/scheduler/latest/APIReference/API_Target.html",
        "CreateSchedule",
        "ValidationException",
    ),
)


def _limit(rule: Excluding) -> InputLimit:
    def find(wanted: Wanted) -> Iterator[Refusal]:
        for block in values(wanted.inputs, rule.base):
            given = [key for key in rule.keys if block.get(key) not in (None, "", [], {})]
            if len(given) > 1:
                message = f'"{given[0]}": conflicts with {given[1]}'
                at = rule.base.partition(".")[0] or given[1]
                yield Refusal(rule.operation, rule.code, message, at)

    name = f"one-of-{'-'.join(rule.keys)}"
    token = rule.token if rule.token == EVERY_TYPE else f"aws:{rule.token}"
    return InputLimit(name, (token,), rule.source, find)


LIMITS.extend(map(_limit, EXCLUDING))
