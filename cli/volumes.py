"""`stillwater volumes plan`, `apply`, `history`: what λ volumes sees, does, and has done.

The function decides: here it is called, in the account and with the rights it has, and its answer
is shown. History is read from the ledger's table, where the function keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from cli import terminal
from cli.aws import out_of_reach
from cli.target import Cluster
from core.ground.errors import InvalidInput, StillwaterError
from core.volumes.sizing import Gp3
from core.volumes.views import History, free_slots
from handlers.adapters.calls import NO_ANSWER
from handlers.store import volume_records
from handlers.store.volume_records import PLAN

FUNCTION = "volumes"


def plan(cluster: Cluster, console: Console, *, as_json: bool = False) -> None:
    """Show what would be done now; nothing is changed."""
    _say(cluster.invoke(FUNCTION, {"dry_run": True}), console, as_json=as_json)


def apply(cluster: Cluster, console: Console, *, as_json: bool = False) -> None:
    """Do now what the plan says, instead of within five minutes."""
    if not cluster.own_spec.volumes.applies:
        problem = (
            "volumes.mode of this cluster is advise, so nothing is changed; set it to apply with "
            "volumes.max_monthly_increase_usd, and run `stillwater up`."
        )
        raise InvalidInput([problem])
    _say(cluster.invoke(FUNCTION, {"dry_run": False}), console, as_json=as_json)


def history(
    cluster: Cluster,
    console: Console,
    now: float,
    claim: str | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Show every known modification of the volumes, and how many are left today."""
    try:
        known: Mapping[str, str] = (cluster.records.read(PLAN).document or {}).get("volumes", {})
        if claim is not None and claim not in known:
            others = ", ".join(sorted(known)) or "none"
            raise InvalidInput([f"λ volumes knows no claim {claim}; it knows {others}."])
        wanted = {claim: known[claim]} if claim else known
        found = {
            name: volume_records.read(cluster.records, volume_id).history
            for name, volume_id in sorted(wanted.items())
        }
    except NO_ANSWER as error:
        raise StillwaterError(
            out_of_reach(f"The ledger {cluster.table} cannot be read.", error)
        ) from None
    if as_json:
        listed = [_history_as_json(name, known[name], found[name], now) for name in found]
        terminal.write({"volumes": listed})
    else:
        console.print(_histories(found, now))


def _history_as_json(
    claim: str, volume_id: str, history: History, now: float
) -> Mapping[str, object]:
    return {
        "claim": claim,
        "volume": volume_id,
        "left_today": free_slots(history, now),
        "known_since": history.known_since,
        "modifications": [
            {
                "started_at": each.started_at,
                "ended_at": each.ended_at,
                "state": each.state.value,
                "ours": each.ours,
                "reason": each.reason,
                "from": None if each.original is None else _size_as_json(each.original),
                "to": _size_as_json(each.target),
            }
            for each in reversed(history.modifications)
        ],
    }


def _size_as_json(volume: Gp3) -> Mapping[str, int]:
    return {
        "size_gib": volume.size_gib,
        "iops": volume.iops,
        "throughput_mib_per_s": volume.throughput_mib_per_s,
    }


def _say(said: Mapping[str, Any], console: Console, *, as_json: bool) -> None:
    if as_json:
        terminal.write(said)
    else:
        show(said, console)


def show(shown: Mapping[str, Any], console: Console) -> None:
    """Print a plan as the function answered it."""
    at = datetime.fromtimestamp(shown["at"], UTC)
    budget = shown["budget_usd"]
    limit = "no budget" if budget is None else f"a budget of ${budget}"
    console.print(
        f"Volumes at {at:%Y-%m-%d %H:%M} UTC, mode {shown['mode']}: "
        f"{_money(shown, 'above_spec_usd')} a month above the spec, "
        f"{_money(shown, 'planned_usd')} with this plan, {limit}."
    )
    if shown.get("unpriced"):
        console.print(f"Judged in GiB and IOPS alone: {shown['unpriced']}", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for heading in ("volume", "what", "USD a month", "why"):
        table.add_column(heading, overflow="fold")
    for each in shown["decisions"]:
        what = each["kind"] + (" (done)" if each["applied"] else "")
        table.add_row(
            f"{each['pool']} {each['volume']}",
            what,
            each["monthly_usd_change"] or "unknown",
            each["reason"],
        )
    console.print(table)
    for gap in shown.get("unknown", ()):
        console.print(f"Not known: {gap}.")


def _money(shown: Mapping[str, Any], key: str) -> str:
    return "an unknown sum" if shown[key] is None else f"${shown[key]}"


def _histories(found: Mapping[str, History], now: float) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("claim", "left today", "begun", "state", "from", "to", "why"):
        table.add_column(heading, overflow="fold")
    for claim, each in found.items():
        rows: Iterable[tuple[str, ...]] = [
            (
                f"{datetime.fromtimestamp(m.started_at, UTC):%Y-%m-%d %H:%M}",
                m.state.value,
                "" if m.original is None else _size_text(m.original),
                _size_text(m.target),
                m.reason or "not ours",
            )
            for m in reversed(each.modifications)
        ] or [("never", "", "", "", "")]
        for number, row in enumerate(rows):
            head = (claim, str(free_slots(each, now))) if number == 0 else ("", "")
            table.add_row(*head, *row)
    return table


def _size_text(volume: Gp3) -> str:
    return f"{volume.size_gib} GiB, {volume.iops} IOPS, {volume.throughput_mib_per_s} MiB/s"
