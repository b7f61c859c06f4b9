"""Evidence of traffic between zones: why bytes moved, and what fetching from the own zone saves."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from core.cost.pricing import total
from spark.report import cells
from spark.report.document import Cell, Column, ReportTable, Row, Section
from spark.report.evidence import Evidence, Found
from spark.report.words import DASH, money, most, percent, size, smallest_places
from spark.transforms.transfer import Certainty

METHOD = (
    "The bill says that bytes crossed zones, not why: with Z zones (Z - 1) / Z of what is produced "
    "crosses on its way in, as much of what is consumed on its way out, and all that followers "
    "fetch, since replicas stand in zones of their own. 'billed' is what a meter of its own says, "
    "'shared' what the brokers' counters share out. Consumers with client.rack set read from a "
    "replica of their own zone and cross nothing, where the brokers' replica.selector.class lets "
    "them (KIP-392). Which do is in no metric of a broker, only in each consumer's own "
    "preferred-read-replica: 'at most' is the smaller of what all of them would cross with and "
    "what the bill leaves beside what was produced and replicated."
)


def section(evidence: Evidence) -> Section | None:
    """Return the flows of the month, or None of a bill without any."""
    rows = [row for row in evidence.transfer if row.cluster is not None]
    flows = by_flow(rows)
    if not flows:
        return None
    currency = evidence.report.currency
    billed = total(flow.billed for flow in flows)
    largest = max(flows, key=lambda flow: flow.billed)
    said = [
        (
            f"Moving Kafka's bytes cost {money(billed, smallest_places(currency))} {currency}; "
            f"{largest.name} is {percent(largest.billed, billed)} of it."
        )
    ]
    said += _own_zone(flows, currency)
    if all(row.certainty == "billed" for row in rows):
        said.append("Without the brokers' counters (--metrics) what crossed zones has no flow.")
    return Section(
        key="transfer",
        title="What moved between zones",
        sentences=tuple(said),
        tables=(_table(flows, billed, currency),),
        method=METHOD,
    )


def _own_zone(flows: Sequence[FlowCost], currency: str) -> list[str]:
    """Say what fetching from the own zone would save, and how well that is known."""
    saving = total(flow.saving for flow in flows)
    if not saving:
        return []
    figure = f"{money(saving, smallest_places(currency))} {currency}"
    said = f"Fetching from the own zone would leave out {figure} of it"
    if all(flow.is_known for flow in flows if flow.saving):
        return [f"{said}; the brokers do not allow it yet."]
    why = (
        "no counter of the brokers tells which consumers do already, so theirs is what the bill "
        "leaves beside the other flows"
    )
    return [f"{said} at most: {why}."]


class FlowCost:
    """One flow over the month."""

    def __init__(self, name: str, rows: Sequence[Found]) -> None:
        self.name = name
        self.certainty = ", ".join(sorted({row.certainty for row in rows}))
        self.billed_bytes = sum(row.billed_bytes or 0 for row in rows)
        self.billed = total(row.billed_cost for row in rows)
        self.saving = total(row.rack_aware_saving or Decimal(0) for row in rows)
        self.is_known = all(row.certainty != Certainty.AT_MOST.value for row in rows)


def by_flow(rows: Sequence[Found]) -> list[FlowCost]:
    """Return the flows, the dearest first."""
    names = dict.fromkeys(row.flow for row in rows)
    flows = [FlowCost(name, [row for row in rows if row.flow == name]) for name in names]
    return sorted(flows, key=lambda flow: (-flow.billed, flow.name))


def _saves(flow: FlowCost, places: int) -> str:
    return f"{most(not flow.is_known)}{money(flow.saving, places)}" if flow.saving else DASH


def _table(flows: list[FlowCost], billed: Decimal, currency: str) -> ReportTable:
    places = smallest_places(currency)
    columns = (
        Column("Flow", is_text=True),
        Column("Bytes", "as billed"),
        Column("Billed", currency),
        Column("Share"),
        Column("Own zone saves", currency),
    )
    rows = tuple(
        Row(
            (
                Cell(flow.name, note=flow.certainty),
                cells.figure(size(flow.billed_bytes), flow.billed_bytes),
                cells.billed(flow.billed, places),
                cells.part(flow.billed, billed),
                Cell(_saves(flow, places), cells.exact(flow.saving)),
            ),
            key=cells.slug("flow", flow.name),
        )
        for flow in flows
    )
    return ReportTable("", columns, rows)
