"""Checks one resource for what no row of the table can say: sums, sizes, foreign models, tags."""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import botocore.session

from core.cluster.tagging import KEY_CHARACTERS, TAG_KEY_LENGTH, TAG_VALUE_LENGTH
from local.refusals.documents import content_of, parse, values, words
from local.refusals.model import clients, service_model
from local.refusals.refusal import EVERY_TYPE, KIB, LAMBDA_QUOTAS, Refusal, Wanted, limit, said
from local.values import Asset

ENVIRONMENT_BYTES = 4 * KIB
USER_DATA_BYTES = 16_384
ZIP_BYTES, UNZIPPED_BYTES = 50 * KIB * KIB, 250 * KIB * KIB
SECONDS_PER_DAY = 86_400
_ITEMS = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
# Bytes of an item, and of its partition key.
ITEM_BYTES, KEY_BYTES = 400 * KIB, 2048


@limit("lambda/function:Function", source=LAMBDA_QUOTAS)
def environment_of_a_function(wanted: Wanted) -> Iterator[Refusal]:
    """4 KB of all variables as JSON, quotes escaped; no request raises it."""
    variables = (wanted.inputs.get("environment") or {}).get("variables") or {}
    measured = json.dumps(dict(variables), separators=(",", ":"), ensure_ascii=False)
    if len(measured.encode()) > ENVIRONMENT_BYTES:
        yield said("variables-of-a-function", measured)


@limit("lambda/function:Function", source=LAMBDA_QUOTAS)
def code_of_a_function(wanted: Wanted) -> Iterator[Refusal]:
    """50 MB as uploaded, 250 MB unpacked, layers included."""
    code = wanted.inputs.get("code")
    path = Path(str(code.content.get("path") if isinstance(code, Asset) else code))
    if not code or not path.is_file():
        return
    if path.stat().st_size > ZIP_BYTES:
        yield said("zip-too-large")
    with zipfile.ZipFile(path) as packed:
        unpacked = sum(each.file_size for each in packed.infolist())
    if unpacked >= UNZIPPED_BYTES:
        yield said("unzipped-too-large", UNZIPPED_BYTES)


@limit(
    "ec2/launchTemplate:LaunchTemplate",
    source="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html",
)
def user_data(wanted: Wanted) -> Iterator[Refusal]:
    """Base64, of 16 KB before it is encoded."""
    try:
        raw = base64.b64decode(wanted.inputs.get("userData") or "", validate=True)
    except (binascii.Error, ValueError):
        wrong = "Invalid BASE64 encoding of user data."
    else:
        too_long = len(raw) > USER_DATA_BYTES
        wrong = f"User data is limited to {USER_DATA_BYTES} bytes" if too_long else ""
    if wrong:
        yield Refusal("CreateLaunchTemplate", "InvalidUserData.Malformed", wrong, "userData")


@limit(
    "cloudwatch/metricAlarm:MetricAlarm",
    source="https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
)
def series_of_an_alarm(wanted: Wanted) -> Iterator[Refusal]:
    """At most a day looked at, or a week of whole hours, and one series returned."""
    queries = values(wanted.inputs, "metricQueries.*")
    longest = max([*values(queries, "*.metric.period"), wanted.inputs.get("period") or 60])
    looked = longest * int(wanted.inputs.get("evaluationPeriods") or 1)
    if looked > (7 * SECONDS_PER_DAY if longest >= 3600 else SECONDS_PER_DAY):
        yield said("days-of-an-alarm")
    # The provider sends false where the program says nothing.
    if queries and sum(bool(query.get("returnData")) for query in queries) != 1:
        yield said("series-of-an-alarm")


@limit(
    "dynamodb/table:Table",
    source="https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateTable.html",
)
def attributes_of_a_table(wanted: Wanted) -> Iterator[Refusal]:
    """Those of its keys and its indexes' keys, and no others."""
    paths = ("globalSecondaryIndexes.*", "localSecondaryIndexes.*")
    owners = [wanted.inputs, *(each for path in paths for each in values(wanted.inputs, path))]
    keys = {each.get(key) for each in owners for key in ("hashKey", "rangeKey")}
    keys |= {*values(owners, "*.keySchemas.*.attributeName")}
    if {*values(wanted.inputs, "attributes.*.name")} != keys - {None}:
        yield said("attributes-of-a-table")


