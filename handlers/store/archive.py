"""Files what is over: one JSON line per incident in the archive, then off the ledger's index.

The sweep calls `Archivist.file_closed` once a minute. Order of effects: archive, story, index.
Dying between any two files the incident again, to the same key. Spark reads the archive.

Only an instance that is gone lets its incidents expire, all rounds together: the rounds of one that
stays are numbered on from those before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

import boto3
from aws_lambda_powertools import Logger

from core.ground.errors import Conflict
from core.incidents.record import Incident, State, to_json
from core.settings.functions import SweepSettings
from handlers.adapters.calls import CLIENT, take_each
from handlers.store.ledger import KEPT_DAYS, DynamoLedger, Ledger, rounds
from handlers.store.notifying import open_stories

logger = Logger(service="stillwater", child=True)
# A sweep's share; what is left over comes with the next.
MOST_PER_SWEEP = 25
_GONE = frozenset({State.RELEASED, State.LOST})


class Archive(Protocol):
    """Where closed incidents go."""

    def store(self, key: str, line: str) -> None:
        """Write one object; the same key again replaces it."""


class S3Archive:
    """One S3 bucket."""

    def __init__(self, bucket: str, region: str) -> None:
        self._bucket = bucket
        self._s3 = boto3.client("s3", region_name=region, config=CLIENT)

    def store(self, key: str, line: str) -> None:
        self._s3.put_object(
            Bucket=self._bucket,
            Key=key,
            Body=f"{line}\n".encode(),
            ContentType="application/x-ndjson",
        )


def archive_key(incident: Incident) -> str:
    """Return where an incident is filed: by the day it ended, as Spark reads partitions."""
    day = datetime.fromtimestamp(incident.entered_at, UTC).date().isoformat()
    return f"incidents/closed_on={day}/{incident.id}.jsonl"


def archive_line(incident: Incident, cluster: str) -> str:
    """Return the incident as one JSON object: all of it, its cluster and when it ended.

    What AWS sent and the tokens that complete its hooks are left out: reports need neither.
    """
    document = json.loads(to_json(incident))
    document["hooks"] = sorted(incident.hooks)
    del document["drain_event"]
    document |= {"cluster": cluster, "closed_at": incident.entered_at}
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True)
class Archivist:
    """Files incidents of one cluster; `tell` queues their story once more."""

    ledger: Ledger
    archive: Archive
    tell: Callable[[Incident], None]
    cluster: str

    def file_closed(self) -> int:
        """File the incidents that are over; return how many were.

        Raises the first failure once all have been tried.
        """
        filed: list[bool] = []
        closing = self.ledger.closing(MOST_PER_SWEEP)
        take_each(partial(self._file_into, filed, incident) for incident in closing)
        return sum(filed)

    def _file_into(self, filed: list[bool], incident: Incident) -> None:
        filed.append(self._file(incident))

    def _file(self, incident: Incident) -> bool:
        line = archive_line(incident, self.cluster)
        self.archive.store(archive_key(incident), line)
        # The end of a story matters most, and its message may have got lost.
        self.tell(incident)
        try:
            self._take_off(incident)
        except Conflict:
            logger.info("An incident changed while it was filed.", incident_id=incident.id)
            return False
        return True

    def _take_off(self, incident: Incident) -> None:
        if incident.state not in _GONE:
            self.ledger.file(incident, None)
            return
        expires_at = incident.entered_at + KEPT_DAYS * 86_400
        for earlier in rounds(self.ledger, incident.instance_id):
            if earlier.id != incident.id and not earlier.open:
                self.ledger.file(earlier, expires_at)
        self.ledger.file(incident, expires_at)


def open_archivist(settings: SweepSettings, ledger: DynamoLedger) -> Archivist:
    """Return the archivist of the sweep."""
    archive = S3Archive(settings.archive_bucket, settings.region)
    return Archivist(ledger, archive, open_stories(settings).of_incident, settings.prefix)
