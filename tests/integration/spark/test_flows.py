"""What crossed zones, shared out by the brokers' counters: never more than was billed."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from spark import frames
from spark.findings import SAMPLES
from spark.jobs.transfer import transfer_table
from spark.schemas import TRAFFIC, USAGE
from spark.transforms import counters
from spark.transforms.traffic import traffic as daily_traffic
from spark.transforms.transfer import BYTES_PER_GB

pytestmark = pytest.mark.integration
DAY = date(2026, 10, 3)
GB = BYTES_PER_GB


def usage(session: SparkSession, *rows: dict[str, Any]) -> Any:
    """USAGE of one cluster's bytes between zones, at a cent a GB."""
    plain = {
        "billing_period": "2026-10",
        "day": DAY,
        "currency": "USD",
        "component": "inter-AZ transfer",
        "cluster": "orders",
        "usage_type": "DataTransfer-Regional-Bytes",
        "operation": "InterZone-In",
        "resource_id": "i-1",
        "unit": "GB",
        "charges": 1,
    }
    filled = []
    for row in rows:
        cost = Decimal(row["quantity"]) / 100
        costs = dict.fromkeys(("billed_cost", "amortised_cost", "net_cost"), cost)
        filled.append([{**plain, **costs, **row}.get(name) for name in USAGE.names])
    return frames.of_rows(session, filled, USAGE)


def traffic(
    session: SparkSession,
    produced: int,
    replicated: int,
    consumed: int,
    *,
    zones: int = 3,
    rack_aware: str | None = None,
) -> Any:
    row = (DAY, "orders", produced * GB, replicated * GB, consumed * GB, zones, rack_aware)
    return frames.of_rows(session, [row], TRAFFIC)


def flows(usage: Any, counters: Any) -> dict[str, Row]:
    return {row.flow: row for row in transfer_table(usage, counters).collect()}


def test_each_flow_has_the_bytes_its_counters_say_were_billed(session: SparkSession) -> None:
    # Of 30 GB produced and 60 consumed two thirds cross; 60 replicated cross whole, billed twice.
    found = flows(usage(session, {"quantity": 200}), traffic(session, 30, 60, 60))
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


def test_fetching_from_the_own_zone_would_leave_out_what_consumers_cost(
    session: SparkSession,
) -> None:
    bill = usage(session, {"quantity": 200})
    found = flows(bill, traffic(session, 30, 60, 60))
    assert found["consume"].rack_aware_saving == found["consume"].billed_cost > Decimal("0.39")
    assert {row.rack_aware_saving for flow, row in found.items() if flow != "consume"} == {0}
    already = flows(bill, traffic(session, 30, 60, 60, rack_aware="true"))
    assert "consume" not in already
    assert {row.rack_aware_saving for row in already.values()} == {0}


def test_where_brokers_let_them_consumers_have_what_the_bill_leaves(session: SparkSession) -> None:
    # Of 40 GB that would cross 15 were billed beside what was produced and replicated.
    seen = traffic(session, 30, 60, 60, rack_aware="possible")
    found = flows(usage(session, {"quantity": 155}), seen)
    assert {flow: row.billed_bytes // GB for flow, row in found.items()} == {
        "produce": 20,
        "replicate": 120,
        "consume": 15,
    }
    assert found["consume"].certainty == "at most"
    assert found["consume"].rack_aware_saving == pytest.approx(Decimal("0.15"))
    # More than all of them would cross with is never theirs.
    roomy = flows(usage(session, {"quantity": 200}), seen)
    assert roomy["consume"].billed_bytes // GB == 40
    assert roomy["between zones, flow not known"].billed_bytes // GB == 20


def test_where_brokers_do_not_what_consumers_cross_with_is_known(session: SparkSession) -> None:
    seen = traffic(session, 30, 60, 60, rack_aware="false")
    found = flows(usage(session, {"quantity": 200}), seen)
    assert found["consume"].certainty == "shared"
    assert found["consume"].rack_aware_saving == found["consume"].billed_cost > 0


@pytest.mark.parametrize(
    ("follower_fetching", "known"), [(True, "possible"), (False, "false"), (None, None)]
)
def test_what_the_brokers_allow_stands_beside_their_counters(
    session: SparkSession, follower_fetching: bool | None, known: str | None
) -> None:
    plain = {"series": "{}", "cluster": "orders", "name": counters.BYTES_OUT}
    samples = [
        [{**plain, "at": f"2026-10-03 0{hour}:00:00", "value": value}.get(n) for n in SAMPLES.names]
        for hour, value in ((1, 5.0), (2, 12.0))
    ]
    frame = frames.of_rows(session, samples, SAMPLES)
    (row,) = daily_traffic(frame, 3, follower_fetching=follower_fetching).collect()
    assert (row.consumed_bytes, row.rack_aware_consumers) == (7, known)


def test_counters_that_saw_more_than_was_billed_share_out_the_bill_and_no_more(
    session: SparkSession,
) -> None:
    found = flows(usage(session, {"quantity": 90}), traffic(session, 30, 60, 60))
    assert sum(row.billed_bytes for row in found.values()) == 90 * GB
    assert sum(row.billed_cost for row in found.values()) == Decimal("0.9")
    shares = {flow: round(row.billed_bytes / (90 * GB), 3) for flow, row in found.items()}
    assert shares["replicate"] == pytest.approx(120 / 180, abs=0.001)


def test_in_one_zone_no_counter_explains_a_byte_between_zones(session: SparkSession) -> None:
    found = flows(usage(session, {"quantity": 10}), traffic(session, 30, 60, 60, zones=1))
    assert list(found) == ["between zones, flow not known"]
    assert found["between zones, flow not known"].billed_cost == Decimal("0.1")


def test_what_its_own_meter_names_is_never_shared_out(session: SparkSession) -> None:
    found = flows(
        usage(
            session,
            {"quantity": 60},
            {"quantity": 5, "operation": "VPCPeering-In"},
            {"quantity": 7, "resource_id": "arn:aws:elb:x:loadbalancer/net/y"},
            {"quantity": 1, "component": "PrivateLink", "usage_type": "VpcEndpoint-Bytes"},
            {"quantity": 2, "component": "load balancer", "unit": "Hrs"},
        ),
        traffic(session, 30, 10, 0),
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


def test_a_day_without_counters_keeps_one_row_whose_flow_is_not_known(
    session: SparkSession,
) -> None:
    found = flows(usage(session, {"quantity": 10}), frames.empty(session, TRAFFIC))
    assert list(found) == ["between zones, flow not known"]
