"""Shows a diagnosis: a table for people, JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.doctor.examine import Diagnosis
from core.checks.finding import Weight


def as_json(diagnosis: Diagnosis) -> str:
    """Return a diagnosis as one JSON object."""
    known = {**asdict(diagnosis), "seconds": round(diagnosis.seconds, 2)}
    return json.dumps({"exit_code": diagnosis.exit_code, **known}, indent=2, ensure_ascii=False)


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print a diagnosis: what differs, what to do about it, and what nothing is known of."""
    if diagnosis.findings:
        console.print(_table(diagnosis))
    for numbers, remedy in _remedies(diagnosis):
        # Unwrapped: it is there to be copied.
        console.print(Text(f"{numbers}: {remedy}."), soft_wrap=True)
    for unread in diagnosis.unread:
        said = f"{unread.part} could not be read: {unread.reason}."
        console.print(Text(said, style="yellow"), soft_wrap=True)
    for each in diagnosis.surroundings:
        console.print(Text(each.line, style="yellow"), soft_wrap=True)
    for sentence in diagnosis.open_doors:
        console.print(Text(sentence, style="yellow"), soft_wrap=True)
    console.print(Text(verdict(diagnosis)), soft_wrap=True)


def _table(diagnosis: Diagnosis) -> Table:
    table = Table(show_lines=True)
    table.add_column("", justify="right")
    for title in ("what", "expected", "found"):
        table.add_column(title, overflow="fold")
    for number, finding in enumerate(diagnosis.findings, start=1):
        # Text, since names and values may hold square brackets, which are no markup.
        table.add_row(
            str(number),
            Text(finding.what),
            Text(finding.expected),
            Text(finding.found, style="red"),
        )
    return table


def _remedies(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Return each remedy once, with the numbers of all that it is for."""
    numbers: dict[str, list[str]] = {}
    for number, finding in enumerate(diagnosis.findings, start=1):
        numbers.setdefault(finding.remedy, []).append(str(number))
    return [(", ".join(of), remedy) for remedy, of in numbers.items()]


def verdict(diagnosis: Diagnosis) -> str:
    """Return the last line: how many differences, where, after how long."""
    where = f"{diagnosis.cluster} in account {diagnosis.account}, {diagnosis.region}"
    count = len(diagnosis.findings)
    known = "What was read is" if diagnosis.unread else "Everything is"
    differs = "1 thing is" if count == 1 else f"{count} things are"
    said = f"{known} as its spec says" if not count else f"{differs} not as the spec says"
    beside = sum(each.weight is not Weight.ADVICE for each in diagnosis.surroundings)
    around = f", and {beside} of the account around it may hurt" if beside else ""
    return f"{where}: {said}{around} ({diagnosis.seconds:.1f} s)."
