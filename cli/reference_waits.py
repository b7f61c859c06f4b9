"""Renders the table of an incident's waits into docs/guarantees.md, between its two marks."""

from __future__ import annotations

from core.cluster import Timings
from core.cluster.operated import policy
from core.incidents.decide import WAITS, Wait
from core.incidents.record import State
from core.words import span

BEGIN, END = "<!-- waits: `make docs` writes this table -->", "<!-- end of waits -->"


def with_waits(page: str) -> str:
    """Return a page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def table() -> str:
    """Return the table in Markdown, its limits those of a description that names none."""
    lines = [
        "| state | waits for | usually | a person is called after | page | the forced way out |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(_row, WAITS)])


def _row(wait: Wait) -> str:
    usual = policy(
        Timings(),
        drain_route="held",
        scale_in="restore",
        isr_margin=1,
        gate="isr",
        maintenance=None,
    )
    states = ", ".join(f"*{state}*" for state in State if state in wait.states)
    pages = ", ".join(f"`{key}`" for key in wait.pages)
    limit = span(wait.limit(usual))
    return f"| {states} | {wait.awaits} | {wait.usual} | {limit} | {pages} | {wait.way_out} |"
