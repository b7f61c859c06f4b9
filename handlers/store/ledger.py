"""Keeps incidents, the lease and announcements in one DynamoDB table, and tells who listens.

Keys (`pk`): `incident#<id>`, `lease#<cluster>`, `event#<dedupe key>`, `closed#<digest>`,
`ignored#<digest>`. A write that could lose another's is conditional on the version it read.
The index `open` lists incidents until they are filed: `open`, then `closing` until
handlers.incidents.broom has archived them. A story that could not be queued for Slack is told with
the next change: listeners never hold a writer up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from core.availability.lease import Lease, LeaseDecision, begin, grant, release
from core.ground.constants import INCIDENTS_LOST, INCIDENTS_OPENED, INCIDENTS_RETAINED
from core.ground.errors import Conflict
from core.ground.fields import as_document, digest, drop_keys, field_values
from core.ground.naming import incident_id
from core.incidents.record import Incident, State, from_json, to_json, undocumented_incident
from core.rotation.rebalance import Rebalance
from core.rotation.run_record import Run
from core.settings.functions import Writing
from core.slack import story_id, visible
from core.slack import visible_zone as zone_visible
from core.zones.incident import ZoneIncident
from handlers.adapters import metrics
from handlers.adapters.aws import Queue
from handlers.adapters.calls import NO_ANSWER, known_shape
from handlers.store.table import VersionedTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


OPEN_INDEX = "open"
OPEN, CLOSING = "open", "closing"
# What is over stays readable this long, for people and for announcements that come late.
KEPT_DAYS = 90
# A partition key holds 2048 bytes; an announcement may name itself at any length.
LONGEST_KEY = 512


@dataclass(frozen=True, slots=True)
class _LeaseRecord:
    """The leases as read, with what a newer release keeps beside them."""

    leases: tuple[Lease, ...] = ()
    unread: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0


def rounds(ledger: Ledger, instance_id: str) -> tuple[Incident, ...]:
    """Return an instance's incidents, the first round first; all but the last are over."""
    found: list[Incident] = []
    while (incident := ledger.get(incident_id(instance_id, len(found) + 1))) is not None:
        found.append(incident)
    return tuple(found)


