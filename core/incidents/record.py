"""Remembers one incident per instance: its states, its sections, and how the ledger stores it.

The ledger stores an Incident whole, as flat JSON: one key a value, whatever sections the record has
(`SECTIONS`), so that the release before this one, the archive's reports and people read it. Of a
section that is stored in part, good news is believed only where it is whole, and bad news as soon
as any of it is there. A field that a newer release added is written back as it was, and an incident
whose kind or state this release does not know is read all the same: core.incidents.decide holds it
until a person looks. Announcements, people and groups change a record in core.incidents.joining,
readings in core.incidents.learn, decisions in core.incidents.actions; nothing else does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from core.events import Interruption, Kind
from core.events.announcements import URGENT
from core.events.health import ChangeResponse, answer_to
from core.ground.fields import UNREAD, field_values, own_document, take_word, unread_keys
from core.ground.naming import instance_of


class State(StrEnum):
    """Where an incident stands; DESIGN: How an interruption flows."""

    OPENED = "opened"
    REPLACING = "replacing"
    HOLDING = "holding"
    DRAINING = "draining"
    GATING = "gating"
    RELEASED = "released"
    RIDDEN_THROUGH = "ridden_through"
    CANCELLED = "cancelled"
    RETAINED = "retained"
    LOST = "lost"


TERMINAL = frozenset(
    {State.RELEASED, State.RIDDEN_THROUGH, State.CANCELLED, State.RETAINED, State.LOST}
)
# An incident that ends so leaves its instance where it is.
STAYS = frozenset({State.RETAINED, State.RIDDEN_THROUGH, State.CANCELLED})
# In the order of its way: nothing of Kafka's has been told to leave.
UNDRAINED = (State.OPENED, State.REPLACING, State.HOLDING)
_SIDE_EXITS = frozenset({State.CANCELLED, State.RETAINED, State.LOST})
# An instance that is lost without warning has nothing left to drain: it goes to the gate at once.
ALLOWED: Mapping[State, frozenset[State]] = {
    State.OPENED: _SIDE_EXITS
    | {State.REPLACING, State.DRAINING, State.GATING, State.RIDDEN_THROUGH},
    State.REPLACING: _SIDE_EXITS | {State.HOLDING, State.DRAINING, State.GATING},
    State.HOLDING: _SIDE_EXITS | {State.REPLACING, State.DRAINING, State.GATING},
    # A pod that was evicted may start again where it was: then nothing is to be gated.
    State.DRAINING: frozenset(
        {State.GATING, State.RELEASED, State.RETAINED, State.LOST, State.RIDDEN_THROUGH}
    ),
    State.GATING: frozenset({State.RELEASED, State.RETAINED, State.LOST, State.RIDDEN_THROUGH}),
    **{state: frozenset() for state in TERMINAL},
}
# Changes AWS makes as soon as it can: the date it gives is the latest, not the day.
EXPEDITED = "EXPEDITED"
_GRAVEST_FIRST = (ChangeResponse.RETIRE, ChangeResponse.RIDE_THROUGH, ChangeResponse.TELL)
# So long EC2's list may show what Health has closed.
LIST_LAGS_SECONDS = 900.0
# Health never says so many things about one machine; the item must stay small.
MOST_KEPT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledChange:
    """One event, as last heard of."""

    names: tuple[str, ...]  # Health's ARN and EC2's id of it, as far as they are known
    code: str | None
    due_at: float | None  # epoch seconds
    said_at: float
    closed: bool = False
    unread: Mapping[str, Any] = unread_keys()

    @property
    def answer(self) -> ChangeResponse:
        return answer_to(self.code)


def apply_word(
    known: tuple[ScheduledChange, ...], told: Interruption, now: float
) -> tuple[ScheduledChange, ...]:
    """Return what is scheduled after a word; one older than what is known of its event is none."""
    about = tuple(each for each in known if _is_about(told, each))
    last = max(
        about, key=lambda each: (told.health_event in each.names, each.said_at), default=None
    )
    if last is not None and told.is_outdated(last.said_at, now):
        return known
    names = (*(name for each in about for name in each.names), told.health_event)
    word = ScheduledChange(
        names=tuple(dict.fromkeys(name for name in names if name is not None)),
        code=told.event_type or (None if last is None else last.code),
        due_at=told.due_at or (None if last is None else last.due_at),
        said_at=told.said_at(now),
        closed=told.closed,
        unread={key: value for each in about for key, value in each.unread.items()},
    )
    kept = tuple(each for each in known if each not in about)
    return (*kept, word)[-MOST_KEPT:]


def is_another(known: Iterable[ScheduledChange], told: Interruption) -> bool:
    """Say whether a word is about an event of which nothing is known."""
    return not any(_is_about(told, each) for each in known)


def _is_about(told: Interruption, known: ScheduledChange) -> bool:
    name = told.health_event
    if name in known.names:
        return True
    if not _alike(told.event_type, known.code):
        return False
    if name is None or not known.names:
        return True
    # Health's name and EC2's for one event share nothing but what it is and when.
    named_alike = any(_is_health(each) == _is_health(name) for each in known.names)
    return not named_alike and told.due_at == known.due_at


def _alike(one: str | None, other: str | None) -> bool:
    """Say whether two codes may be one event's: EC2's and Health's differ, and mean the same."""
    return one is None or other is None or answer_to(one) is answer_to(other)


