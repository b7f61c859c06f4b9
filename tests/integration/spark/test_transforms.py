"""Transforms on frames of a few rows: what a charge bought, whose it is, what it really cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from core.ground.errors import StillwaterError
from spark import money
from spark.ingest import bill
from spark.schemas import COST, IS_UNREADABLE, LINE_KEYS, MONEY, require_schema
from spark.tag_keys import OURS
from spark.transforms.attribute import Attribution, with_owner
from spark.transforms.classify import IS_PRICED, Component, with_component
from spark.transforms.daily import IS_KNOWN, line_attributes, lines_with_days, rows_per_day
from tests.integration.spark import bills

pytestmark = pytest.mark.integration

OWNERS = ("tag_cluster", "tag_pool", "tag_claim", "tag_node_group")
EC2_HOUR: Mapping[str, Any] = {
    "provider": "AWS",
    "category": "Usage",
    "service": "AmazonEC2",
    "usage_type": "BoxUsage:r7g.large",
    "zone": "us-east-1a",
    "tag_pool": "broker",
    IS_KNOWN: False,
    "billed_cost": Decimal(1),
}


def charges(session: SparkSession, *rows: Mapping[str, Any]) -> Any:
    owners = [StructField(name, StringType()) for name in OWNERS]
    flags = [StructField(name, BooleanType()) for name in (IS_UNREADABLE, IS_KNOWN)]
    cost = StructField("billed_cost", MONEY)
    schema = StructType([*LINE_KEYS.fields, *owners, *flags, cost])
    filled = [tuple({**EC2_HOUR, **row}.get(f.name) for f in schema.fields) for row in rows]
    frame = session.createDataFrame(filled, schema)
    return frame.withColumn(IS_PRICED, money.is_something(frame, "billed_cost"))


def components(session: SparkSession, *rows: Mapping[str, Any]) -> list[Component]:
    return [
        Component(row.component)
        for row in charges(session, *rows).transform(with_owner).transform(with_component).collect()
    ]


def owners(session: SparkSession, *rows: Mapping[str, Any]) -> list[Row]:
    found: list[Row] = charges(session, *rows).transform(with_owner).collect()
    return found


def test_taxes_credits_refunds_and_fees_buy_no_component(session: SparkSession) -> None:
    kinds = ("Tax", "Credit", "Refund", "Fee", "RIFee", "SavingsPlanRecurringFee", "Adjustment")
    found = components(session, *({"category": kind} for kind in kinds))
    assert set(found) == {Component.OTHER}


def test_a_discount_on_a_component_stays_with_it(session: SparkSession) -> None:
    kinds = ("EdpDiscount", "SavingsPlanNegation", "SavingsPlanCoveredUsage", "DiscountedUsage")
    found = components(session, *({"category": kind} for kind in kinds))
    assert set(found) == {Component.BROKER_COMPUTE}


def test_the_nodes_of_eks_groups_are_not_brokers(session: SparkSession) -> None:
    found = components(
        session,
        {"tag_node_group": "local-harbour-system", "tag_cluster": "harbour"},
        {"tag_cluster": "harbour", "tag_pool": None},
        {"tag_cluster": "harbour", "tag_pool": "broker"},
        # The ledger knew it: a broker's, whatever tags it lost.
        {"tag_cluster": "harbour", "tag_pool": None, IS_KNOWN: True},
    )
    assert found == [
        Component.OTHER,
        Component.OTHER,
        Component.BROKER_COMPUTE,
        Component.BROKER_COMPUTE,
    ]


def test_an_instance_that_nothing_says_is_kafkas_is_no_broker(session: SparkSession) -> None:
    anybodys = {"tag_pool": None}
    discount = {"category": "EdpDiscount", "billed_cost": Decimal("-0.05")}
    found = components(session, anybodys, {**anybodys, **discount}, {})
    assert found == [Component.INSTANCES, Component.INSTANCES, Component.BROKER_COMPUTE]


def test_bytes_of_a_zone_or_without_a_price_are_not_between_zones(session: SparkSession) -> None:
    def moved(usage_type: str, cost: str) -> Mapping[str, Any]:
        return {"usage_type": usage_type, "billed_cost": Decimal(cost)}

    found = components(
        session,
        moved("DataTransfer-Regional-Bytes", "0"),
        moved("DataTransfer-xAZ-In-Bytes", "0.01"),
        moved("DataTransfer-xAZ-In-Bytes", "0"),
        moved("DataTransfer-AZ-Out-Bytes", "0.01"),
    )
    assert found == [Component.INTER_AZ, Component.INTER_AZ, Component.OTHER, Component.OTHER]


def test_another_providers_virtual_machine_is_other(session: SparkSession) -> None:
    hour = {"usage_type": None, "description": "Instance Hour", "unit": "Hours"}
    service = {"service": "Amazon Elastic Compute Cloud"}
    found = components(
        session,
        {**hour, **service, "provider": "Microsoft"},
        {**hour, **service},
        {"provider": None},
    )
    assert found == [Component.OTHER, Component.BROKER_COMPUTE, Component.OTHER]


def test_a_volume_belongs_to_the_node_its_claim_names(session: SparkSession) -> None:
    no_pool = {"tag_pool": None}
    known, unknown, other = owners(
        session,
        {**no_pool, "tag_claim": "data-0-harbour-broker-a-10", "tag_cluster": "harbour"},
        # A claim of this name may be anybody's.
        {**no_pool, "tag_claim": "data-0-harbour-broker-a-10"},
        {**no_pool, "tag_claim": "prometheus-0"},
    )
    assert (known.cluster, known.owner, known.node_id) == ("harbour", "broker-a", 10)
    assert (unknown.attribution, unknown.node_id) == (Attribution.NOBODY, None)
    assert (other.attribution, other.node_id) == (Attribution.NOBODY, None)


@pytest.mark.parametrize("nothing", ["", "  ", "NULL", None])
def test_a_tag_that_says_nothing_hides_no_other_spelling_of_it(
    session: SparkSession, nothing: str | None
) -> None:
    tags = {"user_stillwater_cluster": nothing, "stillwater:cluster": " harbour "}
    line = {"tag_names": [*tags], "tag_values": [*tags.values()]}
    rows = charges(session, line).drop(*OWNERS, IS_KNOWN)
    (row,) = line_attributes(rows, OURS).collect()
    assert (row.tag_cluster, row.tag_pool) == ("harbour", None)


def test_what_a_line_says_is_read_once_of_all_its_days(session: SparkSession) -> None:
    first, second = ({"day": date(2026, 10, day)} for day in (1, 2))
    tagged = {"tag_names": ["team"], "tag_values": ["streaming"]}
    odd = {"billing_period": "2026-09", "day": None}
    lines = (first, second, odd, {**first, **tagged}, {**second, "billed_cost": Decimal(0)})
    days = charges(session, *lines).drop(*OWNERS, IS_KNOWN, "reason")
    described = lines_with_days(days)
    # The first three; the tagged one; the one that costs nothing, which may buy something else.
    assert described.count() == 3
    again = rows_per_day(described).select(days.columns).collect()
    assert sorted(map(repr, again)) == sorted(map(repr, days.collect()))


def test_a_sum_of_doubles_has_room_for_any_number_of_lines(session: SparkSession) -> None:
    # What is less than a dollar is full as an integer at nine million lines of nearly a dollar.
    lines = session.createDataFrame([(0.9999,)] * 30 + [(-30.0,), (0.003,)], "cost double")
    summed = lines.agg(*money.sums(lines, {"cost": "total"}))
    (row,) = summed.collect()
    assert (row.total_whole, row.total_trillionths) == (0, 0)
    again = summed.union(summed).agg(*money.summed_parts(summed, ["total"]))
    (nothing,) = again.select(money.is_something(again, "total").alias("found")).collect()
    assert not nothing.found


@pytest.mark.parametrize(
    ("whole", "trillionths", "is_something"),
    [(0, 0, False), (-1, 10**12, False), (2, -2 * 10**12, False), (0, 1, True), (1, 0, True)],
)
def test_nothing_is_nothing_however_its_parts_share_it_out(
    session: SparkSession, whole: int, trillionths: int, *, is_something: bool
) -> None:
    parts = session.createDataFrame([(whole, trillionths)], "a_whole long, a_trillionths long")
    (row,) = parts.select(money.is_something(parts, "a").alias("found")).collect()
    assert row.found is is_something


def test_what_only_a_cluster_tag_names_belongs_to_the_whole_cluster(session: SparkSession) -> None:
    shared, nobody = owners(
        session, {"tag_cluster": "harbour", "tag_pool": None}, {"tag_pool": None}
    )
    assert (shared.cluster, shared.owner) == ("harbour", "whole cluster")
    assert shared.attribution == Attribution.CLUSTER
    assert (nobody.cluster, nobody.owner) == (None, "unattributed")


AMORTISED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "on demand": ({}, "1"),
    "covered by a savings plan": (
        {
            "line_item_line_item_type": "SavingsPlanCoveredUsage",
            "savings_plan_savings_plan_effective_cost": 0.66,
        },
        "0.66",
    ),
    "its negation": (
        {"line_item_line_item_type": "SavingsPlanNegation", "line_item_unblended_cost": -1.0},
        "0",
    ),
    "what a savings plan left unused": (
        {
            "line_item_line_item_type": "SavingsPlanRecurringFee",
            "savings_plan_total_commitment_to_date": 100.0,
            "savings_plan_used_commitment": 97.5,
        },
        "2.5",
    ),
    "paid upfront": ({"line_item_line_item_type": "SavingsPlanUpfrontFee"}, "0"),
    "covered by a reservation": (
        {
            "line_item_line_item_type": "DiscountedUsage",
            "line_item_unblended_cost": 0.0,
            "reservation_effective_cost": 0.6,
        },
        "0.6",
    ),
    "what a reservation left unused": (
        {
            "line_item_line_item_type": "RIFee",
            "reservation_unused_amortized_upfront_fee_for_billing_period": 1.25,
            "reservation_unused_recurring_fee": 0.25,
        },
        "1.5",
    ),
    "a reservation's fee": (
        {"line_item_line_item_type": "Fee", "reservation_reservation_a_r_n": "arn:ri"},
        "0",
    ),
    "any other fee": ({"line_item_line_item_type": "Fee"}, "1"),
    "Refund for one-time fee for Savings Plan ID : 1": (
        {"line_item_line_item_type": "Refund", "line_item_product_code": "ComputeSavingsPlans"},
        "0",
    ),
    "Refund for one-time fee for Savings Plan ID : 2": (
        {
            "line_item_line_item_type": "Refund",
            "line_item_product_code": "MachineLearningSavingsPlans",
        },
        "0",
    ),
    "Refund for recurring fee for Savings Plan ID : 1": (
        {"line_item_line_item_type": "Refund", "line_item_product_code": "ComputeSavingsPlans"},
        "1",
    ),
    "tax": ({"line_item_line_item_type": "Tax"}, "1"),
}


def test_commitments_are_spread_over_the_hours_they_cover(
    session: SparkSession, tmp_path: Path
) -> None:
    lines = [
        {**line, "line_item_line_item_description": name} for name, (line, _) in AMORTISED.items()
    ]
    rows = bill.read(session, bills.cur_export(tmp_path, lines)).lines.collect()
    found = {row.line.rsplit(", ", 1)[-1]: Decimal(str(row.amortised_cost)) for row in rows}
    assert found == {name: Decimal(amount) for name, (_, amount) in AMORTISED.items()}


def test_a_frame_of_another_shape_is_named_by_its_columns(session: SparkSession) -> None:
    frame = session.createDataFrame([(1, "x")], "billed_cost int, surprise string")
    with pytest.raises(StillwaterError) as raised:
        require_schema(frame, COST, "The frame")
    assert "column billed_cost is IntegerType()" in str(raised.value)
    assert "column surprise is unexpected" in str(raised.value)
    assert "column zone is missing" in str(raised.value)