class Ledger:
    """What the handlers remember, in DynamoDB; tests have its twin in memory.

    `written` hears of every incident that was written.
    """

    def __init__(
        self,
        table: str,
        cluster: str,
        region: str,
        *,
        client: DynamoDBClient | None = None,
        written: Callable[[Incident], None] | None = None,
    ) -> None:
        self._table = VersionedTable(table, region, client=client)
        self._lease_key = f"lease#{cluster}"
        self._written = written

    def get(self, id_: str) -> Incident | None:
        """Return an incident as last written."""
        item = self._table.item(f"incident#{id_}")
        return None if item is None else incident_in(item)

    def put(self, incident: Incident) -> Incident:
        """Write an incident over the version it was read at; return it with its new version.

        Raises Conflict when somebody has written since. Version 0 is one never written.
        """
        item = _item(incident)
        item[OPEN_INDEX] = {"S": OPEN if incident.open else CLOSING}
        written = self._write(item, incident)
        if self._written is not None:
            self._written(written)
        return written

    def file(self, incident: Incident, expires_at: float | None) -> None:
        """Take a closed incident off the index, for good; with a time, let it expire then.

        Raises Conflict when somebody has written since: then it is to be exported again.
        """
        item = _item(incident)
        if expires_at is not None:
            item["expires_at"] = {"N": str(int(expires_at))}
        self._write(item, incident)

    def open_incidents(self) -> tuple[Incident, ...]:
        """Return every open incident; one written moments ago may be missing."""
        return tuple(incident_in(item) for item in self._table.items_of_index(OPEN_INDEX, OPEN))

    def closing(self, most: int) -> tuple[Incident, ...]:
        """Return incidents that are over and not yet filed, at most so many."""
        return tuple(
            incident_in(item) for item in self._table.items_of_index(OPEN_INDEX, CLOSING, most)
        )

    def record_event(self, dedupe_key: str, body: str, outcome: str, now: float) -> None:
        """Keep an announcement; the first record of one stands."""
        key = dedupe_key if len(dedupe_key) <= LONGEST_KEY else digest(dedupe_key)
        self._record(f"event#{key}", body, outcome, now)

    def record_ignored(self, body: str, reason: str, now: float) -> None:
        """Keep a message that asked for nothing, with its body; the first record stands."""
        # One message may be ignored for several instances, each for its own reason.
        self._record(f"ignored#{digest(reason + body)}", body, reason, now)

    def close_event(self, event: str, said_at: float, now: float) -> None:
        """Remember when AWS said that an event is over; its latest word stands.

        Raises Conflict when somebody has written since.
        """
        key = f"closed#{digest(event)}"
        found = self._table.item(key)
        if found is not None and float(found["said_at"]["N"]) >= said_at:
            return
        version = 0 if found is None else int(found["version"]["N"])
        item = {
            "pk": {"S": key},
            "version": {"N": str(version + 1)},
            "said_at": {"N": repr(said_at)},
            "expires_at": {"N": _expiry(now)},
        }
        self._table.write(item, version, f"The end of {event} was noted by another invocation.")

    def closed_at(self, event: str) -> float | None:
        """Return when AWS said that an event is over; None: it has not, or that is long ago."""
        found = self._table.item(f"closed#{digest(event)}")
        return None if found is None else float(found["said_at"]["N"])

    def leases(self) -> tuple[Lease, ...]:
        """Return who holds the cluster's lease, one or several of a party; some may be expired."""
        return self._lease_record().leases

    def take_lease(
        self,
        holder: str,
        now: float,
        ttl_seconds: float,
        *,
        party: str | None = None,
        node_id: int | None = None,
        out: bool = False,
    ) -> LeaseDecision:
        """Take or renew the lease; a refusal says who holds it. `out`: its node is out already."""
        before = self._lease_record()
        decision = grant(
            before.leases, holder, now, ttl_seconds, party=party, node_id=node_id, out=out
        )
        return self._write_agreed(decision, before)

    def begin_drain(
        self,
        holder: str,
        now: float,
        ttl_seconds: float,
        *,
        party: str | None = None,
        node_id: int | None = None,
        forced: bool = False,
    ) -> LeaseDecision:
        """Note that a drain is sent now, before it is; a refusal says why it must not be."""
        before = self._lease_record()
        decision = begin(
            before.leases, holder, now, ttl_seconds, party=party, node_id=node_id, forced=forced
        )
        return self._write_agreed(decision, before)

    def _write_agreed(self, decision: LeaseDecision, before: _LeaseRecord) -> LeaseDecision:
        """Write what was decided over what it was decided on; what changes nothing is not."""
        if not decision.granted or decision.leases == before.leases:
            return decision
        try:
            self._write_leases(decision.leases, before)
        except Conflict:
            return LeaseDecision(
                granted=False,
                leases=before.leases,
                reason="Another incident asked for the lease at the same moment.",
            )
        return decision

    def drop_lease(self, holder: str, *, ended: bool = False) -> None:
        """Give the lease back if `holder` has it; one that was used only once that has `ended`."""
        before = self._lease_record()
        left = release(before.leases, holder, ended=ended)
        if left != before.leases:
            # Emptied rather than deleted: a deleted item's version starts again at 1, and a
            # slow writer of that version would then pass for a current one.
            self._write_leases(left, before)

    @known_shape("The lease in the ledger's table")
    def _lease_record(self) -> _LeaseRecord:
        item = self._table.item(self._lease_key)
        if item is None:
            return _LeaseRecord()
        stored = json.loads(item["document"]["S"])
        leases = tuple(Lease(**field_values(Lease, each)) for each in stored.get("leases", ()))
        return _LeaseRecord(leases, drop_keys(stored, "leases"), int(item["version"]["N"]))

    def _write_leases(self, leases: tuple[Lease, ...], before: _LeaseRecord) -> None:
        document = {**before.unread, "leases": as_document(leases)}
        item = {
            "pk": {"S": self._lease_key},
            "version": {"N": str(before.version + 1)},
            "document": {"S": json.dumps(document)},
        }
        self._table.write(item, before.version, "The lease changed hands meanwhile.")

    def _write(self, item: dict[str, Any], incident: Incident) -> Incident:
        self._table.write(
            item, incident.version, f"Incident {incident.id} was changed by another invocation."
        )
        return incident_in(item)

    def _record(self, key: str, body: str, outcome: str, now: float) -> None:
        item = {
            "pk": {"S": key},
            "version": {"N": "1"},
            "body": {"S": body},
            "outcome": {"S": outcome},
            "at": {"N": repr(now)},
            "expires_at": {"N": _expiry(now)},
        }
        try:
            self._table.write(item, 0, "recorded already")
        except Conflict:
            return