@limit("dynamodb/tableItem:TableItem", source=f"{_ITEMS}Constraints.html")
def key_and_size_of_an_item(wanted: Wanted) -> Iterator[Refusal]:
    """Its key, which is a text, a number or bytes, and short; 400 KB of names and values."""
    item = parse(wanted.inputs["item"]) or {}
    key = wanted.inputs.get("hashKey")
    given = item.get(str(key)) or {}
    kind, value = next(iter(given.items())) if isinstance(given, dict) and given else ("", "")
    if key and key not in item:
        yield said("key-missing", key)
    elif key and kind not in {"S", "N", "B"}:
        yield said("key-mistyped")
    elif key and not 1 <= len(str(value).encode()) <= KEY_BYTES:
        yield said("key-too-long", KEY_BYTES)
    elif sum(len(name.encode()) + _item_bytes(each) for name, each in item.items()) > ITEM_BYTES:
        yield said("item-too-large")


def _item_bytes(value: Any) -> int:
    """Return what DynamoDB counts of a value: a text's bytes, and three beside what is inside."""
    if isinstance(value, Mapping):
        inside = [_item_bytes(each) for each in value.values()]
        return sum(inside) if len(inside) == 1 else 3 + sum(inside)
    if isinstance(value, list):
        return 3 + sum(map(_item_bytes, value))
    return len(str(value).encode())


# Graviton families, as EC2 names them.
_ARM = re.compile(r"([a-z]+\d+g[a-z]*|a1)\.")


@limit(
    "eks/nodeGroup:NodeGroup",
    source="https://docs.aws.amazon.com/eks/latest/userguide/eks-optimized-ami.html",
)
def machines_of_a_node_group(wanted: Wanted) -> Iterator[Refusal]:
    """Types that the image runs on."""
    image = str(wanted.inputs.get("amiType") or "CUSTOM")
    wrong = [str(e) for e in wanted.inputs.get("instanceTypes") or () if not runs(image, str(e))]
    if wrong:
        yield said("machines-of-an-image", ", ".join(wrong), image)


def runs(image: str, instance_type: str) -> bool:
    """Say whether nodes of an image can be of a type."""
    return image == "CUSTOM" or ("ARM" in image) == (_ARM.match(instance_type) is not None)


_ENDPOINT = re.compile(
    r"(?:com|cn\.com)\.amazonaws\.[a-z]{2}(?:-[a-z]+)+-\d\.([a-z0-9-]+)(?:[.].+)?"
)
_ENDPOINTS = words("endpoints")


@limit(
    "ec2/vpcEndpoint:VpcEndpoint",
    source="https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html",
)
def service_of_an_endpoint(wanted: Wanted) -> Iterator[Refusal]:
    """One that there is."""
    service = str(wanted.inputs.get("serviceName") or "")
    found = _ENDPOINT.fullmatch(service)
    if found is not None and found[1] not in clients() | _ENDPOINTS:
        yield said("no-such-endpoint", service)


_UNIVERSAL = re.compile(r"arn:aws[a-z-]*:scheduler:::aws-sdk:([^:]*):([^:.]*)(\.\w+)?")
_READ_ONLY = re.compile(r"(get|describe|list)[A-Z]\w*")
# Where the SDK's name of a service is not botocore's without its hyphens.
_SDK_NAMES = {
    "cloudwatchlogs": "logs",
    "eventbridge": "events",
    "sfn": "stepfunctions",
    "elasticloadbalancingv2": "elbv2",
    "costexplorer": "ce",
    "applicationautoscaling": "application-autoscaling",
}


@limit(
    "scheduler/schedule:Schedule",
    source="https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html",
)
def call_of_a_schedule(wanted: Wanted) -> Iterator[Refusal]:
    """A writing call that botocore's model has, with what it needs and nothing it does not know."""
    target = wanted.inputs.get("target") or {}
    found = _UNIVERSAL.fullmatch(str(target.get("arn") or ""))
    wrong = _wrong_call(found[1], found[2], target.get("input")) if found else ""
    if ":aws-sdk:" in str(target.get("arn")) and found is None:
        wrong = "Provided Arn is not in correct format"
    if wrong:
        yield said("call-of-a-schedule", wrong)


