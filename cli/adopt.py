"""Says what the next level of adoption adds to clusters that exist; reads descriptions alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from cli.terminal import say
from core.cluster import adoption
from core.cluster.adoption import Adoption
from core.cluster.adoption_plan import next_level
from core.ground.errors import InvalidInput
from infra import spec

MADE_YET = (
    "Set the level, fill in what is missing, and `pulumi up` of a stack <name>-operations makes it."
)
STYLES = {"+": "green", "~": "yellow"}


def read(paths: list[Path]) -> dict[str, Adoption]:
    """Return descriptions by their files; raise InvalidInput with every problem they have."""
    described = {}
    for path in paths:
        found = spec.load_yaml(path)
        described[str(path)] = adoption.parse(found.content, found.locate)
    if problems := adoption.shared_parts(described):
        raise InvalidInput(problems)
    return described


def description(path: Path) -> Adoption | None:
    """Return what a file describes of a cluster that exists; None where it is something else."""
    found = spec.load_yaml(path)
    content = found.content
    if not isinstance(content, dict) or "adopt" not in content or "pools" in content:
        return None
    return adoption.parse(content, found.locate)


def show_all(described: Mapping[str, Adoption], console: Console) -> None:
    """Print the plan of each description."""
    for file, each in described.items():
        show(file, each, console)
    if any(next_level(each) for each in described.values()):
        say(console, MADE_YET)


def as_json(described: Mapping[str, Adoption]) -> Mapping[str, object]:
    """Return the plan of each description as one object; `next` is null at the last level."""
    return {"descriptions": [_as_json(file, each) for file, each in described.items()]}


def _as_json(file: str, adopted: Adoption) -> Mapping[str, object]:
    found = next_level(adopted)
    following = found and {
        "level": found.following,
        "touches": found.words,
        "leaving": found.leaving,
        "changes": [
            {"mark": each.mark, "what": each.what, "detail": each.detail} for each in found.changes
        ],
        "missing": list(found.missing),
    }
    return {"file": file, "cluster": adopted.eks_cluster, "level": adopted.level, "next": following}


def show(file: str, adopted: Adoption, console: Console) -> None:
    """Print one description's plan."""
    found = next_level(adopted)
    if found is None:
        say(console, f"{file}: {adopted.eks_cluster} is at {adopted.level}, the last level.")
        return
    say(
        console,
        f"{file}: {adopted.eks_cluster}, from {found.now} to {found.following}. {found.words} "
        f"To leave it again, {found.leaving}.",
    )
    for line in found.diff():
        say(console, line, STYLES.get(line[:1]))
    for each in (*found.missing, *adoption.doubts(adopted)):
        say(console, f"First: {each}", "yellow")
