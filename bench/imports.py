"""Measures cold starts: every function's module imported in a fresh process, compiled.

Each run is one interpreter that imports the module from the deployed zip's content alone, beside
the boto3 that Lambda brings, and says how long that took. The start of the interpreter is not part
of it: AWS's runtime is up before the function's module is imported.
"""

from __future__ import annotations

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from bench import record
from infra.functions import packaging
from local.aws.runtime import install_packages

FUNCTIONS = ("interruption", "tick", "sweep", "webhook", "slack", "health")
# A person waits for none of them, but NTH gives up on the webhook after 5 s.
LIMITS_MS: Mapping[str, float] = {"webhook": 400.0}
LIMIT_MS = 800.0
RUNS = 7
PROGRAM = """
import time
started, worked = time.perf_counter(), time.process_time()
import handlers.{function}
print((time.perf_counter() - started) * 1000, (time.process_time() - worked) * 1000)
"""


def measure(function: str, code: Path, packages: Path) -> list[tuple[float, float]]:
    """Return each run's milliseconds, elapsed and of processor time; a first one fills caches."""
    command = [sys.executable, "-S", "-P", "-c", PROGRAM.format(function=function)]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": f"{code}:{packages}",
        "AWS_REGION": "us-east-1",
    }
    return [_run(command, environment) for _ in range(RUNS + 1)][1:]


def _run(command: list[str], environment: Mapping[str, str]) -> tuple[float, float]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    elapsed, worked = done.stdout.split()
    return float(elapsed), float(worked)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="stillwater-imports-") as scratch:
        code = Path(scratch) / "code"
        with zipfile.ZipFile(packaging.build(Path(scratch)).path) as package:
            package.extractall(code)
        compileall.compile_dir(code, quiet=2)
        packages = install_packages(Path(scratch) / "runtime")
        runs = {name: measure(name, code, packages) for name in FUNCTIONS}
    medians = {name: statistics.median(ms for ms, _ in times) for name, times in runs.items()}
    # Far more elapsed than worked: the machine was busy with something else.
    worked = {name: statistics.median(cpu for _, cpu in times) for name, times in runs.items()}
    record.write(
        "imports",
        {"runs": RUNS, "limits_ms": {name: LIMITS_MS.get(name, LIMIT_MS) for name in FUNCTIONS}},
        [
            {"function": name, "run": number, "ms": round(ms, 1), "cpu_ms": round(cpu, 1)}
            for name, times in runs.items()
            for number, (ms, cpu) in enumerate(times, start=1)
        ],
        {f"{name}_ms": round(median, 1) for name, median in medians.items()}
        | {f"{name}_cpu_ms": round(cpu, 1) for name, cpu in worked.items()},
    )
    over = [name for name, median in medians.items() if median > LIMITS_MS.get(name, LIMIT_MS)]
    if over:
        sys.exit(f"{', '.join(over)} import for longer than they may: see python -X importtime.")


if __name__ == "__main__":
    main()
