"""Refuses what queues, topics, functions and the targets of rules do not take together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from local.refusals.documents import is_json, parse
from local.refusals.limits import first_of, limit, outside
from local.refusals.refusal import Refusal, Wanted

_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
_SNS = "https://docs.aws.amazon.com/sns/latest/api/"
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/api/"
_EVENTS = "https://docs.aws.amazon.com/eventbridge/latest/APIReference/"
PROTOCOLS = frozenset(
    {
        *("application", "email", "email-json", "firehose", "http", "https"),
        *("lambda", "sms", "sqs"),
    }
)
DISK_MB = (512, 10_240)
PATHS = 100


_QUEUE_ARN = re.compile(r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,80}(\.fifo)?")


@limit("sqs/queue:Queue", source=f"{_SQS}API_SetQueueAttributes.html")
def encryption_and_order_of_a_queue(wanted: Wanted) -> Iterator[Refusal]:
    """One kind of encryption; what only FIFO queues know."""
    inputs = wanted.inputs
    yield from first_of(
        "CreateQueue",
        "InvalidAttributeValue",
        (
            inputs.get("sqsManagedSseEnabled") and inputs.get("kmsMasterKeyId"),
            (
                "You can use one type of server-side encryption (SSE) at one time. You can either "
                "enable KMS encryption or SQS encryption."
            ),
            "kmsMasterKeyId",
        ),
        (
            outside(inputs.get("kmsDataKeyReusePeriodSeconds"), 60, 86_400),
            "Invalid value for the parameter KmsDataKeyReusePeriodSeconds.",
            "kmsDataKeyReusePeriodSeconds",
        ),
    )
    if inputs.get("contentBasedDeduplication") and not inputs.get("fifoQueue"):
        message, at = "Unknown Attribute ContentBasedDeduplication.", "contentBasedDeduplication"
        yield Refusal("CreateQueue", "InvalidAttributeName", message, at)


@limit("sqs/queue:Queue", source=f"{_SQS}API_SetQueueAttributes.html")
def dead_letters_of_a_queue(wanted: Wanted) -> Iterator[Refusal]:
    """A target and a number; the dead-letter queue is of the queue's own kind."""
    policy = parse(wanted.inputs.get("redrivePolicy") or {}) or {}
    if not policy:
        return
    fifo = bool(wanted.inputs.get("fifoQueue"))
    target = str(policy.get("deadLetterTargetArn") or "")
    shown = f"Value {json.dumps(policy)} for parameter RedrivePolicy is invalid. Reason: "
    yield from first_of(
        "CreateQueue",
        "InvalidParameterValue",
        (
            not target,
            f"{shown}Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
            "redrivePolicy",
        ),
        (
            policy.get("maxReceiveCount") is None,
            f"{shown}Redrive policy does not contain mandatory attribute: maxReceiveCount.",
            "redrivePolicy",
        ),
        (
            _QUEUE_ARN.fullmatch(target) is None,
            f"{shown}Invalid value for deadLetterTargetArn.",
            "redrivePolicy",
        ),
        (
            re.fullmatch(r"\d+", str(policy.get("maxReceiveCount"))) is None,
            f"{shown}Invalid value for maxReceiveCount: {policy.get('maxReceiveCount')}.",
            "redrivePolicy",
        ),
        (
            # A queue that is being made cannot be found yet.
            target.rpartition(":")[2] == wanted.inputs.get("name"),
            f"{shown}Dead letter target does not exist.",
            "redrivePolicy",
        ),
        (
            target.endswith(".fifo") != fifo,
            f"{shown}Dead-letter queue must be same type of queue as the source.",
            "redrivePolicy",
        ),
    )


