"""Shows a diagnosis: a finding per line for people, JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from cli.doctor.examine import Diagnosis
from cli.findings import counted, show_findings


def as_json(diagnosis: Diagnosis) -> str:
    """Return a diagnosis as one JSON object."""
    known = {**asdict(diagnosis), "seconds": round(diagnosis.seconds, 2)}
    return json.dumps({"exit_code": diagnosis.exit_code, **known}, indent=2, ensure_ascii=False)


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print a diagnosis: what differs or may hurt, what to do, and what nothing is known of."""
    show_findings(diagnosis.findings, console)
    console.print(Text(verdict(diagnosis)), soft_wrap=True)


def verdict(diagnosis: Diagnosis) -> str:
    """Return the last line: how much of what, where, after how long."""
    where = f"{diagnosis.cluster} in account {diagnosis.account}, {diagnosis.region}"
    said = counted(diagnosis.findings) or "everything is as its description says"
    return f"{where}: {said} ({diagnosis.seconds:.1f} s)."
