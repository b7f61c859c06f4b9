"""What crossed zones, shared out by the brokers' counters: never more than was billed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from spark.rules.names import Flow
from spark.samples import BYTES_OUT, Series, seconds_of
from spark.transforms.transfer import BYTES_PER_GB, Traffic, transfer_rows
from spark.transforms.transfer import traffic as daily_traffic
from tests.unit.spark import here

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


def flows(rows: Sequence[Any], counters: Any) -> dict[str, Any]:
    return {row.flow: row for row in transfer_rows(here.grain(*rows), counters)}


def test_each_flow_has_the_bytes_its_counters_say_were_billed() -> None:
    # Of 30 GB produced and 60 consumed two thirds cross; 60 replicated cross whole, billed twice.
    found = flows([moved(200)], seen(30, 60, 60))
    assert {flow: row.billed_bytes // GB for flow, row in found.items()} == {
        "produce": 20,
        "replicate": 120,
        "consume": 40,
        "between zones, flow not known": 20,
    }
    assert sum(row.billed_bytes for row in found.values()) == 200 * GB
    assert sum(row.billed_cost for row in found.values()) == Decimal(2)
    assert {flow: row.certainty for flow, row in found.items()} == {
        "produce": "shared",
        "replicate": "shared",
        "consume": "at most",
        "between zones, flow not known": "billed",
    }


def test_fetching_from_the_own_zone_would_leave_out_what_consumers_cost() -> None:
    bill = [moved(200)]
    found = flows(bill, seen(30, 60, 60))
    assert found["consume"].rack_aware_saving == found["consume"].billed_cost > Decimal("0.39")
    assert {row.rack_aware_saving for flow, row in found.items() if flow != "consume"} == {0}


def test_where_brokers_let_them_consumers_have_what_the_bill_leaves() -> None:
    # Of 40 GB that would cross 15 were billed beside what was produced and replicated.
    counters = seen(30, 60, 60, follower_fetching=True)
    found = flows([moved(155)], counters)
    assert {flow: row.billed_bytes // GB for flow, row in found.items()} == {
        "produce": 20,
        "replicate": 120,
        "consume": 15,
    }
    assert found["consume"].certainty == "at most"
    assert found["consume"].rack_aware_saving == pytest.approx(Decimal("0.15"))
    # More than all of them would cross with is never theirs.
    roomy = flows([moved(200)], counters)
    assert roomy["consume"].billed_bytes // GB == 40
    assert roomy["between zones, flow not known"].billed_bytes // GB == 20


def test_where_brokers_do_not_what_consumers_cross_with_is_known() -> None:
    counters = seen(30, 60, 60, follower_fetching=False)
    found = flows([moved(200)], counters)
    assert found["consume"].certainty == "shared"
    assert found["consume"].rack_aware_saving == found["consume"].billed_cost > 0


@pytest.mark.parametrize("follower_fetching", [True, False, None])
def test_what_the_brokers_allow_stands_beside_their_counters(
    follower_fetching: bool | None,
) -> None:
    hours = [seconds_of(datetime(2026, 10, 3, hour, tzinfo=UTC)) or 0.0 for hour in (1, 2)]
    points = list(zip(hours, (5.0, 12.0), strict=True))
    series = Series(name=BYTES_OUT, cluster="orders", points=points)
    found = daily_traffic([series], 3, follower_fetching=follower_fetching)
    assert found == {(DAY, "orders"): Traffic(0, 0, 7, 3, follower_fetching)}


def test_counters_that_saw_more_than_was_billed_share_out_the_bill_and_no_more() -> None:
    found = flows([moved(90)], seen(30, 60, 60))
    assert sum(row.billed_bytes for row in found.values()) == 90 * GB
    assert sum(row.billed_cost for row in found.values()) == Decimal("0.9")
    shares = {flow: round(row.billed_bytes / (90 * GB), 3) for flow, row in found.items()}
    assert shares["replicate"] == pytest.approx(120 / 180, abs=0.001)


def test_in_one_zone_no_counter_explains_a_byte_between_zones() -> None:
    found = flows([moved(10)], seen(30, 60, 60, zones=1))
    assert list(found) == ["between zones, flow not known"]
    assert found["between zones, flow not known"].billed_cost == Decimal("0.1")


def test_what_its_own_meter_names_is_never_shared_out() -> None:
    found = flows(
        [
            moved(60),
            moved(5, Flow.PEERING),
            moved(7, Flow.LOAD_BALANCER_ZONES),
            moved(1, Flow.PRIVATELINK),
            moved(0, Flow.LOAD_BALANCER),
        ],
        seen(30, 10, 0),
    )
    own = {flow: (row.billed_bytes // GB, row.certainty) for flow, row in found.items()}
    assert own == {
        "produce": (20, "shared"),
        "replicate": (20, "shared"),
        "between zones, flow not known": (20, "billed"),
        "peering": (5, "billed"),
        "load balancer between zones": (7, "billed"),
        "PrivateLink": (1, "billed"),
        "load balancer": (0, "billed"),
    }


def test_a_day_without_counters_keeps_one_row_whose_flow_is_not_known() -> None:
    found = flows([moved(10)], {})
    assert list(found) == ["between zones, flow not known"]
