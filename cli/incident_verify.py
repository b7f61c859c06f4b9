"""`stillwater incidents verify`: recorded histories, held to the rules of cli.histories."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from cli import answer
from cli.histories import RULES, Break, breaks
from cli.incidents import Desk, sentences
from core.errors import InvalidInput, StillwaterError, one_line, passed_on
from core.incidents.record import Incident, from_json

MOST_SHOWN = 10


def verify(named: str, console: Console, *, as_json: bool = False) -> None:
    """Judge an environment's ledger, or archived lines; StillwaterError when a rule is broken.

    `named` is an environment, a file of the archive, or a folder of such files; what has neither a
    slash nor a dot is an environment, whatever folder is called like it.
    """
    place = Path(named)
    if "/" in named or "." in named:
        clusters = read(place)
        found = [b for histories in clusters.values() for b in breaks(histories)]
        count = sum(len(histories) for histories in clusters.values())
    else:
        desk = Desk.of(named)
        with sentences():
            incidents = desk.incidents(closed=True)
        found, count = breaks(incidents, gate=desk.spec.gate), len(incidents)
    if found:
        raise StillwaterError(_report_text(sorted(found), count))
    if as_json:
        answer.write({"incidents": count, "rules": list(RULES)})
        return
    console.print(f"{count} incidents keep all {len(RULES)} rules: {', '.join(RULES)}.")


def _report_text(found: Sequence[Break], count: int) -> str:
    more = len(found) - MOST_SHOWN
    lines = [f"Of {count} incidents, the first step that breaks a rule:", str(found[0])]
    lines.extend(f"then {each}" for each in found[1:MOST_SHOWN])
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def read(place: Path) -> dict[str, list[Incident]]:
    """Return the incidents of archived lines by cluster; InvalidInput for what is none."""
    found: dict[str, list[Incident]] = {}
    problems: list[str] = []
    for path in sorted(place.rglob("*.jsonl")) if place.is_dir() else [place]:
        for number, line in _lines(path):
            try:
                cluster = str(json.loads(line).get("cluster", ""))
                found.setdefault(cluster, []).append(from_json(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                problems.append(
                    f"{path}, line {number}, is no archived incident "
                    f"({type(error).__name__}: {one_line(error)}); give a file of the archive's "
                    f"incidents/."
                )
    if problems:
        raise InvalidInput(problems[:MOST_SHOWN])
    if not found:
        raise InvalidInput([f"{place} holds no archived incidents: no line of any .jsonl file."])
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            [passed_on(f"{path} cannot be read; name another file.", error)]
        ) from None
    return ((n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip())
