"""Shows a diagnosis: a table for people, JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.doctor.examine import Diagnosis


def as_json(diagnosis: Diagnosis) -> str:
    """Return a diagnosis as one JSON object."""
    known = {**asdict(diagnosis), "seconds": round(diagnosis.seconds, 2)}
    return json.dumps({"exit_code": diagnosis.exit_code, **known}, indent=2, ensure_ascii=False)


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print a diagnosis: what differs, then what nothing is known of."""
    if diagnosis.findings:
        table = Table("what", "expected", "found", "remedy", show_lines=True)
        for finding in diagnosis.findings:
            # Remedies hold square brackets and braces; none of it is markup.
            table.add_row(
                *(_plain(text) for text in (finding.what, finding.expected)),
                Text(finding.found, style="red"),
                _plain(finding.remedy),
            )
        console.print(table)
    for unread in diagnosis.unread:
        console.print(
            Text(f"{unread.part} could not be read: {unread.reason}.", style="yellow"),
            soft_wrap=True,
        )
    console.print(_plain(verdict(diagnosis)), soft_wrap=True)


def verdict(diagnosis: Diagnosis) -> str:
    """Return the last line: how many differences, where, after how long."""
    where = f"{diagnosis.cluster} in account {diagnosis.account}, {diagnosis.region}"
    count = len(diagnosis.findings)
    known = "What was read is" if diagnosis.unread else "Everything is"
    differs = "1 thing is" if count == 1 else f"{count} things are"
    said = f"{known} as its spec says" if not count else f"{differs} not as the spec says"
    return f"{where}: {said} ({diagnosis.seconds:.1f} s)."


def _plain(text: str) -> Text:
    return Text(text)
