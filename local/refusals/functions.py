"""Refuses what Lambda does not take of runtimes, logs, dead letters and sources."""

from __future__ import annotations

from collections.abc import Iterator

from local.refusals.fields import values
from local.refusals.limits import first_of, limit
from local.refusals.principals import is_service
from local.refusals.refusal import Refusal, Wanted

_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/"
# Those that nobody may create functions of any more; the model still lists them.
_GONE = frozenset(
    {
        *("dotnetcore1.0", "dotnetcore2.0", "dotnetcore2.1", "dotnetcore3.1", "go1.x", "java8"),
        *("nodejs", "nodejs4.3", "nodejs4.3-edge", "nodejs6.10", "nodejs8.10", "nodejs10.x"),
        *("nodejs12.x", "nodejs14.x", "provided", "python2.7", "python3.6", "python3.7"),
        *("ruby2.5", "ruby2.7"),
    }
)
# A stream's settings: of no use, and refused, where a queue feeds the function.
_OF_STREAMS = (
    *("bisectBatchOnFunctionError", "maximumRecordAgeInSeconds", "maximumRetryAttempts"),
    *("parallelizationFactor", "startingPosition", "startingPositionTimestamp"),
    *("tumblingWindowInSeconds",),
)


@limit("lambda/function:Function", source=f"{_LAMBDA}dg/lambda-runtimes.html")
def runtime_of_a_function(wanted: Wanted) -> Iterator[Refusal]:
    """One that is still supported."""
    runtime = wanted.inputs.get("runtime")
    if runtime in _GONE:
        message = f"The runtime parameter of {runtime} is no longer supported for creating or "
        message += "updating AWS Lambda functions. We recommend you use a supported runtime while "
        message += "creating or updating functions."
        yield Refusal("CreateFunction", "InvalidParameterValueException", message, "runtime")


@limit("lambda/function:Function", source=f"{_LAMBDA}api/API_LoggingConfig.html")
def logs_and_letters_of_a_function(wanted: Wanted) -> Iterator[Refusal]:
    """Levels of JSON logs alone; dead letters to a standard queue or topic."""
    inputs = wanted.inputs
    logs = inputs.get("loggingConfig") or {}
    zipped = inputs.get("packageType", "Zip") == "Zip"
    layers = inputs.get("layers") or ()
    levels = [each for each in ("applicationLogLevel", "systemLogLevel") if logs.get(each)]
    letters = (inputs.get("deadLetterConfig") or {}).get("targetArn")
    at_once = inputs.get("reservedConcurrentExecutions")
    yield from first_of(
        "CreateFunction",
        "InvalidParameterValueException",
        (
            levels and logs.get("logFormat") != "JSON",
            f"{levels[:1]} can be set only where LogFormat is JSON.",
            "loggingConfig",
        ),
        (
            len({str(each).rpartition(":")[0] for each in layers}) < len(layers),
            (
                "Two different versions of the same layer are not allowed to be referenced in the "
                "same function."
            ),
            "layers",
        ),
        (
            letters and not any(f":{each}:" in str(letters) for each in ("sqs", "sns")),
            f"The provided dead letter target {letters} is neither a queue nor a topic.",
            "deadLetterConfig",
        ),
        (
            at_once is not None and int(at_once) < -1,
            "ReservedConcurrentExecutions must be 0 or more.",
            "reservedConcurrentExecutions",
        ),
        (
            zipped and not (inputs.get("handler") and inputs.get("runtime")),
            (
                "Runtime and Handler are mandatory parameters for functions created with "
                "deployment packages."
            ),
            "handler",
        ),
    )


@limit(
    "lambda/eventSourceMapping:EventSourceMapping",
    source=f"{_LAMBDA}api/API_CreateEventSourceMapping.html",
)
def settings_of_a_mapping(wanted: Wanted) -> Iterator[Refusal]:
    """A queue has no position and no retries of its own; a stream begins somewhere."""
    inputs = wanted.inputs
    arn = str(inputs.get("eventSourceArn") or "")
    queue, stream = ":sqs:" in arn, ":kinesis:" in arn or ":dynamodb:" in arn
    extra = [each for each in _OF_STREAMS if inputs.get(each) is not None]
    yield from first_of(
        "CreateEventSourceMapping",
        "InvalidParameterValueException",
        (
            queue and extra,
            f"Unsupported {''.join(extra[:1])} parameter for given event source mapping type.",
            "".join(extra[:1]),
        ),
        (
            queue and values(inputs, "destinationConfig.onFailure.destinationArn"),
            "DestinationConfig is not supported for queues.",
            "destinationConfig",
        ),
        (
            stream and not inputs.get("startingPosition"),
            "1 validation error detected: StartingPosition is required for stream sources.",
            "startingPosition",
        ),
        (
            inputs.get("startingPosition") == "AT_TIMESTAMP" and ":dynamodb:" in arn,
            "Unsupported starting position for DynamoDB Streams: AT_TIMESTAMP.",
            "startingPosition",
        ),
        (
            not queue and values(inputs, "scalingConfig.maximumConcurrency"),
            "ScalingConfig is supported for queues alone.",
            "scalingConfig",
        ),
    )


@limit("lambda/permission:Permission", source=f"{_LAMBDA}api/API_AddPermission.html")
def principal_of_a_permission(wanted: Wanted) -> Iterator[Refusal]:
    """An account, somebody of an account, everybody, or a service of AWS's."""
    principal = str(wanted.inputs.get("principal") or "")
    if principal.endswith(".amazonaws.com") and not is_service(principal):
        message = "The provided principal was invalid. Please check the principal and try again."
        yield Refusal("AddPermission", "InvalidParameterValueException", message, "principal")
