"""`stillwater check SPEC`: what contradicts itself or AWS's limits, in words or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from cli import adopt
from cli.stack_settings import spec_file
from cli.terminal import counted, show_findings
from core.checks.finding import CLEAR, FOUND, Finding, exit_code
from core.checks.table import description_findings
from core.cluster import adoption, changes, rights
from core.ground.errors import InvalidInput
from core.ground.naming import TWIN_ENVIRONMENT
from infra.spec import changes_in, doubts_in, read, standing_spec


@dataclass(frozen=True, slots=True)
class CheckedDescription:
    """A description, what is wrong with it, what is doubtful, and who may do what in its Kafka.

    `accepted` are findings that the description calls meant.
    """

    spec: str
    cluster: str | None = None
    problems: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()
    findings: Sequence[Finding] = ()
    accepted: Sequence[Finding] = ()

    def exit_code(self, *, strict: bool) -> int:
        """0: nothing that hurts; 1: something does, or is doubtful where `strict`."""
        if self.problems or (strict and (self.doubts or self.findings)):
            return FOUND
        return exit_code(self.findings)


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
    found, accepted = description_findings(parsed)
    return CheckedDescription(
        str(path),
        parsed.prefix,
        doubts=tuple(doubts),
        rights=tuple(rights.sentences(parsed)),
        findings=found,
        accepted=accepted,
    )


def show(
    checked: CheckedDescription, console: Console, complaints: Console, *, strict: bool
) -> None:
    """Say who may do what, what is doubtful, and that it holds, else raise InvalidInput."""
    doubtful = [*checked.doubts, *(each.line for each in checked.findings)] if strict else []
    if checked.problems or doubtful:
        raise InvalidInput(checked.problems or doubtful)
    if checked.rights:
        console.print("In Kafka:")
    for sentence in checked.rights:
        console.print(f"  {sentence}")
    for sentence in checked.doubts:
        complaints.print(sentence, style="yellow")
    show_findings(checked.findings, complaints)
    for each in checked.accepted:
        complaints.print(f"accepted: {each.line}", soft_wrap=True)
    hurts = exit_code(checked.findings)
    said = counted(checked.findings) if hurts else "is consistent"
    console.print(f"{checked.spec}: {checked.cluster}{': ' if hurts else ' '}{said}.")


def as_json(checked: CheckedDescription) -> str:
    """Return the same as one object."""
    said = {
        "spec": checked.spec,
        "cluster": checked.cluster,
        "consistent": not checked.problems and exit_code(checked.findings) == CLEAR,
        "problems": checked.problems,
        "doubts": checked.doubts,
        "rights": checked.rights,
        "findings": [asdict(each) for each in checked.findings],
        "accepted": [asdict(each) for each in checked.accepted],
    }
    return json.dumps(said, indent=2)
