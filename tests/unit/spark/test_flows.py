"""What crossed zones, shared out by the brokers' counters: never more than was billed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from spark.rules.meters import Flow
from spark.samples import BYTES_OUT, Series, seconds_of
from spark.transforms.transfer import BYTES_PER_GB, Traffic, transfer_rows
from spark.transforms.transfer import traffic as daily_traffic
from tests.unit.spark import bills

DAY = date(2026, 10, 3)
GB = BYTES_PER_GB


def moved(gigabytes: int, flow: Flow = Flow.UNEXPLAINED) -> Any:
    """One cluster's bytes of a day in the cost grain, at a cent a GB."""
    cost = Decimal(gigabytes) / 100
    costs = dict.fromkeys(("billed_cost", "amortised_cost", "net_cost"), cost)
    own = {"billing_period": "2026-10", "day": DAY, "cluster": "orders", "currency": "USD"}
    return {**own, **costs, "flow": flow.value, "gigabytes": Decimal(gigabytes)}


def seen(
    produced: int,
    replicated: int,
    consumed: int,
    *,
    zones: int = 3,
    follower_fetching: bool | None = None,
) -> dict[Any, Traffic]:
    counted = (produced * GB, replicated * GB, consumed * GB)
    return {(DAY, "orders"): Traffic(*counted, zones, follower_fetching)}


OPEN = "between zones, flow not known"
# Of 30 GB produced and 60 consumed two thirds cross; 60 replicated cross whole, billed twice.
CASES: Mapping[str, tuple[Sequence[Any], Any, Mapping[str, tuple[int, str]]]] = {
    "what counters say was billed": (
        [moved(200)],
        seen(30, 60, 60),
        {
            "produce": (20, "shared"),
            "replicate": (120, "shared"),
            "consume": (40, "at most"),
            OPEN: (20, "billed"),
        },
    ),
    # Of 40 GB that would cross 15 were billed beside what was produced and replicated.
    "where brokers let them consumers have what the bill leaves": (
        [moved(155)],
        seen(30, 60, 60, follower_fetching=True),
        {"produce": (20, "shared"), "replicate": (120, "shared"), "consume": (15, "at most")},
    ),
    "and never more than all of them would cross with": (
        [moved(200)],
        seen(30, 60, 60, follower_fetching=True),
        {
            "produce": (20, "shared"),
            "replicate": (120, "shared"),
            "consume": (40, "at most"),
            OPEN: (20, "billed"),
        },
    ),
    "where brokers do not what they cross with is known": (
        [moved(200)],
        seen(30, 60, 60, follower_fetching=False),
        {
            "produce": (20, "shared"),
            "replicate": (120, "shared"),
            "consume": (40, "shared"),
            OPEN: (20, "billed"),
        },
    ),
    "counters that saw more than was billed share out the bill": (
        [moved(90)],
        seen(30, 60, 60),
        {"produce": (10, "shared"), "replicate": (60, "shared"), "consume": (20, "at most")},
    ),
    "in one zone nothing is explained": (
        [moved(10)],
        seen(30, 60, 60, zones=1),
        {OPEN: (10, "billed")},
    ),
    "without counters neither": ([moved(10)], {}, {OPEN: (10, "billed")}),
    "what its own meter names is never shared out": (
        [
            moved(60),
            moved(5, Flow.PEERING),
            moved(7, Flow.LOAD_BALANCER_ZONES),
            moved(1, Flow.PRIVATELINK),
            moved(0, Flow.LOAD_BALANCER),
        ],
        seen(30, 10, 0),
        {
            "produce": (20, "shared"),
            "replicate": (20, "shared"),
            OPEN: (20, "billed"),
            "peering": (5, "billed"),
            "load balancer between zones": (7, "billed"),
            "PrivateLink": (1, "billed"),
            "load balancer": (0, "billed"),
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_flow_has_its_bytes_and_all_of_them_the_bill(case: str) -> None:
    bill, counters, wanted = CASES[case]
    found = {row.flow: row for row in transfer_rows(bills.grain(*bill), counters)}
    told = {flow: (round(row.billed_bytes / GB), row.certainty) for flow, row in found.items()}
    assert told == wanted
    whole = sum(row["gigabytes"] for row in bill)
    assert sum(row.billed_bytes for row in found.values()) == whole * GB
    assert sum(row.billed_cost for row in found.values()) == whole / 100
    # Fetching from the own zone would leave out what consumers cost, and nothing else.
    for flow, row in found.items():
        assert row.rack_aware_saving == (row.billed_cost if flow == "consume" else 0)


@pytest.mark.parametrize("follower_fetching", [True, False, None])
def test_what_the_brokers_allow_stands_beside_their_counters(
    follower_fetching: bool | None,
) -> None:
    hours = [seconds_of(datetime(2026, 10, 3, hour, tzinfo=UTC)) or 0.0 for hour in (1, 2)]
    points = list(zip(hours, (5.0, 12.0), strict=True))
    series = Series(name=BYTES_OUT, cluster="orders", points=points)
    found = daily_traffic([series], 3, follower_fetching=follower_fetching)
    assert found == {(DAY, "orders"): Traffic(0, 0, 7, 3, follower_fetching)}