def _expiry(now: float) -> str:
    return str(int(now) + KEPT_DAYS * 86_400)


def _item(incident: Incident) -> dict[str, Any]:
    return {
        "pk": {"S": f"incident#{incident.id}"},
        "version": {"N": str(incident.version + 1)},
        "instance_id": {"S": incident.instance_id},
        "state": {"S": incident.state.value},
        "document": {"S": to_json(incident)},
    }


def incident_in(item: dict[str, Any]) -> Incident:
    """Read an incident's item."""
    version = int(item["version"]["N"])
    text = item.get("document", {}).get("S", "")
    try:
        return replace(from_json(text), version=version)
    except (AttributeError, KeyError, TypeError, ValueError):
        # Somebody has edited it: the others are read all the same, and a person is told of this.
        id_ = item["pk"]["S"].partition("#")[2]
        return replace(undocumented_incident(id_, text), version=version)


# Asks λ tick to bring leaders and scale-in protection to what is frozen
# (handlers.incidents.shifts).
SHIFT_MESSAGE = json.dumps({"shift": True})
# Who was in the way of leaders' giving back, a start or another invocation, is out of it by then.
# The sweep would ask within a minute, and a run waits for it.
SHIFT_AFTER_SECONDS = 5.0
# Asks λ tick to take labels off pods that nobody lets leave (handlers.incidents.shifts).
STRAYS_MESSAGE = json.dumps({"strays": True})


def rotation_message(version: int) -> str:
    """Ask λ tick for a turn of the run; stale once the run has another version."""
    return json.dumps({"rotation": version})


logger = Logger(service="stillwater", child=True)
_ENDS = {State.RETAINED: INCIDENTS_RETAINED, State.LOST: INCIDENTS_LOST}
# What one environment remembers having queued; more are forgotten, and only queued once more.
MOST_REMEMBERED = 1000


class Stories:
    """Queues what Slack is to tell, where its readers would see a change; without a queue, none."""

    def __init__(self, queue: Queue | None) -> None:
        self._queue = queue
        self._told: dict[str, str] = {}

    def count_and_tell(self, incident: Incident) -> None:
        """Count an incident that was written, and queue its story."""
        if incident.version == 1:
            metrics.count(INCIDENTS_OPENED)
        if incident.state in _ENDS:
            metrics.count(_ENDS[incident.state])
        self.tell_incident(incident)

    def tell_incident(self, incident: Incident) -> None:
        self._tell(incident.id, visible(incident))

    def tell_run(self, run: Run) -> None:
        self._tell(run.id, f"{run.state} {run.reason}")

    def tell_zone(self, incident: ZoneIncident) -> None:
        self._tell(story_id(incident), zone_visible(incident))

    def tell_rebalance(self, rebalance: Rebalance, said: str) -> None:
        """Queue what is said of a KafkaRebalance, which no ledger has."""
        self._tell(f"rebalance:{rebalance.uid}", said, name=rebalance.name, said=said)

    def _tell(self, id_: str, seen: str, **more: str) -> None:
        if self._queue is None or self._told.get(id_) == seen:
            return
        try:
            self._queue.send(json.dumps({"incident_id": id_, **more}))
        except NO_ANSWER as error:
            logger.warning("A message for Slack was not queued.", story=id_, error=str(error))
            return
        if len(self._told) >= MOST_REMEMBERED:
            self._told.clear()
        self._told[id_] = seen


def open_ledger(settings: Writing) -> Ledger:
    """Return the ledger of a function, whose every write is told and counted."""
    return Ledger(
        settings.ledger_table,
        settings.cluster,
        settings.region,
        written=open_stories(settings).count_and_tell,
    )


def open_stories(settings: Writing) -> Stories:
    """Return what queues stories where Slack is told."""
    url = settings.stories_queue_url
    return Stories(Queue(url, settings.region) if url else None)
