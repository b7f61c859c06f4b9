"""EBS in the twin: a volume that is modified says so, as AWS does.

moto modifies at once and announces nothing. On AWS the new size is usable while the volume is still
being optimised; here that takes a moment.
"""

from __future__ import annotations

import time
import uuid
from functools import partial
from typing import Any

from moto.ec2.models.elastic_block_store import EBSBackend

from local.aws import events
from local.aws.agenda import Agenda

OPTIMIZING_SECONDS = 2.0


def announce(backend: Any, volume_id: str, event: str, result: str, request_id: str) -> None:
    """Send an EBS Volume Notification."""
    arn = f"arn:aws:ec2:{backend.region_name}:{backend.account_id}:volume/{volume_id}"
    events.put(
        backend.account_id,
        backend.region_name,
        source="aws.ec2",
        detail_type="EBS Volume Notification",
        detail={"result": result, "cause": "", "event": event, "request-id": request_id},
        resources=[arn],
    )


def install(agenda: Agenda) -> None:
    """Put this modification in the place of moto's."""
    moto_modify = EBSBackend.modify_volume

    def modify_volume(backend: Any, volume_id: str, *args: Any, **kwargs: Any) -> Any:
        volume = moto_modify(backend, volume_id, *args, **kwargs)
        say = partial(announce, backend, volume_id, "modifyVolume", request_id=str(uuid.uuid4()))
        say("optimizing")
        agenda.add(time.time() + OPTIMIZING_SECONDS, lambda: say("completed"))
        return volume

    EBSBackend.modify_volume = modify_volume
