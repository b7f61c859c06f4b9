"""Checks which services rules and schedules may call, what each needs, and what it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from local.refusals.limits import first_about, first_of, limit
from local.refusals.refusal import Refusal, Wanted

# EventBridge user guide, "Event bus targets", and Scheduler's, "Templated targets": by the service
# in their ARNs.
OF_RULES = frozenset(
    {
        *("apigateway", "appsync", "batch", "codebuild", "codepipeline", "ec2", "ecs", "events"),
        *("execute-api", "firehose", "glue", "inspector", "kinesis", "lambda", "logs", "redshift"),
        *("redshift-serverless", "sagemaker", "sns", "sqs", "ssm", "ssm-incidents", "states"),
    }
)
OF_SCHEDULES = frozenset(
    {
        *("codebuild", "codepipeline", "ecs", "events", "firehose", "inspector", "kinesis"),
        *("lambda", "sagemaker", "scheduler", "sns", "sqs", "states"),
    }
)
# EventBridge user guide, "Using identity-based policies": whom a rule cannot call without a role.
_WITH_A_ROLE = frozenset({"ecs", "kinesis", "states"})
_PARAMETERS: Mapping[str, str] = {
    "ecs": "ecsParameters",
    "events": "eventbridgeParameters",
    "kinesis": "kinesisParameters",
}


def _service(arn: object) -> str:
    parts = str(arn).split(":")
    return parts[2] if len(parts) > 5 and parts[0] == "arn" else ""


@limit(
    "cloudwatch/eventTarget:EventTarget",
    source="https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-targets.html",
)
def service_of_a_target(wanted: Wanted) -> Iterator[Refusal]:
    """One that a rule can call, with a role where it needs one."""
    arn = wanted.inputs.get("arn")
    service = _service(arn)
    yield from first_of(
        "PutTargets",
        "ValidationException",
        (service and service not in OF_RULES, f"{arn} is not a supported target.", "arn"),
        (
            service in _WITH_A_ROLE and not wanted.inputs.get("roleArn"),
            f"RoleArn is required for target {arn}.",
            "roleArn",
        ),
    )


@limit(
    "scheduler/schedule:Schedule",
    source="https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-templated.html",
)
def service_of_a_schedule(wanted: Wanted) -> Iterator[Refusal]:
    """One that Scheduler can call, with the parameters of its kind."""
    target = wanted.inputs.get("target") or {}
    service = _service(target.get("arn"))
    needed = _PARAMETERS.get(service, "")
    yield from first_about(
        "CreateSchedule",
        "ValidationException",
        "target",
        (
            service and service not in OF_SCHEDULES,
            f"{target.get('arn')} is not a supported target.",
        ),
        (needed and not target.get(needed), f"{needed} must be specified for this target."),
    )
