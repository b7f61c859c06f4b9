"""aws.cloudwatch: an alarm on I/O that has stalled, for which EBS has no event of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.events.announcements import Ignored, Interruption, Kind, VolumeChange, VolumeNotice
from core.events.envelope import Envelope
from core.fields import Fields, display_text, instance_in, part, text, volume_in

DETAIL_TYPE = "CloudWatch Alarm State Change"
# Metrics that say a node's storage answers no more, whatever the alarm on them is called.
STALLED_METRICS = frozenset({"StatusCheckFailed_AttachedEBS", "VolumeStalledIOCheck"})
# An alarm watches ten metrics at most; more than that is no alarm.
MOST_METRICS = 20


def read(envelope: Envelope) -> Iterator[Interruption | VolumeNotice | Ignored]:
    if envelope.detail_type != DETAIL_TYPE:
        yield envelope.says("is no announcement about a node.")
        return
    name = text(envelope.detail, "alarmName")
    state = part(envelope.detail.get("state"))
    value = text(state, "value")
    if value not in {"ALARM", "OK"}:
        yield envelope.says(f"({display_text(name)}) is {display_text(value)}, which says nothing.")
        return
    watched = list(_watched_dimensions(envelope.detail))
    if not watched:
        yield envelope.says(
            f"({display_text(name)}) watches no stalled I/O of a volume or an instance."
        )
    said = text(state, "reason") or ""
    for dimensions in watched:
        yield _stall(envelope, dimensions, over=value == "OK", name=name, said=said)


def _stall(
    envelope: Envelope, dimensions: Fields, *, over: bool, name: str | None, said: str
) -> Interruption | VolumeNotice | Ignored:
    volume_id = volume_in(dimensions.get("VolumeId"))
    instance_id = instance_in(dimensions.get("InstanceId"))
    spell = ":".join(("ok" if over else "alarm", name or "", envelope.event_id))
    if volume_id is not None:
        return VolumeNotice(
            volume_id=volume_id,
            change=VolumeChange.STALLED_IO,
            cause=said,
            instance_id=instance_id,
            event_type=name,
            over=over,
            dedupe_key=":".join((VolumeChange.STALLED_IO, volume_id, spell)),
            **envelope.identity,
        )
    if instance_id is not None:
        return Interruption(
            kind=Kind.VOLUME_PROBLEM,
            instance_id=instance_id,
            event_type=VolumeChange.STALLED_IO,
            closed=over,
            dedupe_key=":".join((Kind.VOLUME_PROBLEM, instance_id, spell)),
            **envelope.identity,
        )
    return envelope.says(f"({display_text(name)}) watches a metric of no volume and no instance.")


def _watched_dimensions(detail: Fields) -> Iterator[Mapping[str, object]]:
    """Yield the dimensions of each metric of stalled I/O that the alarm watches."""
    metrics = part(detail.get("configuration")).get("metrics")
    for entry in metrics[:MOST_METRICS] if isinstance(metrics, list) else []:
        metric = part(part(part(entry).get("metricStat")).get("metric"))
        if text(metric, "name") in STALLED_METRICS:
            yield part(metric.get("dimensions"))
