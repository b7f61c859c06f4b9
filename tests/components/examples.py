"""Reads the programs of the how-to, which are what is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
COMPONENTS = REPOSITORY / "components"
_PAGE = REPOSITORY / "docs" / "how-to" / "components.md"


def example(heading: str) -> dict[str, Any]:
    """Return the program in YAML below a heading."""
    return dict(yaml.safe_load(program_below(heading, "yaml")))


def program_below(heading: str, language: str) -> str:
    """Return the program below a heading, as it stands there."""
    _, _, rest = _PAGE.read_text().partition(f"\n## {heading}\n")
    section, _, _ = rest.partition("\n## ")
    _, fenced, block = section.partition(f"\n```{language}\n")
    assert fenced, f"{heading} has no example in {language}"
    return block.partition("\n```")[0] + "\n"