def _is_health(name: str) -> bool:
    return name.startswith("arn:")


def governing(
    known: Iterable[ScheduledChange], *, retiring: bool = False
) -> ScheduledChange | None:
    """Return the open event that decides: what ends the machine first, and the earliest of those.

    `retiring`: only what ends the machine, since its replacement has begun.
    """
    ahead = [each for each in known if not each.closed]
    if retiring:
        ahead = [each for each in ahead if each.answer is ChangeResponse.RETIRE]
    return min(ahead, key=_rank, default=None)


def _rank(each: ScheduledChange) -> tuple[int, bool, float]:
    unhurried = EXPEDITED not in (each.code or "").upper()
    due = float("inf") if each.due_at is None else each.due_at
    return _GRAVEST_FIRST.index(each.answer), unhurried, due


def is_known(known: Iterable[ScheduledChange], told: Interruption, now: float) -> bool:
    """Say whether a finding of EC2's list tells nothing new: the same event, date and end.

    AWS may schedule again, under the same name and for the same date, what it has called off.
    """
    same = _known_of_finding(known, told)
    if told.closed:
        # What was completed last week says nothing about what is planned now.
        return all(each.closed for each in same)
    return any(not each.closed or now - each.said_at <= LIST_LAGS_SECONDS for each in same)


def last_word_at(known: Iterable[ScheduledChange], told: Interruption) -> float | None:
    """Return when AWS last spoke of what a finding of EC2's list shows; None: it has not."""
    return max((each.said_at for each in _known_of_finding(known, told)), default=None)


def _known_of_finding(
    known: Iterable[ScheduledChange], told: Interruption
) -> list[ScheduledChange]:
    """Return what is known of a finding's event at its date; its own name counts before a date."""
    known = tuple(known)
    named = [each for each in known if told.health_event in each.names]
    return [
        each
        for each in named or known
        if _is_about(told, each)
        and _alike(each.code, told.event_type)
        and told.due_at in {None, each.due_at}
    ]


SOMEBODY = "Somebody in the cluster"  # a drainer that nobody can name


@dataclass(frozen=True, slots=True, kw_only=True)
class Drainer:
    """Who empties the node, where nobody of ours is sent to drain it."""

    name: str
    asked_at: float | None = None  # epoch seconds: when it last asked the gate to evict


class Reason(StrEnum):
    """Why Karpenter ends a node."""

    INTERRUPTION = "interruption"  # AWS takes the instance, or stops it
    EXPIRY = "expiry"  # older than expireAfter
    DRIFT = "drift"  # no longer what its NodePool and node class say
    CONSOLIDATION = "consolidation"  # its pods fit elsewhere, or it has none
    REPAIR = "repair"  # its agent, its kubelet or EC2 calls it sick
    ROTATION = "rotation"  # a run of ours has deleted its claim
    UNTOLD = "untold"  # a person's word, or a warning that Karpenter alone has heard


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDisruption:
    """What Karpenter does to the node (core.incidents.learn)."""

    reason: str
    forced_at: float | None = None  # epoch seconds: from then on no budget is asked


