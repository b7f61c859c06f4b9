"""Limits on what is one long text: policies, environments, user data, patterns, code."""

from __future__ import annotations

import base64
import binascii
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from local.refusals.limits import (
    IAM_QUOTAS,
    KIB,
    LAMBDA_QUOTAS,
    SQS_QUOTAS,
    Refuser,
    enter_line,
    limit,
)
from local.refusals.refusal import Refusal, Wanted
from local.values import Asset

ENVIRONMENT_BYTES = 4 * KIB
INLINE_POLICY = 10_240
MANAGED_POLICY = 6_144
TRUST_POLICY = 2_048
USER_DATA_BYTES = 16_384
ZIP_BYTES = 50 * KIB * KIB
UNZIPPED_BYTES = 250 * KIB * KIB


def text(document: Any) -> str:
    """Return a document as it is sent; a program may pass it as text or as an object."""
    return document if isinstance(document, str) else json.dumps(document)


def is_json(written: object) -> bool:
    """Say whether a text is JSON."""
    try:
        json.loads(str(written), parse_constant=_no_number)
    except ValueError:
        return False
    return True


def _no_number(written: str) -> float:
    # Python reads NaN and Infinity; JSON has neither.
    raise ValueError(written)


def parse(document: Any) -> dict[str, Any] | None:
    """Return a document's content; None: it is no JSON object."""
    try:
        found = json.loads(text(document), parse_constant=_no_number)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def parse_yaml(document: Any) -> Any:
    """Return the content of JSON or YAML; None: it is neither."""
    try:
        # YAML takes no tabs, which JSON may be indented with.
        return json.loads(str(document))
    except ValueError:
        try:
            return yaml.safe_load(str(document))
        except yaml.YAMLError:
            return None


def as_list(given: Any) -> list[Any]:
    """Return what a policy names once or in a list."""
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def without_whitespace(document: Any) -> int:
    """Return a policy's size as IAM counts it: characters that are not white space."""
    return sum(not character.isspace() for character in text(document))


def _bytes(document: Any) -> int:
    return len(text(document).encode())


def iam_policy(wanted: Wanted) -> tuple[str, str]:
    """Return the input that holds a policy of IAM's own, and the operation that stores it."""
    return {
        "aws:iam/policy:Policy": ("policy", "CreatePolicy"),
        "aws:iam/role:Role": ("assumeRolePolicy", "CreateRole"),
        "aws:iam/rolePolicy:RolePolicy": ("policy", "PutRolePolicy"),
    }[wanted.type]


@limit("lambda/function:Function", source=LAMBDA_QUOTAS)
def environment_of_a_function(wanted: Wanted) -> Iterator[Refusal]:
    """4 KB of all variables as JSON, quotes escaped; no request raises it."""
    variables = (wanted.inputs.get("environment") or {}).get("variables") or {}
    measured = json.dumps(dict(variables), separators=(",", ":"), ensure_ascii=False)
    if len(measured.encode()) > ENVIRONMENT_BYTES:
        yield Refusal(
            "CreateFunction",
            "InvalidParameterValueException",
            "Lambda was unable to configure your environment variables because the environment "
            f"variables you have provided exceeded the 4KB limit. String measured: {measured}",
            "environment",
        )


# Those that a function may not set; the runtime sets them.
RESERVED_VARIABLES = frozenset(
    {
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
        "AWS_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_LAMBDA_RUNTIME_API",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "LAMBDA_RUNTIME_DIR",
        "LAMBDA_TASK_ROOT",
    }
)


@limit(
    "lambda/function:Function",
    source="https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html",
)
def reserved_variables_of_a_function(wanted: Wanted) -> Iterator[Refusal]:
    """The runtime's own variables may not be set."""
    variables = (wanted.inputs.get("environment") or {}).get("variables") or {}
    taken = sorted(RESERVED_VARIABLES & set(variables))
    if taken:
        yield Refusal(
            "CreateFunction",
            "InvalidParameterValueException",
            "Lambda was unable to configure your environment variables because the environment "
            "variables you have provided contains reserved keys that are currently not supported "
            f"for modification. Reserved keys used in this request: {', '.join(taken)}",
            "environment",
        )


def _path(code: Any) -> Path | None:
    if isinstance(code, Asset):
        code = code.content.get("path")
    return Path(str(code)) if code and Path(str(code)).is_file() else None


@limit("lambda/function:Function", source=LAMBDA_QUOTAS)
def code_of_a_function(wanted: Wanted) -> Iterator[Refusal]:
    """50 MB as uploaded, 250 MB unpacked, layers included."""
    zipped = _path(wanted.inputs.get("code"))
    if zipped is None:
        return
    if zipped.stat().st_size > ZIP_BYTES:
        yield Refusal(
            "CreateFunction",
            "RequestEntityTooLargeException",
            "Request must be smaller than 70167211 bytes for the CreateFunction operation",
            "code",
        )
    with zipfile.ZipFile(zipped) as content:
        unpacked = sum(each.file_size for each in content.infolist())
    if unpacked >= UNZIPPED_BYTES:
        yield Refusal(
            "CreateFunction",
            "InvalidParameterValueException",
            f"Unzipped size must be smaller than {UNZIPPED_BYTES} bytes",
            "code",
        )


@limit("iam/rolePolicy:RolePolicy", source=IAM_QUOTAS)
def inline_policy(wanted: Wanted) -> Iterator[Refusal]:
    """10,240 characters of all inline policies of a role; `together` adds them up."""
    if without_whitespace(wanted.inputs["policy"]) > INLINE_POLICY:
        yield Refusal(
            "PutRolePolicy",
            "LimitExceeded",
            f"Maximum policy size of {INLINE_POLICY} bytes exceeded for role "
            f"{wanted.inputs['role']}",
            "policy",
        )


