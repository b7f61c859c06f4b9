"""EBS Volume Notification: attachments and modifications, done or failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.events.announcements import Ignored, VolumeChange, VolumeNotice
from core.events.envelope import Envelope
from core.fields import display_text, text, volume_in

DETAIL_TYPE = "EBS Volume Notification"
# (event, result); what is left out went as it should and asks for nothing.
OUTCOMES: Mapping[tuple[str, str], VolumeChange] = {
    ("attachVolume", "failed"): VolumeChange.ATTACH_FAILED,
    # AWS attaches again by itself after it has served a host; a key that is gone forbids it.
    ("reattachVolume", "failed"): VolumeChange.ATTACH_FAILED,
    ("createVolume", "failed"): VolumeChange.CREATE_FAILED,
    ("modifyVolume", "optimizing"): VolumeChange.MODIFICATION_STARTED,
    ("modifyVolume", "completed"): VolumeChange.MODIFICATION_COMPLETED,
    ("modifyVolume", "failed"): VolumeChange.MODIFICATION_FAILED,
}


def read(envelope: Envelope) -> Iterator[VolumeNotice | Ignored]:
    # AWS's own sample of one of these events has a blank before its name.
    event = (text(envelope.detail, "event") or "").strip()
    result = text(envelope.detail, "result")
    found = [id_ for value in envelope.resources if (id_ := volume_in(value))]
    if not found:
        # A key's ARN may stand beside the volume's.
        yield envelope.says(f"({display_text(event)}) names no volume in resources.")
        return
    change = OUTCOMES.get((event, result or ""))
    for volume_id in dict.fromkeys(found):
        if change is None:
            yield envelope.ignored(
                f"{display_text(event)} of volume {volume_id} is {display_text(result)}: nothing "
                "is to be done."
            )
        else:
            yield VolumeNotice(
                volume_id=volume_id,
                change=change,
                cause=text(envelope.detail, "cause") or "",
                dedupe_key=":".join((change, volume_id, _request(envelope))),
                **envelope.identity,
            )


def _request(envelope: Envelope) -> str:
    """Return what two deliveries of one outcome share; a failed attachment has no request id."""
    return text(envelope.detail, "request-id") or envelope.event_id
