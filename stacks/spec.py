"""The ClusterSpec of a stack: read from its configuration, checked before anything is planned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import yaml

from core import timing
from core.cluster import ClusterSpec, parse
from core.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[1]
PATH_KEY, INLINE_KEY = "spec", "cluster"
NO_SPEC = (
    "This stack has no ClusterSpec: set one with `pulumi config set stillwater:spec "
    "stacks/config/clusters/example.yaml`."
)
# AWS's shortest limit on a name of ours: a role or function, 64, less the longest suffix.
PREFIX_LIMIT = 64 - len("-interruption")


class Settings(Protocol):
    """What of a stack's configuration is read here (pulumi.Config has it)."""

    def get(self, key: str) -> str | None: ...

    def get_object(self, key: str) -> object: ...


def load(settings: Settings, environment: str, root: Path = ROOT) -> ClusterSpec:
    """Return the spec of a stack; raise InvalidInput with every problem it has.

    `stillwater:spec` names a file that all layers share; `stillwater:cluster` holds the same as an
    object.
    """
    spec = parse(_raw(settings, root))
    problems = [*_name_problems(spec, environment)]
    problems += [violation.sentence for violation in timing.check(spec)]
    if problems:
        raise InvalidInput(problems)
    return spec


def _raw(settings: Settings, root: Path) -> object:
    path, inline = settings.get(PATH_KEY), settings.get_object(INLINE_KEY)
    if path and inline is not None:
        raise InvalidInput(
            ["stillwater:spec and stillwater:cluster are both set; keep the one you mean."]
        )
    if path:
        return read(root / path)
    if inline is not None:
        return inline
    raise InvalidInput([NO_SPEC])


def read(path: Path) -> object:
    """Return the content of a YAML or JSON file; JSON is YAML."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput([f"The ClusterSpec {path} cannot be read: {reason}."]) from None
    try:
        content: object = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        where = " ".join(str(error).split())
        raise InvalidInput([f"The ClusterSpec {path} is not valid YAML: {where}."]) from None
    if not isinstance(content, Mapping):
        raise InvalidInput([f"The ClusterSpec {path} must be a mapping of settings to values."])
    return content


def _name_problems(spec: ClusterSpec, environment: str) -> list[str]:
    problems = []
    if spec.environment != environment:
        problems.append(
            f"environment is {spec.environment!r} but this stack is named for {environment!r}: "
            f"name the stack {spec.environment}-<layer> or change the spec."
        )
    if len(spec.prefix) > PREFIX_LIMIT:
        problems.append(
            f"environment and name make the prefix {spec.prefix!r}, {len(spec.prefix)} characters "
            f"long; AWS's limits on names leave {PREFIX_LIMIT}: shorten one."
        )
    return problems
