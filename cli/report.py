"""`stillwater report`: from a bill, and what is known beside it, to a page, a text or a message.

Runs on this machine unless told otherwise: RUNNERS holds every place a report is made, each with
one call from what was asked to where it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rich.console import Console

from core import pricing
from core.errors import InvalidInput
from spark.facts import Facts, of_spec
from spark.facts import load as load_facts


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command line asked for."""

    bill: str | None
    month: str | None
    format: str
    spec: Path | None
    metrics: str | None
    history: str | None
    prices: Path | None
    tables: Path
    output: Path
    today: date | None = None


def on_this_machine(asked: Asked, console: Console) -> Path:
    """Make the report with a local Spark session."""
    from spark.jobs import report as job  # noqa: PLC0415 - starts Spark's imports
    from spark.report import formats, page  # noqa: PLC0415
    from spark.session import local_session  # noqa: PLC0415
    from spark.tables import ParquetStore  # noqa: PLC0415

    kind = formats.Format(asked.format)
    facts = facts_of(asked.spec)
    book = pricing.book(facts.region, asked.prices or pricing.SHIPPED) if facts else None
    inputs = job.Inputs(
        bill=asked.bill,
        month=asked.month,
        metrics=asked.metrics,
        history=asked.history,
        facts=facts,
        book=book,
        today=asked.today,
    )
    _made_folders(asked)
    with console.status("Spark makes the report"), local_session() as session:
        made = job.run(session, ParquetStore(session, str(asked.tables.resolve())), inputs)
    for line in page.summary(made.document):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    path = asked.output / kind.file_name
    path.write_text(formats.write(made.document, kind), encoding="utf-8")
    return path


RUNNERS: Mapping[str, Callable[[Asked, Console], Path]] = {"local": on_this_machine}


def make(asked: Asked, on: str, console: Console) -> None:
    """Make the report where it was asked for, and say where it is."""
    if on not in RUNNERS:
        raise InvalidInput([f"--on {on} is no place a report is made: {', '.join(RUNNERS)}."])
    path = RUNNERS[on](asked, console)
    console.print(f"The report: {path}", highlight=False, soft_wrap=True)


def facts_of(path: Path | None) -> Facts | None:
    """Return a cluster's facts from its ClusterSpec, or from the facts another run wrote."""
    if path is None:
        return None
    if path.suffix == ".json" and '"archive_name"' in _text(path):
        return load_facts(path)
    from infra.spec import read  # noqa: PLC0415 - reads pydantic

    return of_spec(read(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _made_folders(asked: Asked) -> None:
    for folder in (asked.output, asked.tables):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"The report cannot be written to {folder}: {error.strerror}."
            raise InvalidInput([problem]) from None
