"""Gives an announcement about an instance its incident; interruption and sweep both come here.

Order of effects: incident, tick, record. Dying between any two makes SQS deliver the announcement
again, or the sweep find the same again, which changes nothing that is changed already.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_lambda_powertools import Logger

from core.events import Interruption
from core.events.announcements import ISSUES, URGENT
from core.events.parsing import doubt
from core.ground.errors import Conflict
from core.incidents.decide import why_overruled, why_unanswered
from core.incidents.joining import merge, open_incident, reopens
from core.incidents.observation import Ownership
from core.incidents.record import Incident
from handlers.adapters.aws import AwsCloud, Queue, tick_message
from handlers.store import documents
from handlers.store.ledger import Ledger, rounds
from handlers.store.table import Records, retry_on_newer

logger = Logger(service="stillwater", child=True)
# An announcement is kept as evidence; the ledger's items may have 400 KB, and one Health event may
# be kept for each of a hundred instances.
LONGEST_KEPT = 32_768


@dataclass(frozen=True)
class ReceptionResult:
    """What became of an announcement: its incident, or why it has none; and whether that is new."""

    incident: Incident | None
    refusal: str = ""
    changed: bool = False


@dataclass(frozen=True)
class Reception:
    """Opens incidents, and joins announcements to those that are open."""

    ledger: Ledger
    cloud: AwsCloud
    ticks: Queue
    whose: Ownership
    records: Records

    def receive(self, found: Interruption, now: float) -> None:
        """Take what AWS announced; a duplicate sends the tick that may be missing, no more.

        Raises Conflict when others keep changing the same incident: SQS then delivers again.
        """
        doubted = self._doubt(found, now)
        if doubted is not None:
            self.ignore(found.body, doubted, now)
            self.call_once(
                found.dedupe_key, doubted, now, page="doubted", instance_id=found.instance_id
            )
            return
        event = _event(found)
        if found.closed and event is not None:
            # Before its incident is looked for, and whether or not there is one: an older word
            # of the same event may still come, days later from the dead letters.
            self.ledger.close_event(event, found.said_at(now), now)
        answer = self._join(found, now, actor="interruption", ours=False)
        incident = answer.incident
        if incident is None:
            self.ignore(found.body, answer.refusal, now)
            return
        self.wake(incident)
        other = incident.open and not found.closed and incident.kind is not found.kind
        if other and found.kind in ISSUES:
            # The incident goes its way, and its decisions say nothing about it.
            said = (
                f"AWS reports {found.event_type or found.kind.value} for {found.instance_id}, "
                f"whose incident {incident.id} ({incident.kind.value}) goes on."
            )
            self.call_once(found.dedupe_key, said, now, page="damaged", incident_id=incident.id)
        outcome = f"Incident {incident.id}, which is {incident.state.value}."
        self.record(found.dedupe_key, found.body, outcome, now)

    def _doubt(self, found: Interruption, now: float) -> str | None:
        """Say why a word about an instance of ours cannot be true; EC2 is asked for warnings."""
        instance = self.cloud.instance(found.instance_id) if found.kind in URGENT else None
        if instance is not None and not self.whose.owns(instance.tags):
            return None  # Another's, and refused as such.
        if found.kind in URGENT and instance is None:
            return None
        return doubt(found, None if instance is None else instance.market, now)

    def discover(self, found: Interruption, now: float, *, again: bool = False) -> bool:
        """Take what the sweep found to be true of an instance of ours; say whether it was news.

        `again` opens another round of an instance that was let go, and stands there all the same.
        """
        try:
            answer = self._join(found, now, actor="sweep", ours=True, again=again)
        except Conflict:
            return False  # Its announcement arrived at this moment.
        if answer.incident is None or not answer.changed:
            return False
        logger.warning(
            "An announcement never arrived.",
            incident_id=answer.incident.id,
            kind=found.kind.value,
            instance_id=found.instance_id,
        )
        self.wake(answer.incident)
        return True

    def rotate(self, found: Interruption, now: float) -> None:
        """Take what a rotation run wants of an instance of ours; a repetition changes nothing."""
        answer = self._join(found, now, actor="rotation", ours=True)
        if answer.incident is not None:
            self.wake(answer.incident)

    def wake(self, incident: Incident) -> None:
        """Let the loop look at an incident now."""
        if incident.open:
            self.ticks.send(tick_message(incident.id, incident.version))

    def call_once(self, key: str, reason: str, now: float, *, page: str, **about: str) -> None:
        """Call a person about `page`, unless somebody was called about `key` already.

        An announcement's key is its own: SQS delivers it twice, and people redrive dead letters.
        """
        documents.call_once(self.records, self.ticks, key, now, reason, page=page, **about)

    def record(self, dedupe_key: str, body: str, outcome: str, now: float) -> None:
        self.ledger.record_event(dedupe_key, body[:LONGEST_KEPT], outcome, now)
        logger.info(outcome)

    def ignore(self, body: str, reason: str, now: float) -> None:
        self.ledger.record_ignored(body[:LONGEST_KEPT], reason, now)
        logger.info("Ignored an announcement.", reason=reason)

    def _join(
        self, found: Interruption, now: float, *, actor: str, ours: bool, again: bool = False
    ) -> ReceptionResult:
        return retry_on_newer(
            lambda: self._join_incident(found, now, actor=actor, ours=ours, again=again)
        )

    def _join_incident(
        self, found: Interruption, now: float, *, actor: str, ours: bool, again: bool
    ) -> ReceptionResult:
        """Find the incident an announcement belongs to, opened if need be."""
        history = rounds(self.ledger, found.instance_id)
        current = history[-1] if history else None
        if current is not None:
            known = any(found.dedupe_key in past.announcements for past in history)
            if known or not (current.open or again or reopens(current, found)):
                return ReceptionResult(current)
        late = self._overruling(found, now)
        if current is not None and current.open and late is None:
            return ReceptionResult(self.ledger.put(merge(current, found, now)), changed=True)
        refusal = why_unanswered(found) or late
        if refusal is None and not ours:
            refusal = self._foreign(found.instance_id)
        if refusal:
            return ReceptionResult(None, refusal)
        opened = open_incident(found, now, after=history, actor=actor)
        return ReceptionResult(self.ledger.put(opened), changed=True)

    def _overruling(self, found: Interruption, now: float) -> str | None:
        event = _event(found)
        return None if event is None else why_overruled(found, self.ledger.closed_at(event), now)

    def _foreign(self, instance_id: str) -> str | None:
        """Say why an instance is none of this cluster's: EC2's events name no cluster."""
        instance = self.cloud.instance(instance_id)
        if instance is None:
            return f"EC2 does not know instance {instance_id}."
        if not self.whose.owns(instance.tags):
            return f"Instance {instance_id} has {self.whose.lacking}: another's."
        return None


def _event(found: Interruption) -> str | None:
    """Name what Health tells of an instance; an event closes for each of its instances apart."""
    return None if found.health_event is None else f"{found.health_event} {found.instance_id}"
