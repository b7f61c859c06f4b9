"""The ClusterSpec that everything here is built from: found, read, and refused with every reason.

The stacks and the command line both start here, so that `pulumi up` and `stillwater check` refuse
the same specs: the stacks know no command line, and core no YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from core import timing
from core.checks import contradictions
from core.checks.described import description_findings, stops_up
from core.checks.finding import Finding
from core.cluster import ClusterSpec, addresses, adoption, changes, limits, parse
from core.cluster.adoption import Adoption
from core.cluster.reading import shortened
from core.ground.errors import InvalidInput
from infra import spec_file
from infra.eks import addon_versions
from infra.spec_file import SpecFile

ROOT = Path(__file__).resolve().parents[1]
PATH_KEY, INLINE_KEY = "spec", "cluster"
# The one key of a description of a cluster that exists.
ADOPT = "adopt"
# What a file is that has one of these keys and no pools, and who reads it.
OTHER_FILES = {
    ADOPT: "this describes a cluster that exists, which `stillwater adopt plan FILE` checks",
    "apiVersion": "this is a Kubernetes resource and no ClusterSpec; begin one with `stillwater "
    "init`",
}
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
    path = settings.get(PATH_KEY)
    if path and settings.get_object(INLINE_KEY) is None:
        return _valid_spec(spec_file.load(root / path), environment)
    spec = parse_spec(settings, root)
    problems = [*_naming_problems(spec, environment), *problems_of(spec)]
    if problems:
        raise InvalidInput(problems)
    return spec


def adopted_description(settings: Settings, root: Path = ROOT) -> Adoption | None:
    """Return the description of a cluster that exists; None: the stack's is a ClusterSpec."""
    path, inline = settings.get(PATH_KEY), settings.get_object(INLINE_KEY)
    if inline is not None:
        raw = inline
        return adoption.parse(raw) if isinstance(raw, Mapping) and ADOPT in raw else None
    if not path:
        return None
    found = spec_file.load(root / path)
    return adoption.parse(found.content, found.locate) if ADOPT in found.content else None


def parse_spec(settings: Settings, root: Path = ROOT) -> ClusterSpec:
    """Return the spec of a stack that may be built already, whatever is to be said of it today."""
    return parse(_raw(settings, root))


def read(path: Path) -> ClusterSpec:
    """Return the spec in a YAML or JSON file; raise InvalidInput with every problem it has.

    Each names file, line and column.
    """
    found = spec_file.load(path)
    for key, remedy in OTHER_FILES.items():
        if key in found.content and "pools" not in found.content:
            raise InvalidInput([f"{found.locate((key,), '')}{remedy}."])
    return _valid_spec(found)


def problems_of(spec: ClusterSpec) -> list[str]:
    """Return a sentence for everything that would fail, or contradicts itself, when it is built."""
    kubernetes = spec.kubernetes
    found = [
        *contradictions.problems(spec),
        *limits.problems(spec),
        *addon_versions.problems(kubernetes.version, kubernetes.addon_versions),
        *(violation.sentence for violation in timing.check(spec)),
        *(_refusal(each) for each in description_findings(spec)[0] if stops_up(each)),
    ]
    return [*map(shortened, found)]


def _refusal(found: Finding) -> str:
    return f"{found.line.removesuffix('.')}, or name {found.check} in `accept`."


def doubts_of(spec: ClusterSpec) -> list[str]:
    """Return a sentence for what nobody can tell here, or a new account is too small for."""
    found = [
        *limits.unchecked_types(spec),
        *limits.tight(spec),
        *contradictions.doubts(spec),
        *addon_versions.doubts(spec.kubernetes.version, spec.kubernetes.addon_versions),
        *addresses.beyond_what_accounts_begin_with(spec),
    ]
    return [*map(shortened, found)]


def doubts_in(path: Path, spec: ClusterSpec) -> list[str]:
    """Return the same behind file, line and column of what they are of."""
    found = spec_file.load(path)
    return [found.placed_sentence(sentence) for sentence in doubts_of(spec)]


def standing_spec(path: Path) -> ClusterSpec:
    """Return the spec in a file that a cluster runs by, whatever is to be said of it today."""
    found = spec_file.load(path)
    return parse(found.content, found.locate)


def changes_in(path: Path, spec: ClusterSpec, before: ClusterSpec) -> None:
    """Raise InvalidInput with what a cluster that runs by `before` could not follow, and where."""
    if problems := changes.refused_changes(before, spec):
        found = spec_file.load(path)
        raise InvalidInput(found.placed_sentence(problem) for problem in problems)


def content(path: Path) -> Mapping[str, object]:
    """Return the content of a YAML or JSON file."""
    return spec_file.load(path).content


def _valid_spec(found: SpecFile, environment: str | None = None) -> ClusterSpec:
    spec = parse(found.content, found.locate)
    misnamed = [] if environment is None else _naming_problems(spec, environment)
    problems = [*misnamed, *problems_of(spec)]
    if problems:
        raise InvalidInput(found.placed_sentence(problem) for problem in problems)
    return spec


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


def _naming_problems(spec: ClusterSpec, environment: str) -> list[str]:
    problem = (
        f"environment is {spec.environment!r} but this stack is named for {environment!r}: "
        f"name the stack {spec.environment}-<layer> or change the spec."
    )
    return [] if spec.environment == environment else [problem]
