"""Finds the project one stands in, and reads the settings of an environment's stacks there.

The project is the nearest Pulumi.yaml at or above; in a checkout of Stillwater it is the checkout's
own, from anywhere. An environment's spec is read and not judged: what was built from it stands
there whatever a newer release thinks of it.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core.cluster import ClusterSpec
from core.cost import pricing
from core.cost.pricing import PriceBook
from core.ground.errors import InvalidInput
from core.ground.fields import part
from core.ground.naming import LAYERS, TWIN_ENVIRONMENT
from infra import spec as specs

PROJECT_FILE = "Pulumi.yaml"
# Only a checkout has it beside the packages; an installed one lies in site-packages.
CHECKOUT = "pyproject.toml"
PROFILE = "aws:profile"
_NAME = re.compile(r"[A-Za-z0-9-]+")
SECRETS_PROVIDER = "secretsprovider"


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
            return project_at(directory)
    if (package / CHECKOUT).is_file():
        return project_at(package)
    raise InvalidInput(
        [
            (
                f"{PROJECT_FILE} is missing in {here} and above it: change to the directory that "
                f"`stillwater init DIRECTORY` wrote, or write one."
            )
        ]
    )


def project_at(directory: Path) -> Project:
    """Return the project whose Pulumi.yaml stands in a directory."""
    named = yaml_settings(directory / PROJECT_FILE).get("stackConfigDir")
    return Project(directory, directory / str(named or "."))


def yaml_settings(path: Path) -> Mapping[str, Any]:
    """Return what a file of Pulumi's says; raise InvalidInput where it is no YAML."""
    try:
        return part(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValueError, OSError):
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


@dataclass(frozen=True)
class StackSettings:
    """One stack's configuration, as far as infra.spec reads it."""

    values: Mapping[str, object]
    # Who encrypts what is secret in the stack's state; None: the backend's default.
    secrets_provider: str | None = None

    def get(self, key: str) -> str | None:
        value = self.get_object(key)
        return None if value is None else str(value)

    def get_object(self, key: str) -> object:
        return self.values.get(f"stillwater:{key}")


@dataclass(frozen=True)
class DescribedEnvironment:
    """An environment: its spec, its stacks' AWS profile, if any, and who keeps their secrets."""

    spec: ClusterSpec
    profile: str | None
    secrets_provider: str | None = None


def require(environment: str, project: Project | None = None) -> Project:
    """Refuse an environment nobody described, before any stack is made for it."""
    project = project or find()
    missing = [layer for layer in LAYERS if not project.file(environment, layer).is_file()]
    if not missing:
        return project
    raise InvalidInput([_unknown(environment, missing, project)])


def _unknown(environment: str, missing: Sequence[str], project: Project) -> str:
    """Say that an environment, or a part of it, is described nowhere, and what describes it."""
    known = project.environments()
    if environment == TWIN_ENVIRONMENT:
        return (
            f"`{TWIN_ENVIRONMENT}` is the twin, which has commands of its own: `python -m local`."
        )
    if environment in known:
        where = project.file(environment, missing[0])
        return (
            f"Environment {environment} has no settings for {', '.join(missing)}: copy those of "
            f"another layer of it, such as to {where}."
        )
    close = difflib.get_close_matches(environment, known, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    here = f"has those of {', '.join(known)}" if known else "has none"
    if not _NAME.fullmatch(environment):
        return (
            f"Environment {environment!r} has no name that a stack can bear: give one of letters, "
            f"digits and hyphens; {project.settings} {here}."
        )
    root = "DIRECTORY" if (project.root / CHECKOUT).is_file() else str(project.root)
    new = shlex.join(["stillwater", "init", root, "--environment", environment])
    return (
        f"The project has no environment {environment}: {project.settings} {here}.{meant} `{new}` "
        f"describes a new one; `{TWIN_ENVIRONMENT}` is the twin."
    )


def read_described(environment: str, project: Project | None = None) -> DescribedEnvironment:
    """Return an environment as its stacks' settings describe it, every layer alike."""
    project = require(environment, project)
    first = _first_settings(environment, project)
    profile = first.values.get(PROFILE)
    spec = specs.parse_spec(first, project.root)
    said = None if profile is None else str(profile)
    return DescribedEnvironment(spec, said, first.secrets_provider)


def spec_file(named: Path) -> Path:
    """Return the ClusterSpec that is meant: a file, or an environment that names one."""
    if named.is_file() or named.suffix or len(named.parts) != 1:
        return named
    project = require(str(named))
    settings = _first_settings(str(named), project)
    path = settings.get(specs.PATH_KEY)
    if path is None or settings.get_object(specs.INLINE_KEY) is not None:
        problem = "has its ClusterSpec in no file: name one in stillwater:spec of its stacks alone"
        raise InvalidInput([f"Environment {named} {problem}."])
    return Path(os.path.relpath(project.root / path))


def _first_settings(environment: str, project: Project) -> StackSettings:
    """Return the settings of the first layer, whose ClusterSpec is every layer's."""
    stored = [_read(project.file(environment, layer)) for layer in LAYERS]
    keys = specs.PATH_KEY, specs.INLINE_KEY
    named = [[each.get_object(key) for key in keys] for each in stored]
    for layer, each in zip(LAYERS, named, strict=True):
        if each != named[0]:
            problem = (
                f"The settings of {environment}-{layer} name another ClusterSpec than those of "
                f"{environment}-{LAYERS[0]}: give every layer the same."
            )
            raise InvalidInput([problem])
    return stored[0]


def _read(path: Path) -> StackSettings:
    stored = yaml_settings(path)
    provider = stored.get(SECRETS_PROVIDER)
    return StackSettings(part(stored.get("config")), None if provider is None else str(provider))
