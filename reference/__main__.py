"""Writes the pages of docs/reference/ from the code: `python -m reference [DIRECTORY]`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from core.cluster.reading import json_schema
from reference import (
    adoption,
    checks,
    command_line,
    components,
    cost,
    description,
    functions,
    own,
    tables,
)

DOCS = Path(__file__).parents[1] / "docs"


def pages() -> Mapping[str, str]:
    """Return every generated page, file name -> content."""
    return {
        "adoption.md": adoption.page(),
        "checks.md": checks.page(),
        "command-line.md": command_line.page(),
        "components.md": components.page(),
        "components.schema.json": components.schema(),
        "cluster-spec.md": description.page(),
        "cluster-spec.schema.json": json_schema(),
        "default-stack-cost.md": cost.page(),
        "functions.md": functions.page(),
        "health-rules.md": tables.health_rules(),
        "own-cost.md": own.page(),
        "kafka-rights.md": tables.kafka_rights(),
        "timings.md": tables.timings(),
        "waits.md": tables.waits(),
    }


def write(directory: Path) -> None:
    """Write every page, replacing what is there."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in pages().items():
        (directory / name).write_text(content)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if sys.argv[1:] else DOCS / "reference")
