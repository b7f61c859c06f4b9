"""Finds the project that a command is about: the nearest Pulumi.yaml at or above where one stands.

In a checkout of Stillwater that is the checkout's own, from anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core.cost import pricing
from core.cost.pricing import PriceBook
from core.errors import InvalidInput
from core.fields import part
from infra import spec as specs

PROJECT_FILE = "Pulumi.yaml"
# Only a checkout has it beside the packages; an installed one lies in site-packages.
CHECKOUT = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Project:
    """A Pulumi project of ours; paths in its stacks' settings are relative to `root`."""

    root: Path
    settings: Path  # where its stacks' settings are: Pulumi.<stack>.yaml

    def file(self, environment: str, layer: str) -> Path:
        return self.settings / f"Pulumi.{environment}-{layer}.yaml"

    @property
    def prices(self) -> Path:
        """Return the price file that this project keeps: a checkout's is the one it ships."""
        return pricing.SHIPPED if self.root == specs.ROOT else self.root / pricing.OWN

    def environments(self) -> list[str]:
        """Return the environments that have settings here."""
        found = (path.name.split(".")[1] for path in self.settings.glob("Pulumi.*.yaml"))
        return sorted({name.rpartition("-")[0] for name in found} - {""})


def find(start: Path | None = None, package: Path = specs.ROOT) -> Project:
    """Return the project one stands in; raise InvalidInput where there is none."""
    here = (start or Path.cwd()).absolute()
    for directory in (here, *here.parents):
        if (directory / PROJECT_FILE).is_file():
            return at(directory)
    if (package / CHECKOUT).is_file():
        return at(package)
    raise InvalidInput(
        [
            (
                f"There is no {PROJECT_FILE} in {here} or above it: change to the directory that "
                f"`stillwater init DIRECTORY` wrote, or write one."
            )
        ]
    )


def at(directory: Path) -> Project:
    """Return the project whose Pulumi.yaml stands in a directory."""
    named = settings_in(directory / PROJECT_FILE).get("stackConfigDir")
    return Project(directory, directory / str(named or "."))


def settings_in(path: Path) -> Mapping[str, Any]:
    """Return what a file of Pulumi's says; raise InvalidInput where it is no YAML."""
    try:
        return part(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError, OSError):
        raise InvalidInput([f"{path} cannot be read as YAML; correct it."]) from None


def prices(region: str, named: Path | None = None) -> PriceBook:
    """Return the prices of a region: a named file's, else those of the project one stands in.

    What its own price file lacks, and where there is no project, the shipped one says.
    """
    try:
        own = pricing.own_file(find().root)
    except InvalidInput:
        own = None
    return pricing.book(region, named, own=own)
