"""The settings of an environment's stacks, as the engine will give them to the program.

For those who look at an environment, or take it down. Its spec is read and not judged: what was
built from it stands there whatever a newer release thinks of it.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.project.found import CHECKOUT, Project, find, settings_in
from core.cluster import ClusterSpec
from core.errors import InvalidInput
from core.fields import part
from core.naming import LAYERS, TWIN_ENVIRONMENT
from infra import spec as specs

PROFILE = "aws:profile"
_NAME = re.compile(r"[A-Za-z0-9-]+")
SECRETS_PROVIDER = "secretsprovider"


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
    """An environment: its spec, and the AWS profile its stacks are set to, if any."""

    spec: ClusterSpec
    profile: str | None


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
        f"There is no environment {environment}: {project.settings} {here}.{meant} `{new}` "
        f"describes a new one; `{TWIN_ENVIRONMENT}` is the twin."
    )


def read_described(environment: str, project: Project | None = None) -> DescribedEnvironment:
    """Return an environment as its stacks' settings describe it, every layer alike."""
    project = require(environment, project)
    stored = {layer: _read(project.file(environment, layer)) for layer in LAYERS}
    first = stored[LAYERS[0]]
    for layer, settings in stored.items():
        if _spec_settings(settings) != _spec_settings(first):
            problem = (
                f"The settings of {environment}-{layer} name another ClusterSpec than those of "
                f"{environment}-{LAYERS[0]}: give every layer the same."
            )
            raise InvalidInput([problem])
    profile = first.values.get(PROFILE)
    return DescribedEnvironment(
        specs.parse_spec(first, project.root), None if profile is None else str(profile)
    )


def secrets_provider(environment: str, project: Project) -> str | None:
    """Return who encrypts the secrets of stacks that are made for an environment."""
    return _read(project.file(environment, LAYERS[0])).secrets_provider


def spec_file(named: Path) -> Path:
    """Return the ClusterSpec that is meant: a file, or an environment that names one."""
    if named.exists() or named.suffix or len(named.parts) != 1:
        return named
    project = require(str(named))
    path = _read(project.file(str(named), LAYERS[0])).get(specs.PATH_KEY)
    return named if path is None else Path(os.path.relpath(project.root / path))


def _spec_settings(settings: StackSettings) -> tuple[object, object]:
    return settings.get_object(specs.PATH_KEY), settings.get_object(specs.INLINE_KEY)


def _read(path: Path) -> StackSettings:
    stored = settings_in(path)
    provider = stored.get(SECRETS_PROVIDER)
    return StackSettings(part(stored.get("config")), None if provider is None else str(provider))
