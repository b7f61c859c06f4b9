"""What a Java program beside it says of Kafka's own classes, one line for each question."""

from __future__ import annotations

import subprocess
from pathlib import Path

from core.errors import StillwaterError
from local.kafka import jars

ANSWER_SECONDS = 300
# Their own log would be megabytes.
QUIET = ("-Dorg.apache.logging.log4j.level=OFF", "-Xmx512m")


def answers_of(program: Path, questions: str) -> list[str]:
    """Return what a program prints about lines of questions; raises StillwaterError if it fails."""
    ended = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", *QUIET, "-cp", f"{jars.fetch()}/*", str(program)],
        input=questions,
        capture_output=True,
        text=True,
        check=False,
        timeout=ANSWER_SECONDS,
    )
    if ended.returncode != 0:
        raise StillwaterError(f"{program.name} ended with {ended.returncode}: {ended.stderr}")
    return [line for line in ended.stdout.split("\n") if "main ERROR" not in line]