def disrupted_for(known: NodeDisruption | None, told: str) -> NodeDisruption:
    """Return a disruption with the reason that says more: a known one outlasts an untold one."""
    if known is None:
        return NodeDisruption(reason=told)
    return known if told == Reason.UNTOLD else replace(known, reason=told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """The drain that was sent: to the termination handler, or begun by us or by a gate's yes."""

    first_at: float  # epoch seconds
    last_at: float
    times: int = 1
    reported_at: float | None = None  # when its handler first said that an attempt had ended

    def again(self, at: float) -> Forwarding:
        """Count one more, sent at that time."""
        return replace(self, last_at=max(self.last_at, at), times=self.times + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The node that takes the pod over."""

    node: str  # its name
    ready_at: float  # epoch seconds: when it was found Ready


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFailure:
    """The group launches no instance: no capacity, for example."""

    since: float  # epoch seconds
    cause: str  # the latest, in AWS's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRefusal:
    """The group does not terminate the instance."""

    since: float  # epoch seconds
    words: str  # the group's own, the latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A person's word that the instance may go, whatever Kafka says."""

    by: str
    at: float  # epoch seconds: when it was said last


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """A root volume that is to be replaced under an instance, which stays."""

    image_id: str
    boot_id: str | None = None  # the machine's before it reboots
    tried_at: float | None = None  # when EC2 was asked whether it would
    asked_at: float | None = None  # when it was asked to
    task_id: str | None = None
    task_state: str | None = None  # EC2's word
    refusal: str | None = None  # why not: nothing is replaced, or the old root volume stays
    returned_at: float | None = None  # when the node was let take pods again
    unread: Mapping[str, Any] = unread_keys()

    @property
    def done(self) -> bool:
        """Say whether the instance has its new root volume."""
        return self.task_state == "succeeded"

    @property
    def over(self) -> bool:
        """Say whether nothing was replaced: nobody was let ask EC2, or its task failed."""
        failed = self.task_state == "failed"
        return failed or (self.refusal is not None and self.task_id is None)


# Reasons name partitions, so they vary; the item must stay far below DynamoDB's 400 KB.
MOST_NOTES = 200


@dataclass(frozen=True, slots=True)
class Transition:
    """A state the incident entered, or a reason that changed while it stayed."""

    at: float  # epoch seconds
    state: State
    actor: str
    reason: str
    unread: Mapping[str, Any] = unread_keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Everything the loop remembers about one instance that is leaving."""

    id: str
    instance_id: str
    kind: Kind
    state: State
    opened_at: float
    # When AWS said what the incident is about now: the clocks of its hooks started here.
    announced_at: float
    announcements: tuple[str, ...]  # dedupe keys of every announcement that joined
    group: str | None = None
    hooks: Mapping[str, str | None] = field(default_factory=dict)  # hook -> lifecycle token
    hooks_said: Mapping[str, float] = field(default_factory=dict)  # hook -> when AWS said so
    drain_event: str | None = None  # what the node termination handler is sent
    event_type: str | None = None
    due_at: float | None = None
    called_off: bool = False
    scheduled_said_at: float | None = None  # when AWS last said something about the schedule
    scheduled: tuple[ScheduledChange, ...] = ()  # all of it; the fields above are what governs
    party: str | None = None  # of a rotation run: whose nodes may be out together
    in_place: InPlace | None = None  # of a rotation run: no other instance takes over
    ahead: bool = False  # of a rotation run: its replacement is made ready, its turn comes later
    drainer: Drainer | None = None
    disruption: NodeDisruption | None = None
    # Learned from readings.
    zone: str | None = None
    pool: str | None = None
    node_name: str | None = None
    pod_name: str | None = None
    node_id: int | None = None  # Kafka's; None: no Kafka pod was found on the node
    role: str | None = None
    idle_since: float | None = None  # since when every reading has shown the node without Kafka
    replacement: Replacement | None = None
    broker_back_at: float | None = None
    lifecycle: str | None = None  # where the quorum last had the broker (core.health.kafka)
    # Done by the loop.
    expects_return: bool = True
    surge_to: int | None = None  # the desired capacity that makes room for the replacement
    spare: str | None = None  # the node kept from Cluster Autoscaler
    terminate_asked_at: float | None = None
    refusal: GroupRefusal | None = None  # what its group says when it is to terminate it
    failing_since: float | None = None  # since when no turn could carry out its actions
    blind_since: float | None = None  # since when nothing could be read
    ending_since: float | None = None  # since when EC2 says stopping, or shutting-down
    doubted_since: float | None = None  # since when no reading of Kafka is whole, or none comes
    turn_due_at: float | None = None  # it asked for its turn, which is due then; None: it does not
    forwarded: Forwarding | None = None
    lost_at: float | None = None  # EC2 confirmed that the machine runs nothing any more
    tainted_at: float | None = None
    leaders_moved_at: float | None = None
    heartbeat_at: float | None = None
    completed_at: float | None = None  # when a hook was first completed
    pages: tuple[str, ...] = ()
    # Said by a person, or by AWS about the group (core.incidents.joining).
    held_until: float | None = None
    kept_at: float | None = None  # when somebody was last seen to want the instance kept
    ignored_by: str | None = None
    release: Release | None = None
    launch_failure: LaunchFailure | None = None
    launches_said_at: float | None = None  # when the group last said something about its launches
    reason: str = ""
    transitions: tuple[Transition, ...] = ()
    notes: tuple[Transition, ...] = ()
    ticked_at: float | None = None
    next_tick_at: float | None = None
    version: int = 0
    # What a newer release wrote and this one cannot read; `to_json` writes it back.
    unread: Mapping[str, Any] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        return self.state not in TERMINAL

    def add_note(self, at: float, actor: str, sentence: str) -> Incident:
        """Return it with a sentence more about the state it stays in, while there is room."""
        if len(self.notes) >= MOST_NOTES:
            return self
        return replace(self, notes=(*self.notes, Transition(at, self.state, actor, sentence)))

    def held_to(self, now: float) -> float | None:
        """Return until when a person keeps the instance at that time; None: nobody does."""
        return self.held_until if now < (self.held_until or 0.0) else None

    @property
    def unreadable(self) -> str | None:
        """Return the word of a newer release without which nobody but a person can decide."""
        words = [str(self.unread[n]) for n in ("kind", "state") if n in self.unread]
        decided = self.release is not None or self.ignored_by is not None
        unknown = not decided and any("state" in each.unread for each in self.transitions)
        return " ".join(words) or ("a state" if unknown else None)

    @property
    def urgent(self) -> bool:
        return self.kind in URGENT

    @property
    def is_hooked(self) -> bool:
        """Say whether lifecycle hooks hold the instance; one announcement stands for both."""
        return bool(self.hooks) and self.group is not None

    @property
    def is_evicted(self) -> bool:
        """Say whether an eviction alone asks for it: what AWS announces later governs it."""
        return self.kind is Kind.EVICTION

    @property
    def awaits_turn(self) -> bool:
        """Say whether the node goes as soon as nobody else is out: it waits for that, or is let go.

        One for which a run only makes ready may have a word or a date of others, by which it goes.
        """
        others_say = (self.release, self.scheduled_said_at, self.disruption)
        if self.ahead and not (self.is_hooked or any(others_say)):
            return False
        undrained = self.state in {State.OPENED, State.REPLACING}
        return self.state is State.HOLDING or (undrained and self.release is not None)

    @property
    def taken_at(self) -> float | None:
        """Return when AWS ends the machine; a date at which it gives it back is none."""
        stays = (
            self.scheduled_said_at is not None
            and answer_to(self.event_type) is not ChangeResponse.RETIRE
        )
        return None if stays else self.due_at

    @property
    def let_go_by(self) -> str | None:
        """Return who has let go of it in the state it is in; None: nobody has."""
        asked = self.release
        return asked.by if asked is not None and asked.at > self.entered_at else None

    @property
    def replacement_node(self) -> str | None:
        """Return the name of the node that takes the pod over; None: none was found yet."""
        return None if self.replacement is None else self.replacement.node

    @property
    def entered_at(self) -> float:
        """Return when the present state began."""
        return self.transitions[-1].at

    @property
    def held_since(self) -> float:
        """Return when the loop began to hold the instance for what governs the incident now.

        A retirement stays open for days before the termination that follows it joins; an
        announcement may also reach us long after it was made.
        """
        return max(self.opened_at, self.announced_at)

    @property
    def waits_since(self) -> float:
        """Return from when the hold limit counts: not while a person or a frozen zone keeps it."""
        return max(self.held_since, self.kept_at or 0.0)


def is_unattended(incident: Incident, now: float, late_seconds: float) -> bool:
    """Say whether nothing carries an open incident any more: its tick is that late."""
    expected = max(incident.ticked_at or incident.opened_at, incident.next_tick_at or 0.0)
    return incident.open and now - expected > late_seconds


# What stands in the place of a word that cannot be read: open, and nothing that acts by itself.
_KIND, _STATE = Kind.STATE_CHANGE, State.HOLDING
_STATES = frozenset(State)
_OPEN = _STATES - TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """How a section of the record stands in the document."""

    build: Callable[..., Any]
    keys: Mapping[str, str]  # its attributes -> the document's keys
    may_lack: frozenset[str] = frozenset()  # attributes that a whole one may be without
    absent: Mapping[str, Any] = field(default_factory=dict)  # keys that are not null without it
    # What a value that is missing is taken for; None: then the section is not believed at all.
    at_worst: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None

    def flat(self, values: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the section as keys of the document."""
        if values is None:
            return {key: self.absent.get(key) for key in self.keys.values()}
        return {key: values[name] for name, key in self.keys.items()}

    def read(self, stored: Mapping[str, Any]) -> Any:
        """Return the section that a document holds; None: its story has not begun."""
        said = {
            name: value
            for name, key in self.keys.items()
            if (value := stored.get(key)) not in (None, self.absent.get(key))
        }
        lacking = self.keys.keys() - self.may_lack - said.keys()
        if not said or (lacking and self.at_worst is None):
            return None
        assumed = self.at_worst(stored) if lacking and self.at_worst is not None else {}
        return self.build(**{**assumed, **said})


def _sent_at_worst(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take a drain for sent more than once: then its handler's word does not end it."""
    known = (stored.get(key) for key in ("forwarded_at", "forwarded_last_at"))
    at = next((each for each in known if each is not None), stored["opened_at"])
    return {"first_at": at, "last_at": at, "times": 2}


SECTIONS: Mapping[str, Section] = {
    "drainer": Section(
        build=Drainer,
        keys={"name": "asked_by", "asked_at": "asked_at"},
        may_lack=frozenset({"asked_at"}),
        at_worst=lambda _: {"name": SOMEBODY},
    ),
    "disruption": Section(
        build=NodeDisruption,
        keys={"reason": "disruption", "forced_at": "forced_at"},
        may_lack=frozenset({"forced_at"}),
        at_worst=lambda _: {"reason": Reason.UNTOLD.value},
    ),
    "replacement": Section(
        build=Replacement, keys={"node": "replacement", "ready_at": "replacement_ready_at"}
    ),
    "forwarded": Section(
        build=Forwarding,
        keys={
            "first_at": "forwarded_at",
            "last_at": "forwarded_last_at",
            "times": "forwards",
            "reported_at": "drain_reported_at",
        },
        may_lack=frozenset({"reported_at"}),
        absent={"forwards": 0},
        at_worst=_sent_at_worst,
    ),
    "refusal": Section(
        build=GroupRefusal,
        keys={"since": "refused_at", "words": "refusal"},
        at_worst=lambda stored: {"since": stored["opened_at"], "words": "it gives no reason"},
    ),
    "launch_failure": Section(
        build=LaunchFailure,
        keys={"since": "launch_failed_at", "cause": "launch_failure"},
        at_worst=lambda stored: {"since": stored["opened_at"], "cause": "AWS gave no cause"},
    ),
    "release": Section(build=Release, keys={"by": "release_asked_by", "at": "release_asked_at"}),
}
# What a turn of this release writes even where it cannot read the rest.
_ADDED_MEANWHILE = frozenset(
    {"pages", "reason", "notes", "heartbeat_at", "next_tick_at", "ticked_at", "version"}
)
# Of what stands in a document's place, so much is kept as evidence.
LONGEST_KEPT = 4096
_OWN = Incident.__dataclass_fields__.keys() - SECTIONS.keys() - {UNREAD}
_KNOWN = _OWN | {key for section in SECTIONS.values() for key in section.keys.values()}
_TIMED = frozenset(key for key in _KNOWN if key.endswith(("_at", "_until", "_since")))
_MOMENT = (int, float, type(None))


def flat(incident: Incident) -> dict[str, Any]:
    """Return an incident's fields as the ledger names them, without what it could not read."""
    document = own_document(incident)
    sections = {name: document.pop(name) for name in SECTIONS}
    for name, section in SECTIONS.items():
        document |= section.flat(sections[name])
    return document


def to_json(incident: Incident) -> str:
    """Return the document of an incident, with what a newer release had written into it."""
    document = {**flat(incident), **incident.unread}
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def from_json(document: str) -> Incident:
    """Read what any release wrote; raises KeyError for what names no incident.

    AttributeError, TypeError or ValueError for what is no document at all.
    """
    stored: dict[str, Any] = json.loads(document)
    try:
        return _read(stored)
    except (AttributeError, KeyError, TypeError, ValueError):
        return _unreadable_incident(stored)


def undocumented_incident(id_: str, text: str) -> Incident:
    """Stand in for an incident of which the ledger has no document that anybody can read."""
    return _unreadable_incident({"id": id_, "kind": "no document", "text": text[:LONGEST_KEPT]})


def _unreadable_incident(stored: Mapping[str, Any]) -> Incident:
    """Stand in for an incident whose parts cannot be read; all of it but what this release adds
    is written back as it was.
    """
    state = State(stored["state"]) if stored.get("state") in _STATES else _STATE
    at = _moment(stored, "opened_at") or 0.0
    hooks, pages, group = stored.get("hooks"), stored.get("pages"), stored.get("group")
    return Incident(
        id=stored["id"],
        instance_id=str(stored.get("instance_id") or instance_of(stored["id"])),
        kind=_KIND,
        state=_STATE if state in _OPEN else state,
        opened_at=at,
        announced_at=at,
        announcements=(),
        group=group if isinstance(group, str) else None,
        hooks=hooks if isinstance(hooks, dict) else {},
        pages=tuple(pages) if isinstance(pages, list) else (),
        transitions=(Transition(at, state, "codec", "It cannot be read."),),
        heartbeat_at=_moment(stored, "heartbeat_at"),
        next_tick_at=_moment(stored, "next_tick_at"),
        ticked_at=_moment(stored, "ticked_at"),
        unread={k: v for k, v in stored.items() if k not in _ADDED_MEANWHILE},
    )


def _moment(stored: Mapping[str, Any], name: str) -> float | None:
    value = stored.get(name)
    return float(value) if isinstance(value, int | float) else None


def _read(stored: Mapping[str, Any]) -> Incident:
    for name, value in stored.items():
        if name in _TIMED and not isinstance(value, _MOMENT):
            raise TypeError(f"{name} is {value!r}, and no time.")
    known = {k: v for k, v in stored.items() if k in _OWN}
    known[UNREAD] = {k: v for k, v in stored.items() if k not in _KNOWN}
    take_word(known, "kind", Kind, _KIND)
    take_word(known, "state", State, _STATE)
    for name in ("announcements", "pages"):
        known[name] = tuple(known[name])
    for name in ("transitions", "notes"):
        entries = [field_values(Transition, each) for each in stored[name]]
        for entry in entries:
            take_word(entry, "state", State, _STATE)
        known[name] = tuple(Transition(**entry) for entry in entries)
    place = known.get("in_place")
    known["in_place"] = None if place is None else InPlace(**field_values(InPlace, place))
    changes = (field_values(ScheduledChange, each) for each in known.get("scheduled", ()))
    known["scheduled"] = tuple(
        ScheduledChange(**{**each, "names": tuple(each["names"])}) for each in changes
    )
    sections = {name: section.read(stored) for name, section in SECTIONS.items()}
    return Incident(**known, **sections)
