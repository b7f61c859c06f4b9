"""Writes a bench down, the same shape for all (DESIGN.md 9), and holds it against the kept one.

docs/reference/measured.json keeps a run's figures per bench; KEEP=1 puts this run in their place.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

OUTPUT = Path("out/bench")
MEASURED = Path("docs/reference/measured.json")
# More than a tenth is worse.
WORSE = 0.1
# Words of figures' names of which less is better, and figures of which more is. A rate is one, and
# bench.resync divides by what is good. Whatever else a figure is, nobody judges it.
LESS = re.compile(r"(^|_)(m?s|seconds|minutes|[mk]ib|p50|p99|ratio|to|growth|lost|errors)(_|$)")
MORE = re.compile(r"_per_s$|^(bytes|time)_ratio$")


def write(
    name: str,
    parameters: Mapping[str, object],
    rows: Sequence[Mapping[str, object]],
    summary: Mapping[str, object],
) -> Path:
    """Write out/bench/NAME.json; print the few figures that matter, each beside the kept one."""
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
    kept = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    # A flag is no figure.
    figures = {each: value for each, value in summary.items() if type(value) in (int, float)}
    run = {key: document[key] for key in ("commit", "machine")}
    run |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "figures": dict(figures)}
    print("\n".join((*lines(kept.get(name, {}), run), str(path))))
    if os.environ.get("KEEP"):
        MEASURED.write_text(json.dumps({**kept, name: run}, indent=1, sort_keys=True) + "\n")
    return path


def lines(kept: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line per figure of a run: beside it the kept one, and whether it is worse."""
    if kept:
        where = "here" if kept["machine"] == run["machine"] else "elsewhere"
        yield f"Kept is {kept['date']}, {kept['commit']}, measured {where}."
    for name, value in run["figures"].items():
        before = kept.get("figures", {}).get(name)
        beside = "" if before is None else f"  kept {before:>12,}{_worse(name, before, value)}"
        yield f"{name:<32} {value:>12,}{beside}"


def _worse(name: str, before: float, value: float) -> str:
    more = MORE.search(name)
    by = before - value if more else value - before
    return f"  WORSE by {by:,.4g}" if (more or LESS.search(name)) and by > WORSE * before else ""


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
