"""Shows a run of the layers: what it would change, for people and as JSON; asks before it is done.

The JSON leaves outputs of stacks out: some are secrets. Values of properties are there with
`--diff` alone, and hidden where a resource is a secret (cli.engine.events).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from cli.engine.events import LayerResult, Operation, ResourceChange
from cli.terminal import say, somebody_answers
from core.ground.errors import StillwaterError

_SIGNS = {
    Operation.CREATE: ("+", "green"),
    Operation.UPDATE: ("~", "yellow"),
    Operation.REPLACE: ("!", "red"),
    Operation.DELETE: ("-", "red"),
}
_DONE = {
    Operation.CREATE: "to create",
    Operation.UPDATE: "to change",
    Operation.REPLACE: "to replace",
    Operation.DELETE: "to delete",
}


def show(results: Iterable[LayerResult], console: Console, *, diff: bool = False) -> None:
    """Print every layer's changes by the part they belong to."""
    for result in results:
        for line, style in lines(result, diff=diff):
            say(console, line, style)


def lines(result: LayerResult, *, diff: bool = False) -> list[tuple[str, str | None]]:
    """Return one layer's changes as lines, each with its style."""
    if result.skipped:
        return [(f"{result.layer}: {result.skipped}", None)]
    found: list[tuple[str, str | None]] = [
        (f"{result.layer}: {change_counts(result.changes)}", "bold")
    ]
    for part in sorted({change.part for change in result.changes}):
        found.append((f"  {part}", None))
        of_part = [change for change in result.changes if change.part == part]
        for change in sorted(of_part, key=lambda c: (_order(c), c.kind, c.name)):
            found += _change_lines(change, diff=diff)
    return found


def change_counts(changes: Sequence[ResourceChange]) -> str:
    """Return `3 to create, 1 to replace`."""
    counts = Counter(change.operation for change in changes)
    return ", ".join(f"{counts[o]} {_DONE[o]}" for o in _SIGNS if counts[o]) or "nothing to change"


def _order(change: ResourceChange) -> int:
    """Sort what takes something away before what adds."""
    order = (Operation.DELETE, Operation.REPLACE, Operation.UPDATE, Operation.CREATE)
    return order.index(change.operation)


def _change_lines(change: ResourceChange, *, diff: bool) -> list[tuple[str, str | None]]:
    sign, style = _SIGNS[change.operation]
    notes = []
    if change.operation is Operation.REPLACE:
        cause = f" because of {', '.join(change.because)}" if change.because else ""
        notes.append(f"made anew{cause}")
    elif change.operation is Operation.UPDATE and change.differences and not diff:
        notes.append(", ".join(difference.path for difference in change.differences))
    if change.protected and change.operation in {Operation.REPLACE, Operation.DELETE}:
        notes.append("protected: the engine refuses")
    said = f"    {sign} {change.kind} {change.name}" + (f": {'; '.join(notes)}" if notes else "")
    found: list[tuple[str, str | None]] = [(said, style)]
    if diff:
        found += [(f"        {d.path}: {d.before} -> {d.after}", None) for d in change.differences]
    return found


def ask_for_agreement(question: str, answer: str, console: Console, *, yes: bool) -> None:
    """Ask, and raise unless the answer is given; `yes` answers for a program.

    Raises StillwaterError where nobody can be asked, or where the answer is another.
    """
    if yes:
        return
    if not somebody_answers(console):
        raise StillwaterError(
            f"Nothing was changed: {question} Nobody can answer here; say --yes to go on."
        )
    try:
        given = console.input(f"{question} ({answer}) ", markup=False)
    except EOFError:
        raise StillwaterError("Nothing was changed: there was no answer.") from None
    if given.strip() != answer:
        raise StillwaterError(f"Nothing was changed: the answer was not {answer!r}.")


def run_document(
    environment: str, operation: str, results: Iterable[LayerResult], *, diff: bool, **more: object
) -> dict[str, Any]:
    """Return a run as an object; `more` stands before the layers."""
    found = list(results)
    return {
        "environment": environment,
        "operation": operation,
        "changes": sum(len(result.changes) for result in found),
        **more,
        "layers": [_layer_document(result, diff=diff) for result in found],
    }


def _layer_document(result: LayerResult, *, diff: bool) -> dict[str, Any]:
    counts = Counter(change.operation for change in result.changes)
    return {
        "layer": result.layer,
        "skipped": result.skipped,
        "seconds": round(result.seconds, 1),
        "counts": {operation.value: counts[operation] for operation in Operation},
        "unchanged": result.same,
        "resources": [_resource_document(change, diff=diff) for change in result.changes],
    }


def _resource_document(change: ResourceChange, *, diff: bool) -> dict[str, Any]:
    return {
        "operation": change.operation.value,
        "part": change.part,
        "kind": change.kind,
        "name": change.name,
        "urn": change.urn,
        "protected": change.protected,
        "because": list(change.because),
        "differences": [
            {"path": each.path, "before": each.before, "after": each.after}
            if diff
            else {"path": each.path}
            for each in change.differences
        ],
    }
