"""The settings of an environment's stacks, as the engine will give them to the program.

For those who look at an environment, or take it down. Its spec is read and not judged: what was
built from it stands there whatever a newer release thinks of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from core.cluster import ClusterSpec
from core.errors import InvalidInput
from core.naming import LAYERS, TWIN_ENVIRONMENT
from infra import spec as specs

DIRECTORY = specs.ROOT / "stacks" / "config"
PROFILE = "aws:profile"


@dataclass(frozen=True)
class StackSettings:
    """One stack's configuration, as far as infra.spec reads it."""

    values: Mapping[str, object]

    def get(self, key: str) -> str | None:
        value = self.get_object(key)
        return None if value is None else str(value)

    def get_object(self, key: str) -> object:
        return self.values.get(f"stillwater:{key}")


@dataclass(frozen=True)
class Described:
    """An environment: its spec, and the AWS profile its stacks are set to, if any."""

    spec: ClusterSpec
    profile: str | None


def require(environment: str, directory: Path = DIRECTORY) -> None:
    """Refuse an environment nobody described, before any stack is made for it."""
    missing = [layer for layer in LAYERS if not _file(directory, environment, layer).is_file()]
    if missing:
        known = sorted(
            {p.name.split(".")[1].rpartition("-")[0] for p in directory.glob("Pulumi.*.yaml")}
        )
        problem = (
            f"Environment {environment} has no settings for {', '.join(missing)}: add "
            f"stacks/config/Pulumi.{environment}-<layer>.yaml with stillwater:spec, as those "
            f"of {', '.join(known)} have, or use `{TWIN_ENVIRONMENT}` for the twin."
        )
        raise InvalidInput([problem])


def described(environment: str, directory: Path = DIRECTORY, root: Path = specs.ROOT) -> Described:
    """Return an environment as its stacks' settings describe it, every layer alike."""
    require(environment, directory)
    stored = {layer: _read(_file(directory, environment, layer)) for layer in LAYERS}
    first = stored[LAYERS[0]]
    for layer, settings in stored.items():
        if _named(settings) != _named(first):
            problem = (
                f"The settings of {environment}-{layer} name another ClusterSpec than those of "
                f"{environment}-{LAYERS[0]}: give every layer the same."
            )
            raise InvalidInput([problem])
    profile = first.values.get(PROFILE)
    return Described(specs.parsed(first, root), None if profile is None else str(profile))


def _file(directory: Path, environment: str, layer: str) -> Path:
    return directory / f"Pulumi.{environment}-{layer}.yaml"


def _named(settings: StackSettings) -> tuple[object, object]:
    return settings.get_object(specs.PATH_KEY), settings.get_object(specs.INLINE_KEY)


def _read(path: Path) -> StackSettings:
    try:
        stored = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError):
        raise InvalidInput([f"The settings {path} cannot be read as YAML; correct them."]) from None
    config = stored.get("config") if isinstance(stored, Mapping) else None
    return StackSettings(config if isinstance(config, Mapping) else {})
