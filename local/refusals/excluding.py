"""Inputs of which one resource may give one at most: a line each.

Most are the provider's own (ConflictsWith of its schema), which stops an `up` before any call.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from local.refusals.fields import values
from local.refusals.limits import EVERY_TYPE, LIMITS, InputLimit, Refuser
from local.refusals.refusal import Refusal, Wanted

_PROVIDER = ("the provider's check", "Conflicting configuration arguments")
_REGISTRY = "https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/"
_SCHEDULES = "policyDetails.schedules.*"


def enter_excluding(of: Refuser, source: str, *keys: tuple[str, ...], base: str = "") -> None:
    """Enter keys of one block (`base`; empty: the resource) that go one without the other."""
    types = (of.token if of.token == EVERY_TYPE else f"aws:{of.token}",)
    for each in keys:
        find = partial(_rivals, of, base, each)
        LIMITS.append(InputLimit(f"one-of-{'-'.join(each)}", types, source, find))


def _rivals(of: Refuser, base: str, keys: tuple[str, ...], wanted: Wanted) -> Iterator[Refusal]:
    for block in values(wanted.inputs, base):
        given = [key for key in keys if block.get(key) not in (None, "", [], {})]
        if len(given) > 1:
            message = f'"{given[0]}": conflicts with {given[1]}'
            yield Refusal(of.operation, of.code, message, base.partition(".")[0] or given[1])


def _enter_conflicts(token: str, page: str, *keys: tuple[str, ...], base: str = "") -> None:
    """Enter what the provider's schema says in ConflictsWith."""
    enter_excluding(Refuser(token, *_PROVIDER), f"{_REGISTRY}{page}", *keys, base=base)


_enter_conflicts(EVERY_TYPE, "iam_role", ("name", "namePrefix"))
_enter_conflicts(
    "cloudwatch/metricAlarm:MetricAlarm",
    "cloudwatch_metric_alarm",
    ("threshold", "thresholdMetricId"),
    *(
        (key, "metricQueries")
        for key in ("dimensions", "extendedStatistic", "namespace", "period", "statistic", "unit")
    ),
)
_enter_conflicts(
    "autoscaling/group:Group",
    "autoscaling_group",
    ("availabilityZones", "vpcZoneIdentifiers"),
    ("loadBalancers", "trafficSources"),
    ("targetGroupArns", "trafficSources"),
)
enter_excluding(
    Refuser("ec2/launchTemplate:LaunchTemplate", "RunInstances", "InvalidParameterCombination"),
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html",
    ("networkInterfaces", "vpcSecurityGroupIds"),
)
_enter_conflicts(
    "ec2/launchTemplate:LaunchTemplate",
    "launch_template",
    ("securityGroupNames", "vpcSecurityGroupIds"),
    ("instanceRequirements", "instanceType"),
    ("defaultVersion", "updateDefaultVersion"),
)
_enter_conflicts(
    "ec2/launchTemplate:LaunchTemplate",
    "launch_template",
    ("arn", "name"),
    base="iamInstanceProfile",
)
_enter_conflicts("ec2/subnet:Subnet", "subnet", ("availabilityZone", "availabilityZoneId"))
_enter_conflicts(
    "eks/nodeGroup:NodeGroup", "eks_node_group", ("nodeGroupName", "nodeGroupNamePrefix")
)
_enter_conflicts("cloudwatch/eventRule:EventRule", "cloudwatch_event_rule", ("isEnabled", "state"))
_enter_conflicts(
    "dlm/lifecyclePolicy:LifecyclePolicy",
    "dlm_lifecycle_policy",
    ("count", "interval"),
    base=f"{_SCHEDULES}.retainRule",
)
enter_excluding(
    Refuser(
        "dlm/lifecyclePolicy:LifecyclePolicy", "CreateLifecyclePolicy", "InvalidRequestException"
    ),
    "https://docs.aws.amazon.com/dlm/latest/APIReference/API_FastRestoreRule.html",
    ("count", "interval"),
    base=f"{_SCHEDULES}.fastRestoreRule",
)
_enter_conflicts("lambda/function:Function", "lambda_function", ("code", "s3Bucket", "imageUri"))
_enter_conflicts("s3/bucket:Bucket", "s3_bucket", ("bucket", "bucketPrefix"))
_enter_conflicts(
    "s3/bucketObjectv2:BucketObjectv2",
    "s3_object",
    ("content", "contentBase64", "source"),
    ("etag", "kmsKeyId"),
)
_enter_conflicts(
    "lambda/permission:Permission", "lambda_permission", ("statementId", "statementIdPrefix")
)
_enter_conflicts("route53/zone:Zone", "route53_zone", ("delegationSetId", "vpcs"))
_enter_conflicts(
    "secretsmanager/secretVersion:SecretVersion",
    "secretsmanager_secret_version",
    ("secretString", "secretBinary"),
)
enter_excluding(
    Refuser("scheduler/schedule:Schedule", "CreateSchedule", "ValidationException"),
    "https://docs.aws.amazon.com/scheduler/latest/APIReference/API_Target.html",
    ("ecsParameters", "eventbridgeParameters", "kinesisParameters", "sqsParameters"),
    base="target",
)
