"""Renders what a run of the layers would do, or has done, as one object for programs.

Outputs of stacks are left out: some are secrets. Values of properties are there with `--diff`
alone, and hidden where a resource is a secret (cli.engine.changes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from cli.engine.changes import Operation, ResourceChange
from cli.engine.progress import LayerResult


def document(
    environment: str, operation: str, results: Iterable[LayerResult], *, diff: bool, **more: object
) -> dict[str, Any]:
    """Return a run as an object; `more` stands before the layers."""
    found = list(results)
    return {
        "environment": environment,
        "operation": operation,
        "changes": sum(len(result.changes) for result in found),
        **more,
        "layers": [_layer(result, diff=diff) for result in found],
    }


def _layer(result: LayerResult, *, diff: bool) -> dict[str, Any]:
    counts = Counter(change.operation for change in result.changes)
    return {
        "layer": result.layer,
        "skipped": result.skipped,
        "seconds": round(result.seconds, 1),
        "counts": {operation.value: counts[operation] for operation in Operation},
        "unchanged": result.same,
        "resources": [_resource(change, diff=diff) for change in result.changes],
    }


def _resource(change: ResourceChange, *, diff: bool) -> dict[str, Any]:
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
