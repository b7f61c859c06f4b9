"""core.events.parsing.parse against any bytes, any JSON and damaged announcements: no error."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from core.events import Ignored, Interruption, parse
from tests.every_case import every_case
from tests.unit.core.events.announced import (
    DIRECT,
    LAUNCH,
    RESERVATION,
    RETIREMENT_2018,
    SPOT,
    STOPPING,
    TERMINATE,
    retirement,
    with_detail,
)

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20)
)
anything = st.recursive(
    scalars, lambda c: st.lists(c, max_size=4) | st.dictionaries(st.text(max_size=8), c, max_size=4)
)
ENVELOPE = ["id", "source", "detail-type", "account", "region", "time", "resources", "detail"]
DETAILS = (DIRECT, RETIREMENT_2018["detail"], retirement()["detail"], RESERVATION["detail"])
KEYS = sorted({"Message", "Type", *ENVELOPE, *(key for detail in DETAILS for key in detail)})
VALUES = [
    "aws.autoscaling", "aws.ec2", "aws.health", "EC2", "scheduledChange", "i-0aaaaaaa", "closed",
    "autoscaling:EC2_INSTANCE_TERMINATING", "EC2 Instance State-change Notification", "stopped",
    "AWS Health Event", "EC2 Spot Instance Interruption Warning", "\ud800", "2020-13-45T99:00:00Z",
    "Thu, 99 Foo 99999 25:61:61 GMT", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
]  # fmt: skip
values = st.sampled_from(VALUES) | anything
shaped = st.recursive(
    st.dictionaries(st.sampled_from(KEYS), values, max_size=12),
    lambda c: st.dictionaries(
        st.sampled_from(KEYS), values | c | st.lists(c, max_size=3), max_size=12
    ),
    max_leaves=6,
)


def settle(found: tuple[Interruption | Ignored, ...]) -> None:
    assert found
    for result in found:
        result.body.encode()
        if isinstance(result, Ignored):
            assert result.reason.endswith(".")
            result.reason.encode()
        else:
            result.dedupe_key.encode()


@given(st.binary() | st.text(st.characters(exclude_categories=())))
def test_parse_never_raises_whatever_the_bytes(raw: str | bytes) -> None:
    settle(parse(raw))


@given(anything | shaped)
@example({"source": "aws.health", "detail": {"service": "EC2", "affectedEntities": {"a": 1}}})
def test_parse_never_raises_whatever_the_json(message: object) -> None:
    settle(parse(json.dumps(message)))


@given(
    st.sampled_from([TERMINATE, LAUNCH, SPOT, STOPPING, RESERVATION, retirement("i-0aaaaaaa")]),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
)
def test_parse_never_raises_on_a_damaged_announcement(
    event: dict[str, Any], envelope: dict[str, object], detail: dict[str, object]
) -> None:
    settle(parse(json.dumps(with_detail(event, **detail) | envelope)))


BROKEN = [None, True, 7, "x", "\ud800", [], [7], [None], {}, {"a": 1}, [{"entityValue": 7}]]


def places(fields: dict[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    """Return the way to every field of an announcement."""
    for key, value in fields.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from places(value, *above, key)


@every_case("broken", BROKEN, ids=repr)
def test_parse_never_raises_whichever_field_is_broken(broken: object) -> None:
    events = [TERMINATE, DIRECT, SPOT, STOPPING, RESERVATION, RETIREMENT_2018, retirement("i-0a")]
    for event in events:
        for *above, last in places(event):
            damaged = copy.deepcopy(event)
            here = damaged
            for key in above:
                here = here[key]
            here[last] = broken
            settle(parse(json.dumps(damaged)))
