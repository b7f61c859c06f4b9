"""Writes a bench down: one JSON file per bench, the same shape for all (DESIGN.md 9)."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

OUTPUT = Path("out/bench")


def write(
    name: str,
    parameters: Mapping[str, object],
    rows: Sequence[Mapping[str, object]],
    summary: Mapping[str, object],
) -> Path:
    """Write out/bench/NAME.json: every measurement, and the few figures that matter."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / f"{name}.json"
    document = {
        "name": name,
        "commit": _first_line("git", "rev-parse", "--short", "HEAD"),
        "machine": {
            "cores": os.cpu_count(),
            "memory_gib": round(
                os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1
            ),
            "python": platform.python_version(),
            "java": _first_line("java", "-version"),
        },
        "parameters": dict(parameters),
        "rows": [dict(row) for row in rows],
        "summary": dict(summary),
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def load_average() -> float:
    """Return how busy the machine was over the last minute."""
    return round(os.getloadavg()[0], 1)


def _first_line(*command: str) -> str | None:
    """Return the first line a program prints; None where there is no such program."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0] if done.returncode == 0 and lines else None
