"""The ClusterSpec that everything here is built from: found, read, and refused with every reason.

The stacks and the command line both start here, so that `pulumi up` and `stillwater check` refuse
the same specs: the stacks know no command line, and core no YAML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import yaml

from core import timing
from core.cluster import ClusterSpec, limits, parse
from core.errors import InvalidInput
from infra.eks import addon_versions

ROOT = Path(__file__).resolve().parents[1]
PATH_KEY, INLINE_KEY = "spec", "cluster"
NO_SPEC = (
    "This stack has no ClusterSpec: set one with `pulumi config set stillwater:spec "
    "stacks/config/clusters/example.yaml`."
)


class Settings(Protocol):
    """What of a stack's configuration is read here (pulumi.Config has it)."""

    def get(self, key: str) -> str | None: ...

    def get_object(self, key: str) -> object: ...


def load(settings: Settings, environment: str, root: Path = ROOT) -> ClusterSpec:
    """Return the spec of a stack; raise InvalidInput with every problem it has.

    `stillwater:spec` names a file that all layers share; `stillwater:cluster` holds the same as an
    object.
    """
    spec = parsed(settings, root)
    problems = [*_misnamed(spec, environment), *problems_of(spec)]
    if problems:
        raise InvalidInput(problems)
    return spec


def parsed(settings: Settings, root: Path = ROOT) -> ClusterSpec:
    """Return the spec of a stack that may be built already, whatever is to be said of it today."""
    return parse(_raw(settings, root))


def read(path: Path) -> ClusterSpec:
    """Return the spec in a YAML or JSON file; raise InvalidInput with every problem it has."""
    spec = parse(content(path))
    problems = problems_of(spec)
    if problems:
        raise InvalidInput(problems)
    return spec


def problems_of(spec: ClusterSpec) -> list[str]:
    """Return a sentence for everything that would fail, or contradicts itself, when it is built."""
    kubernetes = spec.kubernetes
    return [
        *(breach.sentence for breach in limits.check(spec)),
        *addon_versions.problems(kubernetes.version, kubernetes.addon_versions),
        *(violation.sentence for violation in timing.check(spec)),
    ]


def content(path: Path) -> Mapping[str, object]:
    """Return the content of a YAML or JSON file; JSON is YAML."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput([f"The ClusterSpec {path} cannot be read: {reason}."]) from None
    try:
        found: object = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        where = " ".join(str(error).split())
        raise InvalidInput([f"The ClusterSpec {path} is not valid YAML: {where}."]) from None
    if not isinstance(found, Mapping):
        raise InvalidInput([f"The ClusterSpec {path} must be a mapping of settings to values."])
    return found


def _raw(settings: Settings, root: Path) -> object:
    path, inline = settings.get(PATH_KEY), settings.get_object(INLINE_KEY)
    if path and inline is not None:
        raise InvalidInput(
            ["stillwater:spec and stillwater:cluster are both set; keep the one you mean."]
        )
    if path:
        return content(root / path)
    if inline is not None:
        return inline
    raise InvalidInput([NO_SPEC])


def _misnamed(spec: ClusterSpec, environment: str) -> list[str]:
    problem = (
        f"environment is {spec.environment!r} but this stack is named for {environment!r}: "
        f"name the stack {spec.environment}-<layer> or change the spec."
    )
    return [] if spec.environment == environment else [problem]
