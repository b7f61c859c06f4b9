"""Reads one run of the engine: events as progress, a result, and errors as sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulumi.automation import EngineEvent, OpType

from cli.engine.changes import Changes, ResourceChange
from core.errors import StillwaterError, passed_on

UNTOLD = (
    "The engine said something that this release cannot read, so what it did is not all shown: see "
    "`pulumi stack history`, and whether a newer release can."
)
# What another program says -> what to do about it; the first that is found counts.
REMEDIES = {
    r"another operation \(install/upgrade/rollback\) is in progress|pending-(inst|upgr|roll)": (
        "A run of Helm was ended in the middle and its release is still pending. Find it by `helm "
        "list --all --pending -A`, go back by `helm rollback RELEASE -n NAMESPACE` (one that was "
        "never installed: `helm uninstall`), and run this again."
    ),
    r"cannot re-use a name that is still in use": (
        "A Helm release of that name is there and not in the engine's state. Take it away by `helm "
        "uninstall RELEASE -n NAMESPACE`, or bring it into the state by `pulumi import`."
    ),
    r"pending operations|interrupted while": (
        "An earlier run was ended in the middle. `pulumi refresh` of the stack finds out what it "
        "did; then run this again."
    ),
    r"timed out waiting|context deadline exceeded": (
        "It was not ready in time. See its pods and events (`kubectl -n NAMESPACE get pods,events`)"
        ", mend what keeps them, and run this again: it goes on where it ended."
    ),
    r"AccessDenied|UnauthorizedOperation|not authorized to perform|is forbidden": (
        "The caller lacks a right. Have it granted, and run this again: it goes on where it ended."
    ),
    r"(?i)passphrase": (
        "The state's secrets need their passphrase: set PULUMI_CONFIG_PASSPHRASE or "
        "PULUMI_CONFIG_PASSPHRASE_FILE, and run this again."
    ),
    r"ExpiredToken|InvalidClientTokenId|no valid credential": (
        "The credentials are not valid any more. Log in again, and run this again."
    ),
}
OTHERWISE = "Mend what it names, and run this again: it goes on where it ended."
_CREATED = (OpType.CREATE, OpType.IMPORT)
_REPLACED = (OpType.CREATE_REPLACEMENT, OpType.REPLACE, OpType.IMPORT_REPLACEMENT)


@dataclass(frozen=True, slots=True)
class EngineStep:
    """One thing the engine does to one resource."""

    layer: str
    resource_type: str
    name: str
    operation: str  # same, create, update, delete, replace, read ...
    state: str  # started, done, failed


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """What one layer's run did; providers and components count as resources, as in `pulumi up`."""

    layer: str
    seconds: float
    created: int = 0
    updated: int = 0
    replaced: int = 0
    deleted: int = 0
    same: int = 0
    outputs: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[ResourceChange, ...] = ()
    # Why a layer was not run, as a sentence.
    skipped: str | None = None
    # What the program or a provider warned of.
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        return self.created + self.updated + self.replaced + self.deleted


OnStep = Callable[[EngineStep], object]


class LayerFailed(StillwaterError):
    """A layer's run ended with errors; each is a sentence that names its resource."""

    def __init__(self, stack: str, problems: Sequence[str]) -> None:
        self.stack = stack
        self.problems = tuple(problems)
        super().__init__(f"Stack {stack} failed:\n" + "\n".join(f"- {p}" for p in problems))


class EngineWatch:
    """Follows one run's events: progress for the user, counts and errors for the result."""

    def __init__(self, layer: str, on_step: OnStep | None) -> None:
        self.layer = layer
        self.on_step = on_step
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.counts: dict[str, int] | None = None
        self.changes = Changes()

    def __call__(self, event: EngineEvent) -> None:
        if event.resource_pre_event is not None:
            self.changes.add(event.resource_pre_event.metadata)
            self._step(event.resource_pre_event.metadata, "started")
        elif event.res_outputs_event is not None:
            self._step(event.res_outputs_event.metadata, "done")
        elif event.res_op_failed_event is not None:
            self._step(event.res_op_failed_event.metadata, "failed")
        elif event.summary_event is not None:
            changes = event.summary_event.resource_changes or {}
            self.counts = {str(getattr(k, "value", k)): int(v) for k, v in changes.items()}
        elif event.diagnostic_event is not None:
            said = event.diagnostic_event
            kept = {"error": self.problems, "warning": self.warnings}.get(said.severity)
            if kept is not None:
                _keep(kept, said.urn, said.message)

    def _step(self, metadata: Any, state: str) -> None:
        if self.on_step is not None:
            operation = str(getattr(metadata.op, "value", metadata.op))
            name = metadata.urn.rsplit("::", 1)[-1]
            self.on_step(EngineStep(self.layer, metadata.type, name, operation, state))

    def result(self, seconds: float, outputs: Mapping[str, Any]) -> LayerResult:
        def count(*operations: OpType) -> int:
            return sum((self.counts or {}).get(operation.value, 0) for operation in operations)

        return LayerResult(
            layer=self.layer,
            seconds=seconds,
            created=count(*_CREATED),
            updated=count(OpType.UPDATE),
            replaced=count(*_REPLACED),
            deleted=count(OpType.DELETE),
            same=count(OpType.SAME),
            outputs=outputs,
            changes=self.changes.all(),
            # Its reader ends at the first event that it does not know.
            warnings=(*self.warnings, *([] if self.counts is not None else [UNTOLD])),
        )


def _keep(kept: list[str], urn: str | None, message: str) -> None:
    """Add what the engine says as a sentence that names its resource, once."""
    text = message.replace("<{%reset%}>", "").strip()
    # The engine's summary of the errors that are already in the list.
    if text in {"update failed", "preview failed", "update canceled", "destroy failed"}:
        return
    name = urn.rsplit("::", 1)[-1] if urn and "pulumi:pulumi:Stack" not in urn else None
    is_fallen = text.startswith("Traceback")
    # What our own program refuses is a sentence of ours already.
    if name is None and not is_fallen:
        sentence = text
    else:
        last = text.splitlines()[-1] if is_fallen else text
        sentence = with_remedy(f"{name or 'The program'} failed", last)
    if sentence not in kept:
        kept.append(sentence)


def with_remedy(what: str, theirs: str) -> str:
    """Return what failed, what to do about what another program says of it, and its words."""
    known = (todo for pattern, todo in REMEDIES.items() if re.search(pattern, theirs))
    return passed_on(f"{what}. {next(known, OTHERWISE)}", theirs)