@limit("sns/topicSubscription:TopicSubscription", source=f"{_SNS}API_Subscribe.html")
def way_of_a_subscription(wanted: Wanted) -> Iterator[Refusal]:
    """A protocol that there is, and an endpoint of that protocol."""
    inputs = wanted.inputs
    protocol, endpoint = str(inputs.get("protocol")), str(inputs.get("endpoint"))
    fifo = str(inputs.get("topic")).endswith(".fifo")
    by_arn = protocol in {"lambda", "sqs", "firehose", "application"}
    filtered = inputs.get("filterPolicy")
    yield from first_of(
        "Subscribe",
        "InvalidParameter",
        (
            protocol not in PROTOCOLS,
            f"Invalid parameter: Does not support this protocol string: {protocol}",
            "protocol",
        ),
        (
            protocol in {"http", "https"} and not endpoint.startswith(f"{protocol}://"),
            "Invalid parameter: Endpoint must match the specified protocol",
            "endpoint",
        ),
        (
            by_arn and not endpoint.startswith("arn:"),
            f"Invalid parameter: {protocol.upper()} endpoint ARN",
            "endpoint",
        ),
        (
            protocol == "sqs" and endpoint.endswith(".fifo") and not fifo,
            (
                "Invalid parameter: Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be "
                "subscribed to standard SNS topics"
            ),
            "endpoint",
        ),
        (
            filtered and parse(filtered) is None,
            "Invalid parameter: FilterPolicy: failed to parse JSON.",
            "filterPolicy",
        ),
    )


@limit("lambda/function:Function", source=f"{_LAMBDA}API_VpcConfig.html")
def network_and_disk_of_a_function(wanted: Wanted) -> Iterator[Refusal]:
    """Subnets with groups, groups with subnets; 512 MB to 10,240 MB of /tmp."""
    network = wanted.inputs.get("vpcConfig") or {}
    size = (wanted.inputs.get("ephemeralStorage") or {}).get("size")
    yield from first_of(
        "CreateFunction",
        "InvalidParameterValueException",
        (
            bool(network.get("subnetIds")) != bool(network.get("securityGroupIds")),
            "SecurityGroupIds and SubnetIds must be specified together.",
            "vpcConfig",
        ),
        (
            outside(size, *DISK_MB),
            (
                f"1 validation error detected: Value '{size}' at 'ephemeralStorage.size' failed to "
                f"satisfy constraint: Member must have value between {DISK_MB[0]} and {DISK_MB[1]}"
            ),
            "ephemeralStorage",
        ),
    )


@limit(
    "lambda/eventSourceMapping:EventSourceMapping",
    source=f"{_LAMBDA}API_CreateEventSourceMapping.html",
)
def batches_of_a_fifo_queue(wanted: Wanted) -> Iterator[Refusal]:
    """Ten messages, and no window to wait in."""
    if not str(wanted.inputs.get("eventSourceArn")).endswith(".fifo"):
        return
    yield from first_of(
        "CreateEventSourceMapping",
        "InvalidParameterValueException",
        (
            outside(wanted.inputs.get("batchSize"), 1, 10),
            "Batch size must be less than or equal to 10 for FIFO queues.",
            "batchSize",
        ),
        (
            wanted.inputs.get("maximumBatchingWindowInSeconds"),
            "Batching window is not supported for FIFO queues",
            "maximumBatchingWindowInSeconds",
        ),
    )


@limit("cloudwatch/eventTarget:EventTarget", source=f"{_EVENTS}API_Target.html")
def input_and_letters_of_a_target(wanted: Wanted) -> Iterator[Refusal]:
    """An ARN, one kind of input, JSON where it is constant, and dead letters to a plain queue."""
    inputs = wanted.inputs
    given = [k for k in ("input", "inputPath", "inputTransformer") if inputs.get(k) is not None]
    letters = (inputs.get("deadLetterConfig") or {}).get("arn")
    named = inputs.get("targetId") or "terraform"
    yield from first_of(
        "PutTargets",
        "ValidationException",
        (
            not str(inputs.get("arn")).startswith("arn:"),
            (
                f"Parameter {inputs.get('arn')} is not valid. Reason: Provided Arn is not in "
                f"correct format."
            ),
            "arn",
        ),
        (
            len(given) > 1,
            (
                f"Only one of Input, InputPath, or InputTransformer must be provided for target "
                f"{named}."
            ),
            given[-1] if given else "",
        ),
        (
            inputs.get("input") is not None and not is_json(inputs["input"]),
            f"JSON syntax error in input for target {named}",
            "input",
        ),
        (
            len((inputs.get("inputTransformer") or {}).get("inputPaths") or {}) > PATHS,
            f"InputTransformer for target {named} has more than {PATHS} entries in InputPathsMap.",
            "inputTransformer",
        ),
        (
            letters and (":sqs:" not in str(letters) or str(letters).endswith(".fifo")),
            "Parameter DeadLetterConfig.Arn is not valid. Reason: it must be a standard queue's",
            "deadLetterConfig",
        ),
    )
