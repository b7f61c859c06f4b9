"""Turns what the twin's parts wrote down into the story of one rotation: moments, lanes, figures.

Pure: records in, dataclasses out. local.demo.rotation collects the records, local.demo.timeline
draws the story.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.ground import naming
from core.incidents.record import Transition

Record = Mapping[str, Any]

# What each journal event means to a reader, and why it happens. Fields come from the event itself.
SENTENCES: dict[str, str] = {
    "terminate_called": "AWS asks the Auto Scaling group to terminate {instance}",
    "lifecycle_action": "Hook `{hook}` holds {instance}: EventBridge announces it",
    "instance_launched": "{group} launches {instance} in {zone}: replacement first",
    "instance_running": "{instance} runs",
    "hook_completed": "Hook `{hook}` is completed with {result}",
    "hook_timed_out": "Hook `{hook}` of {instance} ran out of time: {result}",
    "launch_failed": "{group} cannot launch: {reason}",
    "instance_terminated": "{instance} is terminated; its group let go of it",
    "instance_retained": "{instance} is retained: the hook was abandoned",
    "node_ready": "Node {node} is Ready",
    "node_cordoned": "Node {node} is cordoned by the node termination handler",
    "node_gone": "Node {node} is gone from Kubernetes",
    "pod_stopping": "{pod} is evicted: SIGTERM, controlled shutdown begins",
    "pod_gone": "{pod} has stopped and is off {node}",
    "pod_started": "{pod} starts on {node}",
    "pod_ready": "{pod} is Ready on {node}",
    "target_registered": "{target} is registered in {group}",
    "target_healthy": "{group} calls {target} healthy",
    "target_draining": "{group} drains {target}",
    "volume_attached": "Volume {volume_id} of {claim} is attached to {instance_id}",
    "volume_detached": "Volume {volume_id} of {claim} is detached from {instance_id}",
}

DECISIONS = "stillwater"
# What a reader calls the part that wrote a record.
SOURCES = {"moto": "aws"}


@dataclass(frozen=True)
class Moment:
    """One thing that happened, `at_s` seconds after the terminate call."""

    at_s: float
    source: str
    text: str


@dataclass(frozen=True)
class Span:
    """A stretch of time on one lane of the timeline."""

    lane: str
    start_s: float
    end_s: float
    label: str


@dataclass(frozen=True)
class Percentiles:
    p50: float
    p99: float
    max: float


@dataclass(frozen=True)
class Story:
    """Everything the timeline page shows."""

    moments: tuple[Moment, ...]
    spans: tuple[Span, ...]
    latency: tuple[tuple[float, float], ...]  # (at_s, milliseconds)
    isr: tuple[tuple[float, int], ...]  # (at_s, smallest ISR)


def sentence(record: Record) -> str | None:
    """Say what a journal record means, or None for records that are no part of the story."""
    template = SENTENCES.get(str(record.get("event")))
    if template is None:
        return None
    # A field a record lacks reads as a question mark, not as a crash of the demo.
    return template.format_map(defaultdict(lambda: "?", record))


def journal_moments(records: Iterable[Record], since: float) -> list[Moment]:
    """Return the journal's part of the story from `since` (epoch seconds) on."""
    moments = []
    for record in records:
        text = sentence(record)
        if text is not None and record["at"] >= since:
            source = str(record["source"])
            moments.append(Moment(record["at"] - since, SOURCES.get(source, source), text))
    return moments


def decision_moments(transitions: Iterable[Transition], since: float) -> list[Moment]:
    """Return the incident's transitions, each with the reason the toolkit gave."""
    return [Moment(t.at - since, DECISIONS, f"{t.state}: {t.reason}") for t in transitions]


def state_spans(transitions: Sequence[Transition], since: float, end: float) -> list[Span]:
    """Return the incident's states as spans, the last one closed at `end`."""
    spans = []
    for index, step in enumerate(transitions):
        until = transitions[index + 1].at if index + 1 < len(transitions) else end
        spans.append(Span("incident", step.at - since, until - since, str(step.state)))
    return spans


def first(records: Iterable[Record], event: str, **fields: Any) -> Record | None:
    """Return the first record of an event whose fields match."""
    return next(
        (
            r
            for r in records
            if r["event"] == event and all(r.get(k) == v for k, v in fields.items())
        ),
        None,
    )


def percentiles(milliseconds: Sequence[float]) -> Percentiles:
    """Return the median, the 99th percentile and the maximum (nearest rank); zeros for nothing."""
    if not milliseconds:
        return Percentiles(0.0, 0.0, 0.0)
    ordered = sorted(milliseconds)

    def rank(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)

    return Percentiles(rank(0.50), rank(0.99), round(ordered[-1], 1))


def back_in_isr_at(samples: Iterable[Record], broker_id: int, since: float) -> float | None:
    """Return when a broker that had left the ISR after `since` was seen back in every one."""
    left = False
    for sample in samples:
        if sample["at"] < since:
            continue
        if broker_id in sample["missing"]:
            left = True
        elif left:
            return float(sample["at"])
    return None


def spans(
    records: Sequence[Record], transitions: Sequence[Transition], since: float, end: float
) -> list[Span]:
    """Return the timeline's lanes: the incident, both nodes, NTH, the broker's pod, its volume."""
    lanes = state_spans(transitions, since, end)
    after = [r for r in records if r["at"] >= since]

    def span(lane: str, label: str, opened: Record | None, closed: Record | None) -> None:
        if opened is not None:
            until = closed["at"] if closed is not None else end
            lanes.append(Span(lane, opened["at"] - since, until - since, label))

    ready = first(after, "node_ready")
    stopping = first(after, "pod_stopping")
    called = {"at": since}
    span("old node", "node", called, first(after, "node_gone"))
    span("new node", "new node", ready, None)
    span("NTH drains", "draining", first(after, "node_cordoned"), first(after, "hook_completed"))
    if stopping is not None:
        later = [r for r in after if r["at"] >= stopping["at"]]
        span("broker's pod", "broker down", stopping, first(later, "pod_ready"))
        attached = first(later, "volume_attached")
        span("its volume", "detached", first(later, "volume_detached"), attached)
    return lanes


def chain(records: Sequence[Record], broker_id: int, groups: Collection[str]) -> dict[str, Any]:
    """Return the last start of a broker's pod: seconds from its containers being ready.

    `groups` are the target groups that gate it; None is what was not seen.
    """
    starts = [
        record
        for record in records
        if record["event"] == "pod_containers_ready"
        and naming.node_id_of_pod(str(record["pod"])) == broker_id
    ]
    if not starts:
        return {"registered_after_s": None, "healthy_after_s": None, "ready_after_s": None}
    began = starts[-1]
    later = [record for record in records if record["at"] >= began["at"]]

    def after(at: float) -> float:
        return round(at - float(began["at"]), 2)

    def everywhere(event: str) -> float | None:
        seen = [first(later, event, group=name, target=began["address"]) for name in groups]
        times = [record["at"] for record in seen if record is not None]
        return after(max(times)) if times and len(times) == len(groups) else None

    ready = first(later, "pod_ready", pod=began["pod"])
    return {
        "registered_after_s": everywhere("target_registered"),
        "healthy_after_s": everywhere("target_healthy"),
        "ready_after_s": after(ready["at"]) if ready else None,
    }


def outran_balancer(measured: Mapping[str, Any]) -> bool:
    """Say whether a pod was Ready before the load balancer sent it anything, or never was."""
    healthy, ready = measured["healthy_after_s"], measured["ready_after_s"]
    return healthy is None or ready is None or ready < healthy
