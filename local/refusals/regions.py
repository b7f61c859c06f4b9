"""One program makes its resources in one region: what names another one is not found there."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import botocore.session

from local.refusals.documents import parse
from local.refusals.fields import values
from local.refusals.limits import EVERY_TYPE
from local.refusals.limits import limit as of_one
from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import TABLE, about, limit, of

_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


@limit("https://docs.aws.amazon.com/general/latest/gr/rande.html")
def one_region(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The region that most of a program's own inputs name; with as many of two, nobody knows."""
    named = [
        (each, row, region)
        for row in TABLE["region"]
        for each in of(everything, row["type"])
        for region in _regions(each, row["at"])
    ]
    own = _most_common(named)
    for each, row, region in named:
        if own and region != own:
            message, at = row["says"].format(region, own), row["at"].partition(".")[0]
            yield about(each, row["operation"], row["code"], message, at)


def _most_common(named: Sequence[tuple[Wanted, Mapping[str, Any], str]]) -> str:
    most = Counter(region for *_, region in named).most_common(2)
    tied = len(most) == 2 and most[0][1] == most[1][1]
    return "" if not most or tied else most[0][0]


def _regions(wanted: Wanted, path: str) -> list[str]:
    if wanted.inputs.get("region"):
        # Made elsewhere on purpose.
        return []
    given = values(wanted.inputs, path)
    if path == "redrivePolicy":
        given = [(parse(each) or {}).get("deadLetterTargetArn") for each in given]
    found = (_REGION.search(_place(str(each))) for each in given)
    return [each[0] for each in found if each]


def _place(written: str) -> str:
    """Return the part of an ARN, a service's name or a zone that names its region."""
    if written.startswith("arn:"):
        return written.split(":")[3] if written.count(":") > 3 else ""
    return written


@of_one(EVERY_TYPE, source="https://docs.aws.amazon.com/general/latest/gr/rande.html")
def region_of_a_resource(wanted: Wanted) -> Iterator[Refusal]:
    """A resource that is made elsewhere is made in a region that there is."""
    region = wanted.inputs.get("region")
    if region and region not in regions():
        message = f"invalid AWS Region: {region}"
        yield Refusal("the provider's check", "Invalid Attribute Value", message, "region")


@functools.cache
def regions() -> frozenset[str]:
    """Return the regions of every partition.

    >>> "eu-central-1" in regions(), "mars-1" in regions()
    (True, False)
    """
    session = botocore.session.get_session()
    partitions = session.get_available_partitions()
    return frozenset(r for p in partitions for r in session.get_available_regions("s3", p))
