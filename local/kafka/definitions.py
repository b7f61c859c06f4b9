"""Writes what Kafka's own classes define of their settings: `python -m local.kafka.definitions`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from core.cluster import kafka_settings
from core.ground.errors import StillwaterError
from local.kafka import jars

PROGRAM = Path(__file__).with_name("ConfigDefinitions.java")
ANSWER_SECONDS = 300


def definitions() -> str:
    """Return the file's text; raises StillwaterError where Kafka's classes do not answer."""
    # Their own log would be megabytes.
    quiet = "-Dorg.apache.logging.log4j.level=OFF"
    ended = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", quiet, "-cp", f"{jars.fetch()}/*", str(PROGRAM)],
        capture_output=True,
        text=True,
        check=False,
        timeout=ANSWER_SECONDS,
    )
    if ended.returncode != 0:
        raise StillwaterError(f"{PROGRAM.name} ended with {ended.returncode}: {ended.stderr}")
    found: dict[str, dict[str, list[str]]] = {}
    for line in ended.stdout.splitlines():
        whose, name, kind, limit = line.split("\t")
        found.setdefault(whose, {})[name] = [kind, limit]
    parts = []
    for whose, settings in found.items():
        rows = (f"  {json.dumps(name)}: {json.dumps(said)}" for name, said in settings.items())
        parts.append(f" {json.dumps(whose)}: {{\n" + ",\n".join(rows) + "\n }")
    return f'{{"kafka": "{jars.version()}",\n' + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    kafka_settings.FILE.write_text(definitions())
