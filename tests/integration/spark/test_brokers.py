"""Whose an instance's cost is: the broker's it carried, over a rotation and after it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark import frames
from spark.findings import ROTATIONS
from spark.jobs.cost import cost_table
from spark.schemas import USAGE
from spark.transforms.attribute import with_nodes

pytestmark = pytest.mark.integration


def usage(session: SparkSession, *rows: tuple[str, str, int | None]) -> DataFrame:
    """Resources, their node pools and the node ids their claims name, each a dollar a day."""
    plain: dict[str, Any] = {
        "billing_period": "2026-10",
        "day": date(2026, 10, 3),
        "component": "broker compute",
        "attribution": "node pool",
        "cluster": "orders",
        "currency": "USD",
        "charges": 24,
        **dict.fromkeys(("billed_cost", "amortised_cost", "net_cost"), Decimal(1)),
    }
    filled = [
        {**plain, "resource_id": resource, "owner": owner, "node_id": node}
        for resource, owner, node in rows
    ]
    return frames.of_rows(session, [[r.get(n) for n in USAGE.names] for r in filled], USAGE)


def history(session: SparkSession, *rows: tuple[str, int]) -> DataFrame:
    filled = [{"cluster": "orders", "instance_id": i, "node_id": n} for i, n in rows]
    return frames.of_rows(session, [[r.get(n) for n in ROTATIONS.names] for r in filled], ROTATIONS)


def by_node(session: SparkSession, bill: DataFrame, past: DataFrame) -> dict[int | None, int]:
    table = cost_table(with_nodes(bill, past)).collect()
    assert sum(row.billed_cost for row in table) == bill.count()
    return {row.node_id: int(row.billed_cost) for row in table}


def test_a_brokers_cost_runs_on_over_its_instances_replacement(session: SparkSession) -> None:
    bill = usage(
        session,
        ("vol-10", "broker-a", 10),
        ("i-gone", "broker-a", None),
        ("i-now", "broker-a", None),
    )
    assert by_node(session, bill, history(session, ("i-gone", 10))) == {10: 3}


def test_of_two_brokers_in_a_zone_only_what_the_ledger_knows_is_said(
    session: SparkSession,
) -> None:
    bill = usage(
        session,
        ("vol-10", "broker-a", 10),
        ("vol-11", "broker-a", 11),
        ("i-gone", "broker-a", None),
        ("i-now", "broker-a", None),
        ("i-too", "broker-a", None),
    )
    assert by_node(session, bill, history(session, ("i-gone", 11))) == {10: 1, 11: 2, None: 2}


def test_what_is_no_instance_stays_as_the_bill_says(session: SparkSession) -> None:
    bill = usage(session, ("vol-10", "broker-a", 10), ("arn:lb", "whole cluster", None))
    assert by_node(session, bill, history(session)) == {10: 1, None: 1}
