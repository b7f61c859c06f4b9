"""Whose an instance's cost is: the broker's it carried, over a rotation and after it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from spark.transforms.grain import cost_rows
from tests.unit.spark import bills


def grain(*rows: tuple[str, str, int | None]) -> pa.Table:
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
    return bills.grain(
        *(
            {
                **plain,
                "owner": owner,
                "node_id": node,
                "instance_id": resource if resource.startswith("i-") else None,
            }
            for resource, owner, node in rows
        )
    )


def history(*rows: tuple[str, int]) -> list[Any]:
    return [SimpleNamespace(instance_id=i, node_id=n) for i, n in rows]


def by_node(bill: pa.Table, past: Sequence[Any]) -> dict[int | None, int]:
    table = cost_rows(bill, past).to_pylist()
    assert sum(row["billed_cost"] for row in table) == len(bill)
    return {row["node_id"]: int(row["billed_cost"]) for row in table}


def test_a_brokers_cost_runs_on_over_its_instances_replacement() -> None:
    bill = grain(
        ("vol-10", "broker-a", 10),
        ("i-gone", "broker-a", None),
        ("i-now", "broker-a", None),
    )
    assert by_node(bill, history(("i-gone", 10))) == {10: 3}


def test_of_two_brokers_in_a_zone_only_what_the_ledger_knows_is_said() -> None:
    bill = grain(
        ("vol-10", "broker-a", 10),
        ("vol-11", "broker-a", 11),
        ("i-gone", "broker-a", None),
        ("i-now", "broker-a", None),
        ("i-too", "broker-a", None),
    )
    assert by_node(bill, history(("i-gone", 11))) == {10: 1, 11: 2, None: 2}


def test_what_is_no_instance_stays_as_the_bill_says() -> None:
    bill = grain(("vol-10", "broker-a", 10), ("arn:lb", "whole cluster", None))
    assert by_node(bill, history()) == {10: 1, None: 1}
