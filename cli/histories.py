"""Holds recorded histories to what the loop promises, and names the first step that breaks a rule.

A second opinion: nothing here asks the modules that decide. It reads incidents as they were written
down (the ledger, or the archive's lines) and knows only what a record says, so it can say that a
history breaks a rule, and never that the world kept one. docs/guarantees.md lists the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.events.announcements import URGENT
from core.ground.window import clock
from core.incidents.record import ALLOWED, TERMINAL, Incident, State, instance_of, round_of

# Functions' clocks differ, and one moment is written by two of them.
CLOCKS_APART_SECONDS = 120.0
_GONE = frozenset({State.RELEASED, State.LOST})


@dataclass(frozen=True, slots=True, order=True)
class Break:
    """One step of a history that breaks a rule."""

    at: float  # epoch seconds
    incident_id: str
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{clock(self.at)} {self.incident_id}: {self.sentence} (rule {self.rule})"


def breaks(histories: Iterable[Incident], *, gate: str = "isr") -> list[Break]:
    """Return every step that breaks a rule, the first one first.

    `histories` are one cluster's. `gate` is the description's: with "ready" a broker need not have
    been seen in every ISR before its old instance went.
    """
    incidents = sorted(histories, key=lambda i: (i.opened_at, i.id))
    found = [b for incident in incidents for rule in _RULES for b in rule(incident)]
    if gate == "isr":
        found.extend(b for incident in incidents for b in _early_ends(incident))
    found.extend(_one_out(incidents))
    found.extend(_rounds(incidents))
    return sorted(found)


def _break(incident: Incident, at: float, rule: str, sentence: str) -> Break:
    return Break(at, incident.id, rule, sentence)


def _steps(incident: Incident) -> Iterator[Break]:
    """Every step is one that a state allows, and the last one is where the incident stands."""
    if not incident.transitions or incident.transitions[0].state is not State.OPENED:
        yield _break(incident, incident.opened_at, "steps", "It does not begin as opened.")
        return
    for before, after in pairwise(incident.transitions):
        if after.state not in ALLOWED[before.state]:
            yield _break(
                incident, after.at, "steps", f"It may not go {before.state} -> {after.state}."
            )
        if after.at < before.at - CLOCKS_APART_SECONDS:
            sentence = f"It is {after.state} {before.at - after.at:.0f} s before {before.state}."
            yield _break(incident, after.at, "order", sentence)
    last = incident.transitions[-1]
    if last.state is not incident.state:
        sentence = f"It is {incident.state}, and its last step was to {last.state}."
        yield _break(incident, last.at, "steps", sentence)


def _drain_breaks(incident: Incident) -> Iterator[Break]:
    """A Kafka node is drained from its turn on, and after its replacement is ready."""
    if incident.forwarded is None or not _waits_for_turn(incident):
        return
    sent_at = incident.forwarded.first_at
    turn = _entered_at(incident, State.HOLDING)
    if turn is None or sent_at < turn - CLOCKS_APART_SECONDS:
        yield _break(
            incident, sent_at, "turn", f"Node {incident.node_id} is drained before its turn."
        )
    found = incident.replacement
    # In place there is none: the instance stays, and never stood in hooks.
    stays = incident.in_place is not None and not incident.hooks
    awaited = incident.expects_return and incident.release is None and not stays
    if awaited and (found is None or sent_at < found.ready_at - CLOCKS_APART_SECONDS):
        sentence = f"Node {incident.node_id} is drained before a replacement is ready."
        yield _break(incident, sent_at, "replacement", sentence)


def _silent_keeps(incident: Incident) -> Iterator[Break]:
    """Nothing is kept for a person without calling one."""
    if incident.state is State.RETAINED and not incident.pages:
        sentence = "The instance is retained, and nobody was called."
        yield _break(incident, incident.entered_at, "paged", sentence)


def _early_ends(incident: Incident) -> Iterator[Break]:
    """An instance goes, or is done in place, when its broker has been seen back.

    Unless nobody expects it.
    """
    gated = _entered_at(incident, State.GATING) is not None and incident.node_id is not None
    waived = not incident.expects_return or incident.release is not None
    in_place = incident.in_place is not None and incident.state is State.RIDDEN_THROUGH
    if not (in_place or incident.state is State.RELEASED) or not gated or waived:
        return
    back_at, at = incident.broker_back_at, incident.entered_at
    if back_at is None or back_at > at + CLOCKS_APART_SECONDS:
        what = "It ends" if in_place else "The instance may go"
        sentence = f"{what} before broker {incident.node_id} is back in every ISR."
        yield _break(incident, at, "gate", sentence)


def _one_out(incidents: Sequence[Incident]) -> Iterator[Break]:
    """No node is drained while another is out by our drain, members of one party apart."""
    sent = [(i.forwarded.first_at, i) for i in incidents if i.forwarded and _waits_for_turn(i)]
    sent.sort(key=lambda each: each[0])
    for place, (_, first) in enumerate(sent):
        for at, second in sent[place + 1 :]:
            if not _together(first, second) and _overlap(first, at):
                yield _break(
                    second,
                    at,
                    "one out",
                    f"Node {second.node_id} is drained while node {first.node_id} of incident "
                    f"{first.id} is out.",
                )


def _waits_for_turn(incident: Incident) -> bool:
    return incident.node_id is not None and incident.kind not in URGENT


def _together(one: Incident, other: Incident) -> bool:
    party = one.party is not None and one.party == other.party
    return party or instance_of(one.id) == instance_of(other.id)


def _overlap(first: Incident, sent_at: float) -> bool:
    """Say whether a drain is sent before the one sent before it has ended, for certain.

    What is retained or lost may be out for longer; its record does not say until when.
    """
    return first.open or sent_at < first.entered_at - CLOCKS_APART_SECONDS


def _rounds(incidents: Sequence[Incident]) -> Iterator[Break]:
    """An instance has one incident at a time, and none after it is gone."""
    by_instance: dict[str, list[Incident]] = {}
    for incident in incidents:
        by_instance.setdefault(incident.instance_id, []).append(incident)
    for rounds in by_instance.values():
        for before, after in pairwise(sorted(rounds, key=lambda i: round_of(i.id))):
            at = after.opened_at
            if before.state in _GONE:
                sentence = f"It is opened after incident {before.id} ended {before.state}."
                yield _break(after, at, "rounds", sentence)
            elif before.state not in TERMINAL or at < before.entered_at - CLOCKS_APART_SECONDS:
                yield _break(after, at, "rounds", f"It is opened while {before.id} is open.")


def _entered_at(incident: Incident, state: State) -> float | None:
    return next((t.at for t in incident.transitions if t.state is state), None)


_RULES: Sequence[Callable[[Incident], Iterator[Break]]] = (_steps, _drain_breaks, _silent_keeps)
RULES = ("steps", "order", "turn", "replacement", "paged", "gate", "one out", "rounds")