def _wrong_call(service: str, action: str, given: Any) -> str:
    if service not in _services():
        return f"{service} is not a supported service"
    model = service_model(_services()[service])
    operation = {name.lower(): name for name in model.operation_names}.get(action.lower())
    if operation is None or not action[:1].islower() or _READ_ONLY.fullmatch(action):
        return f"{action} is not a supported API of {service}"
    told = content_of(str(given)) if given else {}
    if not isinstance(told, dict):
        return "the input is no JSON object"
    shape = model.operation_model(operation).input_shape
    # The SDK's names differ from botocore's in case; a token it draws where nobody gives one.
    known = {name.lower(): member for name, member in shape.members.items()}
    drawn = {name for name, member in known.items() if member.metadata.get("idempotencyToken")}
    given_names = {key.lower() for key in told} | drawn
    missing = [name for name in shape.required_members if name.lower() not in given_names]
    if missing:
        return f"the required parameter {missing[0]} is missing"
    strange = [key for key in told if key.lower() not in known]
    return f"the parameter {strange[0]} is not known" if strange else ""


@functools.cache
def _services() -> dict[str, str]:
    """Return botocore's name of each service, by the name that the AWS SDK for Java gives it."""
    known = botocore.session.get_session().get_available_services()
    return {each.replace("-", ""): each for each in known} | _SDK_NAMES


TAGGING = "https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html"
# Tags a resource may have, and how one more is refused; what starts with aws: does not count.
MOST = (50, "TagResource", "TooManyTagsException")
MOST_OF_AN_OBJECT = (10, "PutObjectTagging", "BadRequest")
_CHARACTERS = re.compile(KEY_CHARACTERS)


@limit(EVERY_TYPE, source=TAGGING)
def tags_of_a_resource(wanted: Wanted) -> Iterator[Refusal]:
    """50 tags, 10 on an object in S3; keys of 128 characters, values of 256, none of AWS's own."""
    for tags in (wanted.tags, *_of_what_it_launches(wanted)):
        yield from _tag_refusals(wanted.type, tags)


def _of_what_it_launches(wanted: Wanted) -> Iterator[dict[str, str]]:
    if isinstance(alone := wanted.inputs.get("tag"), dict) and alone.get("key"):
        yield {str(alone["key"]): str(alone.get("value") or "")}
    for each in wanted.inputs.get("tagSpecifications") or ():
        yield dict(each.get("tags") or {})


def _tag_refusals(type_: str, tags: dict[str, str]) -> Iterator[Refusal]:
    most, operation, code = MOST_OF_AN_OBJECT if type_.endswith(":BucketObjectv2") else MOST
    if len(tags) > most:
        yield Refusal(operation, code, f"A resource of this kind may have {most} tags", "tags")
    # EC2 takes any character, and what a group hands its instances is EC2's.
    free = type_.startswith(("aws:ec2/", "aws:vpc/", "aws:autoscaling/"))
    for key, value in tags.items():
        if key.lower().startswith("aws:"):
            yield said("tag-of-aws")
        elif not 1 <= len(key) <= TAG_KEY_LENGTH or len(value) > TAG_VALUE_LENGTH:
            yield said("tag-too-long", TAG_KEY_LENGTH, TAG_VALUE_LENGTH, key)
        elif not free and not all(_CHARACTERS.fullmatch(each) for each in (key, value)):
            yield said("tag-characters", key, value)


@limit(
    "iam/role:Role",
    "iam/policy:Policy",
    "iam/instanceProfile:InstanceProfile",
    source="https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html",
)
def tags_that_differ_by_case(wanted: Wanted) -> Iterator[Refusal]:
    """IAM's keys do not tell case apart."""
    lowered = [key.lower() for key in wanted.tags]
    if len(lowered) != len(set(lowered)):
        yield said("tags-by-case")
