"""Reads the events of a run of the engine: progress, changes by resource, errors as sentences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from pulumi.automation import EngineEvent, OpType

from core.ground.errors import StillwaterError, passed_on
from core.ground.fields import part

# What the engine's own bookkeeping is made of; nobody would call it a resource.
_BOOKKEEPING = re.compile(r"^pulumi:(pulumi:Stack|providers:)|^stillwater:")
_COMPONENT = "stillwater:infra:"
# The engine's word for a value that is a secret.
HIDDEN = "[secret]"
UNKNOWN = "not known yet"
# The engine's own placeholder for what a provider says only once it has made the resource.
_UNKNOWN_SENTINEL = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# Kinds whose every value is somebody's secret, whatever the program marked.
_SECRET_TYPES = ("kubernetes:core/v1:Secret", "aws:secretsmanager/secretVersion:")
_WORDS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
_MISSING = object()
# Of a value; policies and user data are longer than a screen.
_LONGEST = 160
UNTOLD = (
    "The engine said something that this release cannot read, so what it did is not all shown: see "
    "`pulumi stack history`, and whether a newer release can."
)
OTHERWISE = "Fix the cause, and run this again: it goes on where it ended."
_CREATED = (OpType.CREATE, OpType.IMPORT)
_REPLACED = (OpType.CREATE_REPLACEMENT, OpType.REPLACE, OpType.IMPORT_REPLACEMENT)


class Operation(StrEnum):
    """What happens to a resource, the strongest last."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REPLACE = "replace"


_OPERATIONS: Mapping[OpType, Operation] = {
    OpType.CREATE: Operation.CREATE,
    OpType.IMPORT: Operation.CREATE,
    OpType.UPDATE: Operation.UPDATE,
    OpType.DELETE: Operation.DELETE,
    OpType.REPLACE: Operation.REPLACE,
    OpType.CREATE_REPLACEMENT: Operation.REPLACE,
    OpType.DELETE_REPLACED: Operation.REPLACE,
    OpType.IMPORT_REPLACEMENT: Operation.REPLACE,
}
_STRENGTH = tuple(Operation)


@dataclass(frozen=True, slots=True)
class Difference:
    """One property that differs: its path, and both values as words."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """What happens to one resource."""

    urn: str
    operation: Operation
    protected: bool = False
    because: tuple[str, ...] = ()  # properties that force a replacement
    differences: tuple[Difference, ...] = ()
    named: str | None = None  # its own name in AWS or Kubernetes

    @property
    def kind(self) -> str:
        """Return what it is, in words: `Auto Scaling group`, `KafkaNodePool`."""
        return kind_of(self.urn.split("::")[2].rpartition("$")[2])

    @property
    def name(self) -> str:
        return self.named or self.urn.rpartition("::")[2]

    @property
    def part(self) -> str:
        """Return the part of the system it belongs to: the outermost component, in words."""
        components = self.urn.split("::")[2].split("$")
        outermost = next((c for c in components if c.startswith(_COMPONENT)), "")
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", outermost.removeprefix(_COMPONENT))
        return " ".join([*words[:1], *(w.lower() for w in words[1:])]) or "Other"


def kind_of(resource_type: str) -> str:
    """Say in words what a type is; a Kubernetes kind is its own word."""
    if resource_type in _WORDS["kinds"]:
        return _WORDS["kinds"][resource_type]
    package, _, rest = resource_type.partition(":")
    own = rest.rpartition(":")[2]
    if package == "kubernetes":
        return own
    service = rest.partition("/")[0]
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", own)]
    said = " ".join(_WORDS["acronyms"].get(word, word) for word in words)
    before = "" if service in words else _WORDS["services"].get(service, service)
    return f"{before} {said}".strip()


class Changes:
    """Collects what a run's events say; a resource that is replaced has several."""

    def __init__(self) -> None:
        self._found: dict[str, ResourceChange] = {}

    def add(self, metadata: Any) -> None:
        """Take in one step of the engine; those that change nothing are passed over."""
        operation = _OPERATIONS.get(metadata.op)
        if operation is None or _BOOKKEEPING.match(metadata.type):
            return
        change = _change(metadata, operation)
        known = self._found.get(metadata.urn)
        if known is not None:
            change = _stronger_change(known, change)
        self._found[metadata.urn] = change

    def all(self) -> tuple[ResourceChange, ...]:
        return tuple(self._found.values())


def _change(metadata: Any, operation: Operation) -> ResourceChange:
    old, new = getattr(metadata, "old", None), getattr(metadata, "new", None)
    return ResourceChange(
        urn=metadata.urn,
        operation=operation,
        protected=bool(getattr(old or new, "protect", False)),
        because=tuple(getattr(metadata, "keys", None) or ()),
        differences=tuple(_differences(metadata, old, new)),
        named=_live_name(new) or _live_name(old),
    )


def _stronger_change(known: ResourceChange, change: ResourceChange) -> ResourceChange:
    strongest = max(known.operation, change.operation, key=_STRENGTH.index)
    return ResourceChange(
        urn=known.urn,
        operation=strongest,
        protected=known.protected or change.protected,
        because=known.because or change.because,
        differences=known.differences or change.differences,
        named=known.named or change.named,
    )


def _live_name(state: Any) -> str | None:
    """Return the name that the resource bears in AWS or Kubernetes, if the program gives it one."""
    inputs = getattr(state, "inputs", None) or {}
    metadata, tags = part(inputs.get("metadata")), part(inputs.get("tags"))
    for value in (metadata.get("name"), inputs.get("name"), tags.get("Name")):
        if isinstance(value, str) and value and value not in {HIDDEN, _UNKNOWN_SENTINEL}:
            return value
    return None


def _differences(metadata: Any, old: Any, new: Any) -> Iterator[Difference]:
    """Yield what differs by path; values of secrets stay hidden."""
    secret = metadata.type.startswith(_SECRET_TYPES)
    before = getattr(old, "inputs", None) or {}
    after = getattr(new, "inputs", None) or {}
    detailed = getattr(metadata, "detailed_diff", None) or {}
    for path in sorted(detailed or getattr(metadata, "diffs", None) or ()):
        if secret:
            yield Difference(path, HIDDEN, HIDDEN)
        else:
            yield Difference(path, _words(_value_at(before, path)), _words(_value_at(after, path)))


def _value_at(tree: Any, path: str) -> Any:
    """Return the value at a property path such as `tags.Name`, `ports[0].port`, `data["a.b"]`."""
    for match in re.finditer(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)', path):
        quoted, index, plain = match.groups()
        if index is not None:
            inside = isinstance(tree, list) and int(index) < len(tree)
            tree = tree[int(index)] if inside else _MISSING
        else:
            key = plain if quoted is None else quoted.replace('\\"', '"')
            tree = tree.get(key, _MISSING) if isinstance(tree, Mapping) else _MISSING
    return tree


def _words(value: Any) -> str:
    if value is _MISSING or value is None:
        return "nothing"
    if value == _UNKNOWN_SENTINEL:
        return UNKNOWN
    text = str(value).replace("\n", " ")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


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
        sentence = failure_sentence(f"{name or 'The program'} failed", last)
    if sentence not in kept:
        kept.append(sentence)


def failure_sentence(what: str, theirs: str) -> str:
    """Return what failed, what to do about what another program says of it, and its words."""
    known = (todo for pattern, todo in _WORDS["remedies"].items() if re.search(pattern, theirs))
    return passed_on(f"{what}. {next(known, OTHERWISE)}", theirs)
