"""Checks the specification of incidents, lease and hooks (incidents.als) with Alloy, headless.

`make spec` runs it: every check must find no counterexample in its scope, every run an instance.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SPECIFICATION = HERE / "incidents.als"
JAR = "org.alloytools.alloy.dist-6.2.0.jar"
STORED = Path.home() / ".m2/repository/org/alloytools/org.alloytools.alloy.dist/6.2.0" / JAR
_VERDICT = re.compile(r"^\d+\. (check|run)\s+(\w+)\s.*\b(UNSAT|SAT)$", re.MULTILINE)


def missing() -> str | None:
    """Say what keeps the specification from being checked without a download; None: nothing."""
    if shutil.which("java") is None:
        return "Java is not installed."
    if not STORED.exists():
        return f"Alloy's jar is not in Maven's repository ({STORED}); `make spec` fetches it."
    return None


def fetch() -> None:
    """Have Maven fetch the analyzer; it finds its repositories in the user's own settings."""
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(HERE / "pom.xml")]
    with tempfile.TemporaryDirectory() as target:
        copied = ("dependency:copy-dependencies", f"-DoutputDirectory={target}")
        subprocess.run([*command, *copied], check=True)


def verdicts(specification: Path = SPECIFICATION) -> dict[str, str]:
    """Return what is wrong with each check or run, "" where it is as it should be."""
    java = ["java", "-Djava.awt.headless=true", "-jar", str(STORED)]
    with tempfile.TemporaryDirectory() as output:
        command = [*java, "exec", "-f", "-o", output, str(specification)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = _VERDICT.findall(ran.stdout + ran.stderr)
    if not found:
        return {"alloy": ran.stderr.strip() or ran.stdout.strip() or "It said nothing."}
    wanted = {"check": "UNSAT", "run": "SAT"}
    wrong = {"check": "has a counterexample", "run": "has no instance"}
    return {name: "" if said == wanted[kind] else wrong[kind] for kind, name, said in found}


def main() -> None:
    if missing():
        fetch()
    problem = missing()
    if problem:
        sys.exit(problem)
    found = verdicts()
    for name, wrong in found.items():
        print(f"{name}: {wrong or 'holds in its scope'}")  # noqa: T201 - what the command is for
    if any(found.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
