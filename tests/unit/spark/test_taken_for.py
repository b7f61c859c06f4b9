"""More traps of bills (25 to 40, 43, 44): what a line, a tag or a day may be taken for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from spark import tables
from spark.ingest import bill
from spark.jobs import report
from spark.jobs.anomaly import anomaly_rows
from spark.jobs.ingest import found_tags
from spark.report.evidence import month_comparison
from spark.rows import row_type
from spark.rules.names import Easy
from spark.schemas import COST
from spark.tables import ParquetStore
from spark.tag_keys import KafkaTags
from spark.transforms.easy import easy_savings
from spark.transforms.grain import grain_of
from tests.unit.spark import bills, here
from tests.unit.spark.written import NOW, ingested, legacy, written


def test_30_without_any_kafka_the_tags_are_told(tmp_path: Path) -> None:
    key = "resourceTags/user:team"
    text = legacy([{key: "streaming"}, {key: "web"}, {key: "web"}, {}])
    _, rows, store = ingested(written(tmp_path, text))
    (found,) = store.rows(tables.TAGS_FOUND)
    assert {row.attribution for row in rows} == {"unattributed"}
    assert (found.key, found.value, found.names_kafka) == ("team", "streaming", True)
    assert (found.different_values, found.charges, found.billed_cost) == (2, 3, Decimal("3.75"))


def test_31_of_many_tags_those_that_name_kafka_come_first() -> None:
    tagged = row_type(["billing_period", "key", "value", "charges", "billed_cost"])
    rows = [tagged("2026-11", f"user_b{n}", "y", 1, f"{100 + n}") for n in range(40)]
    rows.append(tagged("2026-11", "user_team", "strimzi", 1, "0.5"))
    found = found_tags(rows)
    assert len(found) == 30
    assert "team" in {row.key for row in found}


CLAIM = "user_kubernetes_io_created_for_pvc_name"


def cur(folder: Path, *lines: Mapping[str, Any], **kafka: Any) -> list[Any]:
    return here.usage(bills.cur_export(folder, lines), KafkaTags(**kafka))


def test_32_a_claim_is_kafkas_where_the_cluster_is_known(tmp_path: Path) -> None:
    claims = [f"data-0-{name}-broker-a-10" for name in ("harbour", "postgres")]
    lines = [
        {"line_item_resource_id": f"vol-{claim}", "resource_tags": {CLAIM: claim}}
        for claim in claims
    ]
    assert {row.attribution for row in cur(tmp_path / "a", *lines)} == {"unattributed"}
    known = cur(tmp_path / "b", *lines, name="harbour")
    assert {(row.cluster, row.owner, row.node_id) for row in known} == {
        ("harbour", "broker-a", 10),
        (None, "unattributed", None),
    }


def test_33_an_instance_of_the_ledger_is_kafkas_without_a_tag(tmp_path: Path) -> None:
    lines = [{"line_item_resource_id": f"i-{n}"} for n in range(3)]
    known = cur(tmp_path, *lines, name="harbour", resources=frozenset({"i-1"}))
    assert {(row.resource_id, row.component, row.charges) for row in known} == {
        ("i-1", "broker compute", 1),
        (None, "EC2 instances", 2),
    }


def test_36_easy_savings_are_what_their_meters_cost(tmp_path: Path) -> None:
    def meter(usage_type: str, cost: float, **more: Any) -> Mapping[str, Any]:
        return {
            "line_item_usage_type": usage_type, "line_item_unblended_cost": cost,
            "line_item_product_code": "Any", **more,
        }  # fmt: skip

    ours = {"resource_tags": {"user_stillwater_cluster": "harbour"}}
    lines = [
        meter("USE1-AmazonEKS-Hours:extendedSupport", 336.0),
        meter("USE1-AmazonEKS-Hours:perCluster", 67.2),
        meter("EU-UnusedBox:m5.xlarge", 88.4, **ours),
        meter("PublicIPv4:IdleAddress", 3.6),
        meter("EBS:VolumeUsage.gp2", 40.0),
        meter("DataTransfer-Regional-Bytes", 7.0, line_item_operation="LoadBalancing-In"),
        meter("DataTransfer-Regional-Bytes", 9.0, line_item_operation="InterZone-In"),
    ]
    delivery = bill.read(bills.cur_export(tmp_path, lines))
    found = easy_savings(grain_of(delivery.usage()))
    assert [(each.easy, each.is_kafkas, each.usd, each.at_most) for each in found] == [
        (Easy.IDLE_RESERVATION, True, Decimal("88.4"), False),
        (Easy.EXTENDED_SUPPORT, False, Decimal(336), False),
        (Easy.GP2_VOLUMES, False, Decimal(40), True),
        (Easy.CROSS_ZONE_LB, False, Decimal(7), True),
        (Easy.IDLE_IPV4, False, Decimal("3.6"), False),
    ]


def test_38_what_was_given_back_on_a_meter_cannot_be_saved_again(tmp_path: Path) -> None:
    meter = {"lineItem/UsageType": "AmazonEKS-Hours:extendedSupport"}
    back = {"lineItem/LineItemType": "EdpDiscount", "lineItem/UnblendedCost": "-0.25", **meter}
    path = written(tmp_path, legacy([meter, back]))
    (found,) = easy_savings(grain_of(bill.read(path).usage()))
    assert (found.easy, found.usd) == (Easy.EXTENDED_SUPPORT, Decimal(1))


def test_39_what_focus_calls_unused_is_found_and_no_brokers(tmp_path: Path) -> None:
    tags = '{"stillwater:cluster": "harbour", "stillwater:pool": "broker"}'
    plan = {"CommitmentDiscountStatus": "Unused", "BilledCost": "0", "EffectiveCost": "12.5"}
    idle = "$0.1 per Unused Reservation Linux r7g.large Instance Hour"
    lines = [
        {"CommitmentDiscountStatus": "Used"},
        {**plan, "Tags": tags},
        {"CommitmentDiscountStatus": "", "ChargeDescription": idle},
    ]
    path = bills.focus_file(tmp_path / "focus.csv", lines)
    delivery = bill.read(path)
    found = {each.easy: each.usd for each in easy_savings(grain_of(delivery.usage()))}
    assert found == {
        Easy.UNUSED_COMMITMENT: Decimal("12.5"), Easy.IDLE_RESERVATION: Decimal("0.8")
    }  # fmt: skip
    assert "broker compute" not in {row.component for row in here.usage_rows(delivery)}


@pytest.mark.parametrize(
    ("purchase", "amortised"),
    [
        ({"CommitmentDiscountId": "arn:plan/1"}, 100),
        ({"CommitmentDiscountId": "NULL"}, 200),  # of something else, a marketplace's product
        ({"CommitmentDiscountId": "arn:plan/1", "ChargeCategory": "Credit"}, 200),
    ],
)
def test_39_a_commitment_is_amortised_by_its_usage_and_not_by_its_purchase_too(
    tmp_path: Path, purchase: Mapping[str, str], amortised: int
) -> None:
    bought = {"ChargeCategory": "Purchase", "BilledCost": "100", "EffectiveCost": "100", **purchase}
    used = {"BilledCost": "0", "EffectiveCost": "100", "CommitmentDiscountStatus": "Used"}
    used["CommitmentDiscountId"] = "arn:plan/1"
    path = bills.focus_file(tmp_path / "focus.csv", [bought, used])
    rows = here.usage_rows(bill.read(path))
    assert sum(row.billed_cost for row in rows) == 100
    assert sum(row.amortised_cost for row in rows) == amortised
    assert sum(row.net_cost for row in rows) == amortised


def test_40_an_owner_with_days_of_nothing_explains_its_own_excess() -> None:
    start = date(2026, 11, 1)
    paid = [(start + timedelta(days=n), "whole cluster", Decimal(1)) for n in range(20)]
    # Half of its days a pool has no charge, as one that is scaled to nothing.
    paid += [(start + timedelta(days=n), "broker-a", Decimal(3)) for n in range(0, 14, 5)]
    paid.append((start + timedelta(days=15), "broker-a", Decimal(40)))
    rows = [
        (
            "2026-11", day, "harbour", "broker compute", "node pool", owner, None, "us-east-1a",
            "USD", 1, cost, cost, cost,
        )
        for day, owner, cost in paid
    ]  # fmt: skip
    names = [
        "billing_period", "day", "cluster", "component", "attribution", "owner", "node_id", "zone",
        "currency", "charges", "billed_cost", "amortised_cost", "net_cost",
    ]  # fmt: skip
    cost = [row_type(COST)(**dict(zip(names, row, strict=True))) for row in rows]
    odd = anomaly_rows(cost, [], date(2026, 11, 20))
    (found,) = (row for row in odd if row.day == date(2026, 11, 16))
    assert (found.excess, found.owner, found.owner_excess) == (40, "broker-a", 40)
    assert found.reason == "charges of broker-a in us-east-1a account for 100 % of it"


def test_43_a_correction_of_an_earlier_month_is_no_day_of_this_one(tmp_path: Path) -> None:
    days = [f"2026-11-{n:02d} 00:00:00" for n in range(1, 9)]
    tags = '{"stillwater:cluster": "harbour"}'
    lines = [{"ChargePeriodStart": day, "Tags": tags} for day in days]
    odd = [
        {"ChargePeriodStart": when, "BilledCost": "-40", "ChargeClass": "Correction", "Tags": tags}
        for when in ("2026-10-05 00:00:00", "2027-03-01 00:00:00")
    ]
    path = bills.focus_file(tmp_path / "focus.csv", [*lines, *odd])
    inputs = report.Inputs(bill=path, today=NOW.date())
    made = report.run(ParquetStore(str(tmp_path / "tables")), inputs)
    assert made.evidence.report.billed == Decimal(-72)
    assert {each.day.month for each in made.evidence.all_days} == {11}
    assert month_comparison(made.evidence) is None


def test_44_a_tag_or_cost_category_of_the_users_own_makes_instances_brokers_without_a_pools(
    tmp_path: Path,
) -> None:
    lines = [{"resourceTags/user:team": "streaming"}, {"costCategory/team": "streaming"}]
    path = written(tmp_path, legacy([*lines, {"costCategory/team": "web"}]))
    own = KafkaTags(cluster="team", value="streaming")
    _, rows, _ = ingested(path, own)
    assert {row.component: row.charges for row in rows} == {
        "EC2 instances": 1,
        "broker compute": 2,
    }
