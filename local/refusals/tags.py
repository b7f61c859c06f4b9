"""Limits on tags, by what carries them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.cluster.tagging import KEY_CHARACTERS, TAG_KEY_LENGTH, TAG_VALUE_LENGTH
from local.refusals.limits import EVERY_TYPE, limit
from local.refusals.refusal import Refusal, Wanted

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
        wrong = ""
        if key.lower().startswith("aws:"):
            wrong = "aws: prefixed tag key names are not allowed for external use."
        elif not 1 <= len(key) <= TAG_KEY_LENGTH or len(value) > TAG_VALUE_LENGTH:
            wrong = f"A tag has {TAG_KEY_LENGTH} characters in its key and {TAG_VALUE_LENGTH} in "
            wrong += f"its value at most: {key}"
        elif not free and not all(_CHARACTERS.fullmatch(each) for each in (key, value)):
            wrong = f"Tag key or value has characters that are not allowed: {key}={value}"
        if wrong:
            yield Refusal("TagResource", "InvalidParameterException", wrong, "tags")


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
