"""Errors in loading or applying metadata (KIP-859): a verdict per node, and a veto on restarts.

A node that could not take in a record of the metadata log runs on with a state in memory that is
not the cluster's. Three counters tell, and a restart sets them back to 0: so they are written to
the ledger before one, and while they are not 0 nothing is restarted unless somebody has seen them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from core.health.kafka_metrics import Metric, NodeMetrics
from core.health.verdict import HealthVerdict, degraded, healthy, not_known


@dataclass(frozen=True, slots=True)
class ErrorCounts:
    """The three shipped counters of one node; None is one that it did not tell."""

    load: int | None = None
    apply: int | None = None
    controller: int | None = None

    @property
    def any(self) -> bool:
        return any((self.load, self.apply, self.controller))

    def beyond(self, known: ErrorCounts) -> bool:
        """Say whether any counter is above what is already known of it."""
        pairs = (
            (self.load, known.load),
            (self.apply, known.apply),
            (self.controller, known.controller),
        )
        return any((now or 0) > (before or 0) for now, before in pairs)


def counts_of(metrics: NodeMetrics) -> ErrorCounts:
    return ErrorCounts(
        load=metrics.count(Metric.METADATA_LOAD_ERRORS),
        apply=metrics.count(Metric.METADATA_APPLY_ERRORS),
        controller=metrics.count(Metric.METADATA_ERRORS),
    )


@dataclass(frozen=True, slots=True)
class ErrorSnapshot:
    """The counters of every node at one moment, as the ledger keeps them before a restart.

    `silent` says of each node that was asked and did not tell, why, as a sentence.
    """

    taken_at: float  # epoch seconds
    nodes: Mapping[int, ErrorCounts] = field(default_factory=dict)
    silent: Mapping[int, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict, with text for keys as JSON wants them."""
        return {
            "taken_at": self.taken_at,
            "nodes": {str(node_id): asdict(counts) for node_id, counts in self.nodes.items()},
            "silent": {str(node_id): why for node_id, why in self.silent.items()},
        }


def from_dict(stored: Mapping[str, Any]) -> ErrorSnapshot:
    """Read what `to_dict` made, through JSON or not; a counter this version lacks is left out."""
    known = ErrorCounts.__dataclass_fields__
    return ErrorSnapshot(
        taken_at=float(stored["taken_at"]),
        nodes={
            int(node_id): ErrorCounts(
                **{k: None if v is None else int(v) for k, v in counts.items() if k in known}
            )
            for node_id, counts in stored.get("nodes", {}).items()
        },
        silent={int(node_id): str(why) for node_id, why in stored.get("silent", {}).items()},
    )


def snapshot(
    taken_at: float, scrapes: Mapping[int, NodeMetrics], silent: Mapping[int, str] | None = None
) -> ErrorSnapshot:
    """Return the snapshot of one round of scrapes; a node without any counter is silent."""
    counts = {node_id: counts_of(metrics) for node_id, metrics in scrapes.items()}
    untold = {
        node_id: f"Node {node_id} exports none of the metadata error counters; let its metrics' "
        f"allow list name them."
        for node_id, found in counts.items()
        if found == ErrorCounts()
    }
    return ErrorSnapshot(
        taken_at=taken_at,
        nodes={node_id: found for node_id, found in counts.items() if node_id not in untold},
        silent={**untold, **(silent or {})},
    )


def vetoes(now: ErrorSnapshot, acknowledged: ErrorSnapshot | None = None) -> tuple[str, ...]:
    """Return a sentence for every node whose errors nobody has acknowledged; none: go on.

    What was acknowledged is acknowledged as far as it went: one error more vetoes again. A node
    that is silent vetoes nothing here, because the one to be replaced may be the one that died.
    """
    seen = acknowledged.nodes if acknowledged else {}
    return tuple(
        f"Node {node_id} {_count_text(counts)}, and a restart would erase that: keep its log, find "
        f"the cause (runbook {_runbook(counts)}), then acknowledge it."
        for node_id, counts in sorted(now.nodes.items())
        if counts.beyond(seen.get(node_id, ErrorCounts()))
    )


def verdict(node_id: int, role: str, metrics: NodeMetrics | None) -> HealthVerdict:
    """Say how a node does with the metadata log; `role` is broker, controller or combined."""
    if metrics is None:
        return not_known(
            f"Node {node_id} did not tell its metrics, so its metadata errors are not known.",
            (f"metrics of node {node_id}",),
        )
    counts = counts_of(metrics)
    if counts.any:
        return degraded(f"Node {node_id} {_count_text(counts)}.")
    missing = tuple(name for name, count in _expected_counts(role, counts) if count is None)
    if missing:
        return not_known(
            f"Node {node_id} does not export {', '.join(missing)}; let its metrics' allow list "
            f"name them.",
            missing,
        )
    return healthy(f"Node {node_id} has had no metadata errors.")


def _expected_counts(role: str, counts: ErrorCounts) -> list[tuple[str, int | None]]:
    broker = [("metadata-load-error-count", counts.load)]
    broker.append(("metadata-apply-error-count", counts.apply))
    controller = [("MetadataErrorCount", counts.controller)]
    return {"broker": broker, "controller": controller}.get(role, broker + controller)


def _count_text(counts: ErrorCounts) -> str:
    parts = []
    if counts.load:
        parts.append(f"failed {_times(counts.load)} to load metadata")
    if counts.apply:
        parts.append(f"failed {_times(counts.apply)} to apply metadata")
    if counts.controller:
        parts.append(f"counts {counts.controller} metadata errors as a controller")
    return " and ".join(parts)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _runbook(counts: ErrorCounts) -> str:
    if counts.controller:
        return "KafkaControllerMetadataError"
    return "KafkaMetadataLoadError" if counts.load else "KafkaMetadataApplyError"
