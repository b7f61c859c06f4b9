"""One turn of the loop for one incident: observe -> core decides -> act -> next tick.

Order of effects: claim, actions, record, next tick. A claim is a write of the incident at the
version the message names, so two deliveries never carry one incident at a time. Dying after it
leaves an incident whose tick is late: the redelivered message or the sweep carries on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from aws_lambda_powertools import Logger

from core.ground.constants import DECISIONS_MADE, RUNBOOKS
from core.ground.errors import Conflict, StillwaterError
from core.ground.window import clock
from core.incidents.actions import Decision, Page, settle, told_decision
from core.incidents.consenting import seen_to_end
from core.incidents.decide import next_action
from core.incidents.learn import learn, note_refusal
from core.incidents.observation import Observation, Policy
from core.incidents.record import Incident, is_unattended
from handlers.adapters import metrics
from handlers.adapters.aws import Queue, tick_message
from handlers.adapters.calls import NO_ANSWER, take_each
from handlers.adapters.pages import Topic, publish
from handlers.incidents.act import Effects, perform
from handlers.incidents.observe import Sources, observe
from handlers.incidents.shifts import Shifts, free_nodes, restore_labels
from handlers.store.ledger import SHIFT_MESSAGE, STRAYS_MESSAGE

logger = Logger(service="stillwater")
# A call that fails is tried again at every turn; AWS throttles for minutes.
FAILING_SECONDS = 600.0
_TICK = frozenset({"incident_id", "version"})


class Turns(Protocol):
    """Who carries a rotation run (handlers.rotation.turns)."""

    def turn(self, version: int, now: float) -> None:
        """Take one step with the run, and schedule the next."""

    def tidy(self) -> None:
        """Take off what a run throttled and nobody took off."""


@dataclass(frozen=True)
class Loop:
    """Carries incidents one step at a time."""

    sources: Sources
    effects: Effects
    ticks: Queue
    policy: Policy
    late_seconds: float
    shifts: Shifts
    rotations: Turns
    topic: Topic | None = None  # None: the alerts are off
    runbooks_url: str = RUNBOOKS

    def turn(self, message: str, now: float) -> None:
        """Take one step with the incident a tick's message names, and schedule the next.

        Another message asks for a turn of the zones or of stray labels (handlers.incidents.shifts),
        or of a rotation run (handlers.rotation.turns), or is a page to be published.
        """
        if self._answer_other(message, now):
            return
        claimed = self._claim(_named_in(message), now)
        if claimed is None:
            return
        reach = self.effects.reach
        watched = reach.level_of(claimed.group) == "watch"
        seen = replace(observe(claimed, self.sources, now), watched=watched)
        incident = learn(claimed, seen)
        decision = next_action(incident, seen, reach.policy(incident.group, self.policy))
        decision = told_decision(decision, reach.level_of(incident.group))
        logger.info(decision.reason, incident_id=incident.id, state=decision.state.value)
        paged = self._page(claimed, decision, now)
        if paged is None:
            return
        claimed, incident = paged, replace(incident, pages=paged.pages, version=paged.version)
        decision = replace(
            decision, actions=tuple(a for a in decision.actions if not isinstance(a, Page))
        )
        try:
            refused = perform(incident, decision.actions, self.effects, now)
        except (StillwaterError, *NO_ANSWER) as error:
            # Not recorded, so decided again: what was done of it is harmless to repeat.
            logger.warning("An action failed.", incident_id=incident.id, error=str(error))
            self._note_failure(claimed, decision, error, now)
            return
        metrics.count(DECISIONS_MADE)
        recorded = self._record(incident, seen, decision, refused)
        if recorded is None:
            self._give_back(self.effects.ledger.get(incident.id))
        elif recorded.open:
            # What joined meanwhile may be a two-minute warning, or a person's word: look at once.
            joined = recorded.version != incident.version + 1
            self._schedule(recorded, 0.0 if joined else decision.delay_seconds or 0.0)

    def _page(self, claimed: Incident, decision: Decision, now: float) -> Incident | None:
        """Send the pages of a decision and record that, whatever becomes of its other actions.

        None: somebody has written the incident since, and decides again at the next tick.
        """
        pages = tuple(a for a in decision.actions if isinstance(a, Page))
        if not pages:
            return claimed
        perform(claimed, pages, self.effects, now)
        base = claimed
        while True:
            keys = (page.key for page in pages if page.key not in base.pages)
            try:
                written = self.effects.ledger.put(replace(base, pages=(*base.pages, *keys)))
            except Conflict:
                newest = self.effects.ledger.get(claimed.id)
                if newest is None or not newest.open:
                    return None
                base = newest
                continue
            if base is claimed:
                return written
            self._schedule(written, 0.0)
            return None

    def _answer_other(self, message: str, now: float) -> bool:
        """Do what a message asks that names no incident; False: it names one."""
        if message == SHIFT_MESSAGE:
            self._shift(now)
            return True
        if message == STRAYS_MESSAGE:
            self._restore(now)
            return True
        named = _named_in(message)
        if "page" in named:
            publish(self.topic, named, self.runbooks_url)
        elif "rotation" in named:
            self.rotations.turn(named["rotation"], now)
        else:
            return False
        return True

    def _shift(self, now: float) -> None:
        try:
            self.shifts.turn(now)
        except (StillwaterError, *NO_ANSWER) as error:
            # The sweep asks again within a minute, for as long as anything is left to do.
            logger.warning("A shift is not complete.", error=str(error))

    def _restore(self, now: float) -> None:
        nodes, cordons, ledger = self.effects.nodes, self.effects.cordons, self.effects.ledger
        try:
            take_each(
                (
                    partial(restore_labels, nodes, ledger, now),
                    partial(free_nodes, nodes, cordons, ledger),
                    self.rotations.tidy,
                )
            )
        except (StillwaterError, *NO_ANSWER) as error:
            # The sweep asks again within a minute.
            logger.warning("Labels, marks and throttles were not given back.", error=str(error))

    def _claim(self, named: Mapping[str, Any], now: float) -> Incident | None:
        """Take the incident for this invocation; None when it is over or another carries it."""
        incident = self.effects.ledger.get(named["incident_id"])
        if incident is None or not incident.open:
            self._give_back(incident)
            return None
        stale = named["version"] != incident.version
        if stale and not is_unattended(incident, now, self.late_seconds):
            return None
        try:
            return self.effects.ledger.put(replace(incident, ticked_at=now))
        except Conflict:
            return None

    def _note_failure(
        self, claimed: Incident, decision: Decision, error: Exception, now: float
    ) -> None:
        """Remember since when no turn can act, and call a person once that has lasted."""
        since = claimed.failing_since or now
        noted = replace(claimed, failing_since=since)
        said = f"Nothing can be done for {claimed.instance_id} since {clock(since)}: {error}"
        try:
            if now - since > FAILING_SECONDS and "action_fails" not in claimed.pages:
                page = Page("action_fails", f"{said} ({decision.reason})")
                written = self._page(noted, replace(decision, actions=(page,)), now)
            elif claimed.failing_since is None:
                written = self.effects.ledger.put(noted)
            else:
                written = claimed
        except (Conflict, *NO_ANSWER):
            written = claimed  # The sweep finds it, should its version have changed.
        if written is not None:
            self._schedule(written, self.policy.tick_interval_seconds)

    def _record(
        self, incident: Incident, seen: Observation, decision: Decision, refused: str | None
    ) -> Incident | None:
        """Record a decision over whatever has joined the incident meanwhile.

        None: this invocation was believed dead, and another has moved the incident on.
        """
        base = incident
        while True:
            try:
                settled = settle(learn(base, seen), decision, seen.now)
                return self.effects.ledger.put(
                    note_refusal(replace(settled, failing_since=None), refused, seen.now)
                )
            except Conflict:
                newest = self.effects.ledger.get(incident.id)
                if newest is None or newest.state is not incident.state:
                    return None
                base = newest

    def _give_back(self, incident: Incident | None) -> None:
        """Drop the lease that was taken for an incident which another invocation had ended."""
        if incident is not None and not incident.open:
            self.effects.ledger.drop_lease(incident.id, ended=seen_to_end(incident))

    def _schedule(self, incident: Incident, delay_seconds: float) -> None:
        self.ticks.send(tick_message(incident.id, incident.version), delay_seconds=delay_seconds)


def _named_in(message: str) -> Mapping[str, Any]:
    """Read what a message is about; raises StillwaterError for what a newer release may mean.

    It is delivered again, and then kept among the dead letters for whoever can read it.
    """
    try:
        named = json.loads(message)
    except ValueError:
        named = None
    known = isinstance(named, dict) and (
        {"page", "rotation"} & named.keys() or named.keys() >= _TICK
    )
    if not known:
        raise StillwaterError(
            f"A message of the ticks queue names nothing that this release knows "
            f"({message[:80]!r}); it stays among the dead letters until one that does is deployed."
        )
    found: Mapping[str, Any] = named
    return found
