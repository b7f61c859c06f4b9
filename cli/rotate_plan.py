"""A rotation's plan as people see it: order, time, bytes, what blocks, what will be unavailable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from core.words import span

MIB = 1024 * 1024


def render_plan(plan: Mapping[str, Any]) -> Group:
    """Return a plan; each objection once, with the nodes it holds up."""
    return Group(*_parts(plan))


def _parts(plan: Mapping[str, Any]) -> Iterator[RenderableType]:
    nodes = Table("", "node", "zone", "instance", "takes", "copies", "why")
    batches = [node["batch"] for node in plan["nodes"]]
    for place, node in enumerate(plan["nodes"]):
        copied = node["resync_bytes"]
        nodes.add_row(
            # Who goes together shares a number.
            "" if place and batches[place - 1] == batches[place] else str(batches[place]),
            Text(f"{node['role']} {node['node_id']}"),
            Text(node["zone"]),
            Text(f"{node['instance_id']}, stays" if node.get("image_id") else node["instance_id"]),
            span(node["seconds"]),
            "" if copied is None else f"{copied / MIB:.1f} MiB",
            Text(node["why"]),
        )
    if plan["nodes"]:
        yield nodes
        yield Text(_altogether(plan))
    for note in plan["notes"]:
        yield Text(note, "dim")
    if plan["too_long"]:
        yield Text("What fits into no maintenance window, and needs --any-time:", "bold")
    for sentence in plan["too_long"]:
        yield Text(f"  {sentence}", "yellow")
    blocked = objections(plan)
    if blocked:
        yield Text("What blocks it now:", "bold")
    for sentence, node_ids in blocked.items():
        yield Text(f"  {sentence} [{', '.join(map(str, node_ids))}]", "yellow")
    if plan["unavailable"]:
        yield Text("What will be unavailable, and needs --accept-unavailable:", "bold")
    for sentence in plan["unavailable"]:
        yield Text(f"  {sentence}", "yellow")


def _altogether(plan: Mapping[str, Any]) -> str:
    about = f"About {span(plan['seconds'])} altogether"
    if plan.get("interval_seconds"):
        least, most = map(span, plan["interval_seconds"])
        about += f", between {least} and {most} by what nodes took in the last run"
    copied = sum(node["resync_bytes"] or 0 for node in plan["nodes"])
    return f"{about}, {copied / MIB:.1f} MiB to copy."


def objections(plan: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return every objection with the nodes it is about, but for what a person may accept."""
    found: dict[str, list[int]] = {}
    for node in plan["nodes"]:
        for sentence in node["objections"]:
            if not any(sentence.startswith(said) for said in plan["unavailable"]):
                found.setdefault(sentence, []).append(node["node_id"])
    return found
