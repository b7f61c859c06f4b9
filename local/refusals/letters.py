"""Judges what queues, topics and subscriptions are given as text: redrives, retries, filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.documents import as_list, parse
from local.refusals.event_patterns import wrong_pattern
from local.refusals.limits import first_about, first_of, limit, outside
from local.refusals.refusal import Refusal, Wanted

_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
_SNS = "https://docs.aws.amazon.com/sns/latest/"
SOURCES = 10
KEYS_OF_A_FILTER = 5
FILTER_BYTES = 256 * 1024
# SNS developer guide, "Message archiving": days.
ARCHIVED = (1, 365)
# SNS developer guide, "Amazon SNS message delivery retries": the most of each.
_RETRIES: Mapping[str, tuple[int, int]] = {
    "minDelayTarget": (1, 3600),
    "maxDelayTarget": (1, 3600),
    "numRetries": (0, 100),
    "numNoDelayRetries": (0, 100),
    "numMinDelayRetries": (0, 100),
    "numMaxDelayRetries": (0, 100),
}
_BACKOFFS = ("arithmetic", "exponential", "geometric", "linear")


@limit(
    "sqs/queue:Queue",
    "sqs/redriveAllowPolicy:RedriveAllowPolicy",
    source=f"{_SQS}API_SetQueueAttributes.html",
)
def who_may_send_dead_letters(wanted: Wanted) -> Iterator[Refusal]:
    """A permission, and with byQueue, and only with it, ten ARNs of queues at most."""
    given = wanted.inputs.get("redriveAllowPolicy")
    if given in (None, ""):
        return
    document = parse(given)
    policy = document or {}
    permission, sources = policy.get("redrivePermission"), policy.get("sourceQueueArns")
    arns = [str(each) for each in as_list(sources)]
    shown = f"Value {given} for parameter RedriveAllowPolicy is invalid. Reason: "
    yield from first_about(
        "SetQueueAttributes",
        "InvalidParameterValue",
        "redriveAllowPolicy",
        (document is None, f"{shown}it is not a JSON object."),
        (
            permission not in {"allowAll", "byQueue", "denyAll"},
            f"{shown}redrivePermission must be allowAll, denyAll or byQueue.",
        ),
        (
            permission != "byQueue" and sources is not None,
            f"{shown}sourceQueueArns can be given with byQueue alone.",
        ),
        (
            permission == "byQueue" and not 1 <= len(arns) <= SOURCES,
            f"{shown}sourceQueueArns must have 1 to {SOURCES} ARNs.",
        ),
        (
            any(":sqs:" not in each for each in arns),
            f"{shown}sourceQueueArns must be ARNs of queues.",
        ),
        (
            set(policy) - {"redrivePermission", "sourceQueueArns"},
            f"{shown}it has keys that there are not.",
        ),
    )


@limit("sns/topic:Topic", source=f"{_SNS}dg/sns-message-delivery-retries.html")
def retries_of_a_topic(wanted: Wanted) -> Iterator[Refusal]:
    """Delays of an hour at most, the least before the most, a hundred retries."""
    given = wanted.inputs.get("deliveryPolicy")
    if given in (None, ""):
        return
    document = parse(given)
    http = (document or {}).get("http")
    policy = (http if isinstance(http, dict) else {}).get("defaultHealthyRetryPolicy") or {}
    wrong = [k for k, ends in _RETRIES.items() if _is_outside(policy.get(k), ends)]
    least, most = policy.get("minDelayTarget"), policy.get("maxDelayTarget")
    reversed_ = not wrong and least is not None and most is not None and least > most
    yield from first_about(
        "SetTopicAttributes",
        "InvalidParameter",
        "deliveryPolicy",
        (document is None, "Invalid parameter: DeliveryPolicy: not a JSON object"),
        (
            set(document or {}) - {"http", "sqs", "lambda", "firehose", "application"},
            "Invalid parameter: DeliveryPolicy: unexpected JSON member",
        ),
        (wrong, f"Invalid parameter: DeliveryPolicy: {wrong[:1]} is out of its range"),
        (
            reversed_,
            "Invalid parameter: DeliveryPolicy: maxDelayTarget is less than minDelayTarget",
        ),
        (
            policy.get("backoffFunction", "linear") not in _BACKOFFS,
            "Invalid parameter: DeliveryPolicy: backoffFunction is not valid",
        ),
    )


@limit("sns/topic:Topic", source=f"{_SNS}dg/message-archiving-and-replay-topic-owner.html")
def archive_of_a_topic(wanted: Wanted) -> Iterator[Refusal]:
    """A JSON object that says for how many days: a year at most."""
    given = wanted.inputs.get("archivePolicy")
    if given in (None, ""):
        return
    days = str((parse(given) or {}).get("MessageRetentionPeriod"))
    if not days.isdecimal() or outside(days, *ARCHIVED):
        message = "Invalid parameter: ArchivePolicy: MessageRetentionPeriod must be "
        message += f"{ARCHIVED[0]} to {ARCHIVED[1]} days"
        yield Refusal("SetTopicAttributes", "InvalidParameter", message, "archivePolicy")


def _is_outside(value: Any, ends: tuple[int, int]) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is not None and (not number or outside(value, *ends))


@limit(
    "sns/topicSubscription:TopicSubscription",
    source=f"{_SNS}dg/subscription-filter-policy-constraints.html",
)
def documents_of_a_subscription(wanted: Wanted) -> Iterator[Refusal]:
    """A filter of five keys as patterns are written; dead letters to a queue."""
    inputs = wanted.inputs
    given, redrive = inputs.get("filterPolicy"), inputs.get("redrivePolicy")
    pattern = parse(given) if given else {}
    target = str((parse(redrive) or {}).get("deadLetterTargetArn") or "") if redrive else ":sqs:"
    fifo = str(inputs.get("topic")).endswith(".fifo")
    told = [key for key in ("deliveryPolicy", "replayPolicy") if inputs.get(key)]
    broken = [key for key in told if parse(inputs[key]) is None]
    yield from first_of(
        "Subscribe",
        "InvalidParameter",
        (broken, f"Invalid parameter: {broken[:1]}: failed to parse JSON", "".join(broken[:1])),
        (pattern is None, "Invalid parameter: FilterPolicy: failed to parse JSON", "filterPolicy"),
        (
            pattern and wrong_pattern(pattern),
            f"Invalid parameter: FilterPolicy: {wrong_pattern(pattern) if pattern else ''}",
            "filterPolicy",
        ),
        (
            len(pattern or {}) > KEYS_OF_A_FILTER,
            f"Invalid parameter: FilterPolicy: it can not have more than {KEYS_OF_A_FILTER} keys",
            "filterPolicy",
        ),
        (
            inputs.get("filterPolicyScope", "MessageBody")
            not in {"MessageAttributes", "MessageBody"},
            "Invalid parameter: FilterPolicyScope: Invalid value",
            "filterPolicyScope",
        ),
        (
            ":sqs:" not in target,
            "Invalid parameter: RedrivePolicy: deadLetterTargetArn is an invalid arn",
            "redrivePolicy",
        ),
        (
            not fifo and target.endswith(".fifo"),
            (
                "Invalid parameter: RedrivePolicy: a FIFO queue cannot have the dead letters of a "
                "standard topic"
            ),
            "redrivePolicy",
        ),
        (
            not fifo and inputs.get("replayPolicy"),
            "Invalid parameter: ReplayPolicy: messages of a FIFO topic alone are archived",
            "replayPolicy",
        ),
        (
            len(str(given or "").encode()) > FILTER_BYTES,
            f"Invalid parameter: FilterPolicy: it is larger than {FILTER_BYTES} bytes",
            "filterPolicy",
        ),
        (
            fifo and inputs.get("protocol") != "sqs",
            f"Invalid parameter: Invalid protocol type: {inputs.get('protocol')}",
            "protocol",
        ),
    )