@limit(
    "iam/policy:Policy",
    "iam/role:Role",
    "iam/rolePolicy:RolePolicy",
    source="https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_sid.html",
)
def statement_ids(wanted: Wanted) -> Iterator[Refusal]:
    """IAM takes letters and digits in a Sid, and each Sid once in a policy."""
    key, operation = iam_policy(wanted)
    statements = as_list((parse(wanted.inputs[key]) or {}).get("Statement"))
    sids = [str(each["Sid"]) for each in statements if isinstance(each, dict) and each.get("Sid")]
    for sid in sids:
        if not (sid.isascii() and sid.isalnum()):
            message = "Statement IDs (SID) must be alpha-numeric. Check that your input satisfies "
            message += "the regular expression [0-9A-Za-z]*"
            yield Refusal(operation, "MalformedPolicyDocument", message, key)
    if len(sids) != len(set(sids)):
        message = "Statement IDs (SID) in a single policy must be unique."
        yield Refusal(operation, "MalformedPolicyDocument", message, key)


@limit("sqs/queue:Queue", "sqs/queuePolicy:QueuePolicy", source=SQS_QUOTAS)
def queue_policy(wanted: Wanted) -> Iterator[Refusal]:
    """8,192 bytes, 20 statements, 7 actions each."""
    policy = text(wanted.inputs.get("policy") or {})
    statements = as_list((parse(policy) or {}).get("Statement"))
    actions = [each.get("Action") for each in statements if isinstance(each, dict)]
    most = max((len(as_list(each)) for each in actions), default=0)
    if len(policy.encode()) > 8 * KIB or len(statements) > 20 or most > 7:
        message = "Invalid value for the parameter Policy."
        yield Refusal("SetQueueAttributes", "InvalidAttributeValue", message, "policy")


@limit(
    "ec2/launchTemplate:LaunchTemplate",
    source="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html",
)
def user_data(wanted: Wanted) -> Iterator[Refusal]:
    """16 KB before it is encoded."""
    encoded = wanted.inputs.get("userData")
    if not encoded:
        return
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        message = "Invalid BASE64 encoding of user data."
        yield Refusal("CreateLaunchTemplate", "InvalidUserData.Malformed", message, "userData")
        return
    if len(raw) > USER_DATA_BYTES:
        message = f"User data is limited to {USER_DATA_BYTES} bytes"
        yield Refusal("CreateLaunchTemplate", "InvalidUserData.Malformed", message, "userData")


def _enter_size(
    of: Refuser,
    path: str,
    most: int,
    message: str,
    source: str,
    measure: Callable[[Any], int] = _bytes,
) -> None:
    """Enter how long a document may be."""
    enter_line(of, path, source, lambda value: message if measure(value) > most else "")


_enter_size(
    Refuser("iam/policy:Policy", "CreatePolicy", "LimitExceeded"),
    "policy",
    MANAGED_POLICY,
    f"Cannot exceed quota for PolicySize: {MANAGED_POLICY}",
    IAM_QUOTAS,
    without_whitespace,
)
_enter_size(
    Refuser("iam/role:Role", "CreateRole", "LimitExceeded"),
    "assumeRolePolicy",
    # Unless somebody had it raised to 4,096.
    TRUST_POLICY,
    f"Cannot exceed quota for ACLSizePerRole: {TRUST_POLICY}",
    IAM_QUOTAS,
    without_whitespace,
)
_enter_size(
    Refuser("s3/bucketPolicy:BucketPolicy", "PutBucketPolicy", "PolicyTooLarge"),
    "policy",
    20 * KIB,
    "Policies must be valid JSON and the first byte must be '{', up to 20 KB in size",
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/add-bucket-policy.html",
)
_enter_size(
    Refuser("kms/key:Key", "CreateKey", "LimitExceededException"),
    "policy",
    32 * KIB,
    "The key policy document exceeds the maximum size of 32768 bytes",
    "https://docs.aws.amazon.com/kms/latest/developerguide/resource-limits.html",
)
_enter_size(
    Refuser("ec2/vpcEndpoint:VpcEndpoint", "CreateVpcEndpoint", "InvalidPolicyDocument"),
    "policy",
    20 * KIB,
    f"The policy of a VPC endpoint may have {20 * KIB} characters",
    "https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-limits-endpoints.html",
    # White space included.
    lambda policy: len(text(policy)),
)
for token in ("sns/topic:Topic", "sns/topicPolicy:TopicPolicy"):
    _enter_size(
        Refuser(token, "SetTopicAttributes", "InvalidParameter"),
        "policy",
        30 * KIB,
        "Invalid parameter: Policy Error: policy too long",
        "https://docs.aws.amazon.com/general/latest/gr/sns.html#limits_sns",
    )
_enter_size(
    Refuser(
        "secretsmanager/secretVersion:SecretVersion", "PutSecretValue", "InvalidParameterException"
    ),
    "secretString",
    64 * KIB,
    "The secret value exceeds the maximum size of 65536 bytes",
    "https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html",
)
_enter_size(
    Refuser("scheduler/schedule:Schedule", "CreateSchedule", "ValidationException"),
    "target.input",
    256 * KIB,
    "Target.Input must be at most 256 KB",
    "https://docs.aws.amazon.com/scheduler/latest/UserGuide/scheduler-quotas.html",
)
_enter_size(
    Refuser("s3/bucketObjectv2:BucketObjectv2", "PutObject", "KeyTooLongError"),
    "key",
    KIB,
    "Your key is too long",
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html",
)
