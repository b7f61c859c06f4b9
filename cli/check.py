"""`stillwater check SPEC`: what contradicts itself or AWS's limits, in words or as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from cli import adopt
from cli.stack_settings import spec_file
from core.cluster import adoption, changes, rights
from core.errors import InvalidInput
from core.naming import TWIN_ENVIRONMENT
from infra.spec import changes_in, doubts_in, read, standing_spec


@dataclass(frozen=True, slots=True)
class CheckedDescription:
    """A description, what is wrong with it, what is doubtful, and who may do what in its Kafka."""

    spec: str
    cluster: str | None = None
    problems: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()

    def wrong(self, *, strict: bool) -> bool:
        return bool(self.problems or (strict and self.doubts))


def examine(named: Path, against: Path | None = None) -> CheckedDescription:
    """Check a description, by its file or its environment; beside one a cluster runs by, too."""
    try:
        path = spec_file(named)
        if (adopted := adopt.description(path)) is not None:
            doubted = tuple(adoption.doubts(adopted))
            return CheckedDescription(str(path), adopted.eks_cluster, doubts=doubted)
        parsed = read(path)
        before = None if against is None else standing_spec(spec_file(against))
        if before is not None:
            changes_in(path, parsed, before)
    except InvalidInput as error:
        return CheckedDescription(str(named), problems=error.problems)
    doubts = doubts_in(path, parsed)
    doubts += [] if before is None else changes.felt_changes(before, parsed)
    if parsed.environment == TWIN_ENVIRONMENT:
        doubts.append(
            f"environment is {TWIN_ENVIRONMENT!r}, which `up`, `destroy` and the others take for "
            f"the twin on this machine; choose another, such as prod.",
        )
    return CheckedDescription(
        str(path), parsed.prefix, doubts=tuple(doubts), rights=tuple(rights.sentences(parsed))
    )


def show(
    checked: CheckedDescription, console: Console, complaints: Console, *, strict: bool
) -> None:
    """Say who may do what, what is doubtful, and that it holds, else raise InvalidInput."""
    if checked.wrong(strict=strict):
        raise InvalidInput(checked.problems or checked.doubts)
    if checked.rights:
        console.print("In Kafka:")
    for sentence in checked.rights:
        console.print(f"  {sentence}")
    for sentence in checked.doubts:
        complaints.print(sentence, style="yellow")
    console.print(f"{checked.spec}: {checked.cluster} is consistent.")


def as_json(checked: CheckedDescription) -> str:
    """Return the same as one object."""
    said = {
        "spec": checked.spec,
        "cluster": checked.cluster,
        "consistent": not checked.problems,
        "problems": checked.problems,
        "doubts": checked.doubts,
        "rights": checked.rights,
    }
    return json.dumps(said, indent=2)
