"""`stillwater health`: invokes λ health and shows what it answered.

The function stands where the parts can be reached, and sees what every other caller of it sees; so
the command needs no way into the VPC, only the right to invoke it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from cli import watching
from cli.target import Cluster, Shape, has_shape, json_object
from cli.terminal import say
from cli.watching import Pace
from core.health.verdict import Health

PACE = Pace(seconds=5.0)
HEALTHY, IMPAIRED, UNHEALTHY = 0, 1, 2
EXIT_CODES = {200: HEALTHY, 503: IMPAIRED}
# What is shown of an answer, and of each part, and the kinds of it.
SHOWN: Shape = {
    **dict.fromkeys(("status", "message", "cluster", "at"), str),
    "seconds": int | float,
    "parts": list,
}
SHOWN_OF_A_PART: Shape = {
    **dict.fromkeys(("kind", "name", "status", "reason"), str),
    "notes": list,
}
STYLES = {
    Health.HEALTHY: "green",
    Health.STARTING: "cyan",
    Health.DEGRADED: "yellow",
    Health.UNKNOWN: "magenta",
    Health.UNHEALTHY: "red",
}
SYMBOLS = {
    Health.HEALTHY: "●",
    Health.STARTING: "◔",
    Health.DEGRADED: "◑",
    Health.UNKNOWN: "?",
    Health.UNHEALTHY: "○",
}


@dataclass(frozen=True, slots=True)
class Examined:
    """One answer of λ health."""

    status_code: int
    document: Mapping[str, Any]

    @property
    def exit_code(self) -> int:
        """0: healthy; 1: starting or degraded; 2: unhealthy, or nobody can tell."""
        return EXIT_CODES.get(self.status_code, UNHEALTHY)


def ask(cluster: Cluster) -> Examined:
    """Invoke λ health; raises StillwaterError where there is no answer of it."""
    payload = cluster.invoke("health")
    code, document = payload.get("statusCode"), json_object(str(payload.get("body") or ""))
    parts = document.get("parts")
    known = [_has(document, SHOWN), *(_has(part, SHOWN_OF_A_PART) for part in _listed(parts))]
    if not (isinstance(code, int) and all(known)):
        raise cluster.unreadable("health")
    return Examined(code, document)


def _listed(parts: object) -> list[Any]:
    return parts if isinstance(parts, list) else []


def _has(said: Any, shown: Shape) -> bool:
    """Say whether an answer, or a part of one, has all that is shown, and a health we know."""
    return has_shape(said, shown) and said["status"] in list(Health)


def show(
    environment: str, console: Console, *, watch: bool, as_json: bool, pace: Pace = PACE
) -> int:
    """Print the cluster's health, once or until Ctrl-C; return the exit code of the last.

    A watch begins with an examination that succeeds, and outlasts later ones that do not.
    """
    cluster = Cluster.named(environment)
    if watch and not as_json:
        return watching.watch(console, lambda _now: (page(ask(cluster)), None), pace)
    while True:
        examined = ask(cluster)
        _print(examined, console, as_json=as_json)
        if not watch:
            return examined.exit_code
        pace.pause(pace.seconds)


def _print(examined: Examined, console: Console, *, as_json: bool) -> None:
    if not as_json:
        console.print(page(examined))
        return
    line = json.dumps(examined.document, ensure_ascii=False)
    say(console, line)


def page(examined: Examined) -> Group:
    """Return the whole's verdict, a line per kind of part, and one per part that is not well."""
    document = examined.document
    health = Health(document["status"])
    head = Text.assemble(
        (f"{SYMBOLS[health]} {document['cluster']}: {health.value}", f"bold {STYLES[health]}"),
        (f"  {examined.status_code}, {document['at']}, after {document['seconds']} s", "dim"),
    )
    table = Table("", "part", "health", "why")
    for kind, found in groupby(document["parts"], key=lambda part: str(part["kind"])):
        _add(table, kind, list(found))
    return Group(head, Text(document["message"]), table)


def _add(table: Table, kind: str, parts: Sequence[Mapping[str, Any]]) -> None:
    if len(parts) == 1:
        _row(table, kind, parts[0])
        _notes(table, parts[0])
        return
    well = sum(part["status"] == Health.HEALTHY for part in parts)
    all_well = well == len(parts)
    style = STYLES[Health.HEALTHY if all_well else Health.DEGRADED]
    names = ", ".join(str(part["name"]) for part in parts)
    table.add_row(
        SYMBOLS[Health.HEALTHY] if all_well else "",
        f"{kind}s",
        Text(f"{well} of {len(parts)} healthy", style),
        Text(names, "dim"),
    )
    for part in parts:
        if part["status"] != Health.HEALTHY:
            _row(table, f"  {part['name']}", part)
        _notes(table, part)


def _notes(table: Table, part: Mapping[str, Any]) -> None:
    for note in part["notes"]:
        table.add_row("", "", "", Text(str(note), "dim"))


def _row(table: Table, name: str, part: Mapping[str, Any]) -> None:
    health = Health(part["status"])
    style = STYLES[health]
    table.add_row(
        Text(SYMBOLS[health], style), Text(name), Text(health.value, style), Text(part["reason"])
    )
