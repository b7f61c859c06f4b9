"""What the report says of Kafka's nodes: whose their hours were, or how to find out."""

from __future__ import annotations

from decimal import Decimal

from core.cost.pricing import total
from spark.report.sections import nodes
from tests.unit.spark import month


def test_kafka_comes_first_and_the_foot_is_what_the_nodes_cost() -> None:
    evidence = month.evidence()
    told = nodes.section(evidence)
    assert told is not None
    (table,) = told.tables
    assert [row.cells[0].text for row in table.rows] == [
        "Kafka",
        "agent",
        "aws-node",
        "report-5d8f",
    ]
    assert table.rows[1].cells[0].note == "DaemonSet, 3 pods in observability"
    together = [Decimal(row.cells[3].value or 0) for row in table.rows]
    assert Decimal(table.foot[3].value or 0) == total(together) == Decimal("728.00")
    assert told.sentences == (
        "Kafka's nodes cost 728.00 USD, amortised.",
        "Kafka's pods used 80.8% of this cost.",
        "Daemon sets and other pods used 3.2%.",
        "16.1% was idle.",
    )


def test_what_no_split_line_explains_is_said_and_in_the_foot() -> None:
    rest = month.a_node_share(
        "0", "50.00", kind="not allocated", namespace=None, workload=None, workload_type=None
    )
    told = nodes.section(month.evidence(nodes=(*month.evidence().nodes, rest)))
    assert told is not None
    assert told.sentences[-1].startswith("50.00 USD has no split line")
    assert told.tables[0].rows[-1].cells[0].text == "No split line"
    assert Decimal(told.tables[0].foot[3].value or 0) == Decimal("778.00")


def test_two_clusters_on_one_bill_are_told_apart() -> None:
    other = month.a_node_share("1", "0", cluster="pier")
    told = nodes.section(month.evidence(nodes=(*month.evidence().nodes, other)))
    assert told is not None
    rows = told.tables[0].rows
    assert {row.cells[0].note.split(",")[0] for row in rows} == {"harbour", "pier"}
    assert len({row.key for row in rows}) == len(rows)


def test_a_bill_without_split_lines_says_how_to_get_them() -> None:
    told = nodes.section(month.evidence(nodes=()))
    assert told is not None
    assert "INCLUDE_SPLIT_COST_ALLOCATION_DATA = TRUE" in " ".join(told.sentences)
    assert told.tables == ()


def test_a_bill_without_kafkas_nodes_says_nothing_of_them() -> None:
    assert nodes.section(month.evidence(nodes=(), report=month.a_report())) is None
