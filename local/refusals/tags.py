"""Limits on tags, by what carries them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.cluster.tagging import KEY_CHARACTERS, TAG_KEY_LENGTH, TAG_VALUE_LENGTH
from local.refusals.limits import EVERY_TYPE, limit
from local.refusals.refusal import Refusal, Wanted

TAGGING = "https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html"
# Tags a resource may have; what starts with aws: does not count.
DEFAULT_COUNT = 50
COUNTS = {"aws:s3/bucketObjectv2:BucketObjectv2": 10}
WORDS = {
    "aws:s3/bucketObjectv2:BucketObjectv2": (
        "PutObjectTagging",
        "BadRequest",
        "Object tags cannot be greater than 10",
    )
}
RESERVED = "aws:"
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
    most = COUNTS.get(type_, DEFAULT_COUNT)
    if len(tags) > most:
        usual = ("TagResource", "TooManyTagsException", f"The resource may have {most} tags")
        yield Refusal(*WORDS.get(type_, usual), "tags")
    for key, value in tags.items():
        if key.lower().startswith(RESERVED):
            message = "aws: prefixed tag key names are not allowed for external use."
            yield Refusal("TagResource", "InvalidParameterException", message, "tags")
        if not 1 <= len(key) <= TAG_KEY_LENGTH:
            message = f"Tag key exceeds the maximum length of {TAG_KEY_LENGTH} characters: {key}"
            yield Refusal("TagResource", "InvalidParameterException", message, "tags")
        if len(value) > TAG_VALUE_LENGTH:
            message = (
                f"Tag value exceeds the maximum length of {TAG_VALUE_LENGTH} characters: {key}"
            )
            yield Refusal("TagResource", "InvalidParameterException", message, "tags")
        # EC2 takes any character, and what a group hands its instances is EC2's.
        if not type_.startswith(("aws:ec2/", "aws:vpc/", "aws:autoscaling/")) and not all(
            _CHARACTERS.fullmatch(each) for each in (key, value)
        ):
            message = f"Tag key or value has characters that are not allowed: {key}={value}"
            yield Refusal("TagResource", "InvalidParameterException", message, "tags")


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
        message = "Duplicate tag keys found. Please note that Tag keys are case insensitive."
        yield Refusal("CreateRole", "InvalidInput", message, "tags")
