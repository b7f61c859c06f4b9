"""Refuses what queues, topics, functions and the targets of rules do not take together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.documents import is_json, parse, text
from local.refusals.limits import first_about, first_of, limit, outside
from local.refusals.refusal import Refusal, Wanted

_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/api/"
_EVENTS = "https://docs.aws.amazon.com/eventbridge/latest/APIReference/"
DISK_MB = (512, 10_240)
PATHS = 100
# SQS developer guide, "Dead-letter queues": how often a message may be received before it goes.
MOST_RECEIVES = 1000
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
    """A target of the queue's own kind, a number up to a thousand, and no third key."""
    given = wanted.inputs.get("redrivePolicy") or {}
    policy = parse(given)
    if policy is None:
        message = "Invalid value for the parameter RedrivePolicy."
        yield Refusal("CreateQueue", "InvalidAttributeValue", message, "redrivePolicy")
    if not policy:
        return
    target, count = str(policy.get("deadLetterTargetArn") or ""), policy.get("maxReceiveCount")
    unknown = sorted(set(policy) - {"deadLetterTargetArn", "maxReceiveCount"})
    shown = f"Value {text(given)} for parameter RedrivePolicy is invalid. Reason: "
    lacks = f"{shown}Redrive policy does not contain mandatory attribute: "
    yield from first_about(
        "CreateQueue",
        "InvalidParameterValue",
        "redrivePolicy",
        (not target, f"{lacks}deadLetterTargetArn."),
        (count is None, f"{lacks}maxReceiveCount."),
        (unknown, f"{shown}Unknown key {unknown[:1]}."),
        (
            _QUEUE_ARN.fullmatch(target) is None,
            f"{shown}Invalid value for deadLetterTargetArn.",
        ),
        (
            not str(count).isdecimal() or outside(count, 1, MOST_RECEIVES),
            (
                f"{shown}Invalid value for maxReceiveCount: {count}, valid values are from 1 to "
                f"{MOST_RECEIVES} both inclusive."
            ),
        ),
        (
            # A queue that is being made cannot be found yet.
            target.rpartition(":")[2] == wanted.inputs.get("name"),
            f"{shown}Dead letter target does not exist.",
        ),
        (
            target.endswith(".fifo") != bool(wanted.inputs.get("fifoQueue")),
            f"{shown}Dead-letter queue must be same type of queue as the source.",
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
def batches_of_a_mapping(wanted: Wanted) -> Iterator[Refusal]:
    """Ten messages, of a FIFO queue no more and without a window; of others more with one."""
    fifo = str(wanted.inputs.get("eventSourceArn")).endswith(".fifo")
    size, window = (
        wanted.inputs.get(key) for key in ("batchSize", "maximumBatchingWindowInSeconds")
    )
    yield from first_of(
        "CreateEventSourceMapping",
        "InvalidParameterValueException",
        (
            fifo and outside(size, 1, 10),
            "Batch size must be less than or equal to 10 for FIFO queues.",
            "batchSize",
        ),
        (
            fifo and window,
            "Batching window is not supported for FIFO queues",
            "maximumBatchingWindowInSeconds",
        ),
        (
            int(size or 10) > 10 and not window,
            (
                "Maximum batch window in seconds must be greater than 0 if maximum batch size is "
                "greater than 10"
            ),
            "batchSize",
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
