"""Finds by comparing lists what was lost: announcements, ticks, machines that are sick or apart.

handlers.sweep reads groups, instances, status checks, nodes and the ledger, asks `turn` whose turn
it is, and acts on `findings`: announcements as AWS should have made them, and wake-ups; and frees a
lease that `is_stranded`. All may be repeated without harm, so a sweep that dies half-way, or runs
twice, changes nothing. A person is told, once a day while it lasts, of machines that no group looks
after (standby, detached, warm pool, groups gone) and of pods that are out while no incident has
called for them.

Three watch a node for sickness: the node monitoring agent by its conditions, the kubelet by Ready,
EC2 by its checks. Two of them are believed within minutes. One alone must last as long as EKS
itself waits, and a node that is sick in its first hour is a person's: the next one may be born with
the same. One machine leaves at a time, and none where more than a share of a zone or of the cluster
is sick: that is a zone's incident, or an image's, and no departure mends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.availability.lease import Lease
from core.events import Interruption, Kind, VolumeChange
from core.ground.naming import GATE_HOOK
from core.incidents.joining import scheduled_changes
from core.incidents.learn import KARPENTER, disruption_of
from core.incidents.observation import GroupView, NodeClaim, NodeView, PodView, StatusView
from core.incidents.planned import serves_on
from core.incidents.record import (
    UNDRAINED,
    Incident,
    ScheduledChange,
    State,
    is_another,
    is_known,
    is_unattended,
    last_word_at,
)
from core.incidents.replacement import causes, joined

# What a group does with an instance in the ordinary course; hooks of both kinds among it.
_ORDINARY = ("InService", "Pending", "Terminating", "Terminated")
MOST_NAMED = 5


def set_aside(
    groups: Sequence[GroupView],
    nodes: Sequence[NodeView],
    states: Mapping[str, str],
    leaving: Collection[str],
    claims: Sequence[NodeClaim] | None,
) -> Iterator[Concern]:
    """Yield a concern for each running node whose group has it elsewhere, or not at all.

    `states` is EC2's of our instances, `leaving` those with an open incident. Karpenter's machines
    belong to no group, by their `claims`; None: nobody told, so none is known to belong nowhere.
    """
    claimed = {claim.instance_id for claim in claims or ()}
    lifecycles = {id_: state for group in groups for id_, state in group.instances.items()}
    running = [
        node
        for node in nodes
        if node.instance_id is not None
        and states.get(node.instance_id) == "running"
        and node.instance_id not in leaving
    ]
    nowhere = [
        node
        for node in running
        if node.instance_id not in lifecycles
        and claims is not None
        and node.instance_id not in claimed
    ]
    if nowhere and not groups:
        yield _groupless_concern(nowhere)
        nowhere = []
    for node in running:
        lifecycle = lifecycles.get(node.instance_id or "")
        elsewhere = lifecycle is not None and not lifecycle.startswith(_ORDINARY)
        if elsewhere or node in nowhere:
            yield _set_aside_concern(node, lifecycle)


def _groupless_concern(nodes: Sequence[NodeView]) -> Concern:
    named = ", ".join(f"{node.instance_id}" for node in nodes[:MOST_NAMED])
    more = f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else ""
    return Concern(
        key="set_aside:no groups",
        page="set_aside",
        reason=(
            f"Kafka runs on machines ({named}{more}) without an Auto Scaling group or a NodeClaim. "
            "Nothing replaces one that dies, and no hook holds it. Were the groups deleted, or "
            "their tag or name changed? Make them again, and attach the machines (`aws "
            "autoscaling attach-instances`)."
        ),
    )


def _set_aside_concern(node: NodeView, lifecycle: str | None) -> Concern:
    where = "in no group of the cluster" if lifecycle is None else f"{lifecycle} there"
    remedy = (
        "Attach it again (`aws autoscaling attach-instances`)"
        if lifecycle is None
        else "Put it in service again (`aws autoscaling exit-standby`), or wait if AWS is at work"
    )
    return Concern(
        key=f"set_aside:{node.instance_id}:{lifecycle or 'detached'}",
        page="set_aside",
        reason=(
            f"Instance {node.instance_id} ({node.name}) runs Kafka and is {where}: nothing "
            f"replaces it, and no hook holds it when it ends. {remedy}, or move its broker away "
            "first."
        ),
    )


# A broker that was not stopped cleanly may read its log for that long before it is Ready.
LEFT_OUT_SECONDS = 1800.0


def left_out(
    pods: Sequence[PodView], incidents: Sequence[Incident], now: float
) -> Iterator[Concern]:
    """Yield a concern for each pod that is out since so long; `incidents` are the open ones.

    An incident answers for its pod while it moves on, or once it has called a person itself.
    """
    cared_for = {
        incident.pod_name
        for incident in incidents
        if incident.pages or now - incident.entered_at < LEFT_OUT_SECONDS
    }
    for pod in pods:
        if pod.ready or pod.name in cared_for or pod.out_since is None:
            continue
        if now - pod.out_since >= LEFT_OUT_SECONDS:
            yield _left_out_concern(pod, now - pod.out_since)


def _left_out_concern(pod: PodView, seconds: float) -> Concern:
    where = f"on {pod.node_name}" if pod.node_name else "on no node"
    trouble = joined(causes(pod, None))
    return Concern(
        key=f"left_out:{pod.name}",
        page="left_out",
        reason=(
            f"Kafka node {pod.node_id} is out for {seconds / 60:.0f} minutes, and no incident has "
            f"called a person about it. Pod {pod.name} is {where}{trouble}. `kubectl describe pod "
            f"{pod.name}` says what it waits for."
        ),
    )


# A failed check must last: EC2 reports every reboot as one.
IMPAIRED_SECONDS = 120.0
# A group shows within minutes that an instance was let go.
STANDING_SECONDS = 300.0
_GONE = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
RETAINED = "Terminating:Retained"
_WAITING = frozenset({"Terminating:Wait", RETAINED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What one run of the sweep has read."""

    now: float  # epoch seconds
    groups: tuple[GroupView, ...] = ()
    states: Mapping[str, str] = field(default_factory=dict)  # our instance -> EC2's state of it
    nodes: tuple[NodeView, ...] | None = None  # Kafka's; None: Kubernetes did not answer
    pods: tuple[PodView, ...] = ()  # Kafka's, as far as Kubernetes told
    claims: tuple[NodeClaim, ...] | None = ()  # Karpenter's that leave; None: nobody told
    standing: tuple[NodeClaim, ...] = ()  # Karpenter's of Kafka's pools that it means to keep
    incidents: tuple[Incident, ...] = ()  # the open ones
    zones_in_trouble: frozenset[str] = frozenset()  # names of zones with an incident of their own
    # Of the instances whose turn it is.
    statuses: Mapping[str, StatusView] = field(default_factory=dict)

    def instance_ids(self) -> tuple[str, ...]:
        """Return every instance anything is known of, in a fixed order."""
        known = set(self.states)
        known.update(id_ for group in self.groups for id_ in group.instances)
        known.update(node.instance_id for node in self.nodes or () if node.instance_id)
        known.update(claim.instance_id for claim in self.standing if claim.instance_id)
        known.update(incident.instance_id for incident in self.incidents)
        return tuple(sorted(known))


@dataclass(frozen=True, slots=True)
class Concern:
    """Something about machines that a person decides; told once a day for each key."""

    key: str
    reason: str
    page: str


@dataclass(frozen=True, slots=True)
class Announce:
    """An announcement that never came, or whose incident is to be told that it is over."""

    interruption: Interruption
    reason: str
    # A state may be entered again after an incident about it; an event is one for ever.
    recurring: bool = False
    retained: bool = False  # the group keeps the instance already
    hooked: bool = False  # the group has it in its hooks, or keeps it
    housed: bool = False  # a Kafka pod is on its node

    def recurrence(self, number: int) -> Interruption:
        """Return the announcement as one of an instance's incident number so-and-so."""
        if not self.recurring:
            return self.interruption
        key = f"{self.interruption.dedupe_key}:{number}"
        return replace(self.interruption, dedupe_key=key)


@dataclass(frozen=True, slots=True)
class Wake:
    """An incident to look at now."""

    incident: Incident
    reason: str


Finding = Announce | Wake | Concern
_SICK = f"sweep:{Kind.SICK_NODE.value}:"


def turn(instance_ids: Sequence[str], after: str, most: int) -> tuple[tuple[str, ...], str]:
    """Return whose turn it is after a cursor, at most so many, and the next cursor.

    The order is that of the ids and the end is followed by the beginning, so everybody has a turn
    within ceil(count / most) runs, whoever comes and goes meanwhile.

    >>> turn(("a", "b", "c"), "b", 2)
    (('c', 'a'), 'a')
    """
    ordered = sorted(instance_ids)
    later = [id_ for id_ in ordered if id_ > after]
    chosen = tuple((later + [id_ for id_ in ordered if id_ <= after])[:most])
    return chosen, chosen[-1] if chosen else ""


def findings(seen: Snapshot, whose_turn: Sequence[str], late_seconds: float) -> Iterator[Finding]:
    """Yield what is lost or stuck among the instances whose turn it is."""
    for instance_id in whose_turn:
        incident = next((i for i in seen.incidents if i.instance_id == instance_id), None)
        missing = tuple(_missing_announcements(seen, instance_id, incident))
        yield from missing
        if incident is not None and not missing:
            yield from _overdue_wakes(seen, incident, late_seconds)
    yield from _disruptions(seen)
    yield from sickness_findings(seen)
    yield from left_out(seen.pods, seen.incidents, seen.now)
    # An incident that has begun calls for its machine itself.
    waits = (i for i in seen.incidents if i.state is State.OPENED and serves_on(i, seen.now))
    leaving = {i.instance_id for i in seen.incidents} - {i.instance_id for i in waits}
    claims = None if seen.claims is None else (*seen.claims, *seen.standing)
    yield from set_aside(seen.groups, seen.nodes or (), seen.states, leaving, claims)


def is_stranded(lease: Lease, holder: Incident | None, now: float) -> bool:
    """Say whether a lease outlives the incident it was taken for.

    A function may take it for an incident that another has just ended, and die before it gives it
    back; nobody else then rotates anything until it expires. One that was used outlives its
    incident rightly, until its drain has ended safely.
    """
    lapses = lease.out_at is None and now < lease.expires_at
    return lapses and holder is not None and not holder.open


def is_answered(history: Sequence[Incident], found: Announce, now: float) -> bool:
    """Say whether those of an instance's incidents that are over have dealt with a finding."""
    told = found.interruption
    if found.retained and history and history[-1].state is State.RETAINED:
        return True
    over = [past for past in history if not past.open]
    if told.kind is Kind.SCHEDULED_CHANGE:
        if len(over) < len(history):
            return False  # The open one was asked already, and knows of it what is new.
        last = next(
            (past for past in reversed(over) if not is_another(scheduled_changes(past), told)), None
        )
        return last is not None and is_known(_dealt_with(last), told, now)
    return any(told.dedupe_key in past.announcements for past in over)


def _dealt_with(over: Incident) -> Iterator[ScheduledChange]:
    """Yield the events that an incident is over with; cancelled, it has left to come what is open.

    So has one with a new root volume, or of others' drain. Whoever wanted it ignored has dealt with
    all of them.
    """
    stays = over.in_place is not None and over.state is State.RIDDEN_THROUGH
    others = over.kind is Kind.EVICTION
    left = (stays or others or over.state is State.CANCELLED) and over.ignored_by is None
    return (each for each in scheduled_changes(over) if each.closed or not left)


def stands(history: Sequence[Incident], found: Announce, now: float) -> bool:
    """Say whether a group still has an instance whose last incident let it go.

    Its hooks refused their completion, or ran out: nobody else would look at it again.
    """
    if not (found.hooked and history):
        return False
    last = history[-1]
    let_go = last.state in {State.RELEASED, State.LOST}
    return let_go and now - last.entered_at > STANDING_SECONDS


def died_again(history: Sequence[Incident], found: Announce) -> bool:
    """Say whether a machine that was given up as lost holds a broker, and has ended by EC2's word.

    It was started again and took a broker, or EC2 had not confirmed its end when it was given up:
    what it holds is freed. One that was freed, and whose broker never came back, is a person's.
    """
    last = history[-1] if history else None
    if last is None or last.state is not State.LOST or not found.housed:
        return False
    return last.broker_back_at is not None or last.lost_at is None


def _missing_announcements(
    seen: Snapshot, instance_id: str, incident: Incident | None
) -> Iterator[Announce]:
    """Yield what should have been announced of an instance and has not joined its incident."""
    for found in (
        *_leaving(seen, instance_id, incident),
        *_scheduled_by_ec2(seen, instance_id, incident),
    ):
        known = incident is not None and found.interruption.dedupe_key in incident.announcements
        pointless = incident is None and found.interruption.closed
        # An open incident sees by itself that its group keeps the instance.
        answered = incident is not None and (
            found.retained or _answers(incident, found.interruption, seen.now)
        )
        if not (known or pointless or answered):
            yield found


def _answers(incident: Incident, found: Interruption, now: float) -> bool:
    """Say whether an open incident is about this already, by another announcement of it."""
    if found.kind is Kind.SCHEDULED_CHANGE:
        return is_known(scheduled_changes(incident), found, now)
    # Of a state change: its ticks ask EC2 themselves.
    return found.kind is Kind.STATE_CHANGE or bool(incident.hooks)


def _leaving(seen: Snapshot, instance_id: str, incident: Incident | None) -> Iterator[Announce]:
    """Yield what hooks, EC2's state and the checks say of an instance."""
    for group in seen.groups:
        lifecycle = group.lifecycle_of(instance_id)
        if lifecycle in _WAITING:
            yield Announce(
                replace(
                    _announcement(Kind.ASG_TERMINATE, instance_id, "terminate"),
                    group=group.name,
                    hook=GATE_HOOK,  # either hook's name stands for both
                ),
                f"{instance_id} is {lifecycle} in {group.name}.",
                recurring=True,
                retained=lifecycle == RETAINED,
                hooked=True,
            )
            return
    node = next((n for n in seen.nodes or () if n.instance_id == instance_id), None)
    state = seen.states.get(instance_id)
    if node is not None and (state in _GONE or instance_id not in seen.states):
        said = state or "unknown to EC2"
        yield Announce(
            replace(_announcement(Kind.STATE_CHANGE, instance_id, "gone"), instance_state=state),
            f"{instance_id} is {said}, and {node.name} is still a Node.",
            recurring=True,
            housed=any(pod.node_name == node.name for pod in seen.pods),
        )
        return
    claim = next((c for c in seen.standing if c.instance_id == instance_id), None)
    if claim is not None and claim.joined and (state in _GONE or state is None):
        # The Node goes with the machine, by the cloud's own controller: no second word of it.
        told = _announcement(Kind.STATE_CHANGE, instance_id, "gone before its claim")
        yield Announce(
            replace(told, instance_state=state),
            f"{instance_id} is {state or 'unknown to EC2'}, and NodeClaim {claim.name} stands.",
        )
        return
    yield from _failing(seen, instance_id, incident)


def _disruptions(seen: Snapshot) -> Iterator[Announce]:
    """Yield what Karpenter ends, or is about to, before it has asked for an eviction.

    There may be no gate to ask, and a deadline that runs is a person's matter from its beginning.
    """
    hosts = {pod.node_name for pod in seen.pods}
    for claim in seen.claims or ():
        if claim.node_name is None or claim.node_name not in hosts:
            continue
        status = seen.statuses.get(claim.instance_id or "")
        found = disruption_of(claim, seen.now, status)
        if found is None or claim.instance_id is None:
            continue
        told = _announcement(Kind.EVICTION, claim.instance_id, f"{claim.uid} {found.reason.value}")
        yield Announce(
            replace(told, event_type=KARPENTER, disruption=found.reason.value),
            found.sentence,
            recurring=True,
        )


def _failing(seen: Snapshot, instance_id: str, incident: Incident | None) -> Iterator[Announce]:
    """Yield checks that have failed for long where no node of Kafka's stands, as far as is seen.

    A node's are signs of its sickness (`signs_of`); one that leaves is no news.
    """
    status = seen.statuses.get(instance_id)
    is_node = any(n.instance_id == instance_id for n in seen.nodes or ())
    if status is None or incident is not None or is_node:
        return
    for check, since in sorted(status.impaired.items()):
        if seen.now - since < IMPAIRED_SECONDS:
            continue
        stalled = check == "attached EBS"
        yield Announce(
            replace(
                _announcement(
                    Kind.VOLUME_PROBLEM if stalled else Kind.INSTANCE_ISSUE,
                    instance_id,
                    f"{check} {since:.0f}",
                ),
                event_type=VolumeChange.STALLED_IO if stalled else f"an impaired {check} check",
            ),
            f"EC2's {check} check of {instance_id} has failed for {seen.now - since:.0f} s.",
        )


def _scheduled_by_ec2(
    seen: Snapshot, instance_id: str, incident: Incident | None
) -> Iterator[Announce]:
    status = seen.statuses.get(instance_id)
    known = () if incident is None else scheduled_changes(incident)
    for event in status.events if status else ():
        told = replace(
            _announcement(Kind.SCHEDULED_CHANGE, instance_id, ""),
            event_type=event.health_code,
            health_event=event.event_id or None,
            due_at=event.not_before,
            closed=event.over,
        )
        key = f"{told.dedupe_key}{event.name(last_word_at(known, told))}"
        yield Announce(
            replace(told, dedupe_key=key, event_id=key),
            f"EC2 has {event.code} on its list for {instance_id}: {event.description}",
            recurring=True,
        )


def _overdue_wakes(seen: Snapshot, incident: Incident, late_seconds: float) -> Iterator[Wake]:
    """Yield an incident whose tick got lost, or which waits for what has happened already."""
    if is_unattended(incident, seen.now, late_seconds):
        yield Wake(incident, f"No tick carried incident {incident.id}.")
        return
    ended = seen.states.get(incident.instance_id, "terminated") in {"stopped", "terminated"}
    sleeps = (incident.next_tick_at or 0.0) - seen.now > late_seconds
    if ended and sleeps and incident.state in UNDRAINED:
        yield Wake(incident, f"Instance {incident.instance_id} has ended; its incident sleeps on.")


def _announcement(kind: Kind, instance_id: str, what: str) -> Interruption:
    """Return what EventBridge should have said, as far as it is the same for every kind."""
    return Interruption(
        kind=kind,
        instance_id=instance_id,
        event_id=f"sweep-{instance_id}-{what}",
        dedupe_key=f"sweep:{kind.value}:{instance_id}:{what}",
        account=None,
        region=None,
        occurred_at=None,
        body="",
    )


AGENT, KUBELET, EC2 = "node monitoring agent", "kubelet", "EC2"
# EKS's own repair waits 30 minutes for the agent's conditions and for Ready. EC2 moves an instance
# whose host fails to another one by itself, within minutes.
ALONE_SECONDS: Mapping[str, float] = {AGENT: 1800.0, KUBELET: 1800.0, EC2: 600.0}
# EC2 reports every reboot as a failed check, and a node that reboots is not Ready.
TOGETHER_SECONDS = 120.0
YOUNG_SECONDS = 3600.0
# aws/eks-node-monitoring-agent#215: one line of a log at boot makes a condition False for days.
BOOT_SECONDS = 600.0
# More sick machines than this part of a zone, or of the cluster, have one cause. One is one.
MOST_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that is wrong with a machine, by one of those who watch it."""

    source: str
    what: str
    since: float  # epoch seconds


@dataclass(frozen=True, slots=True)
class Patient:
    """A node of Kafka's with signs that have lasted, on an instance that runs."""

    node: NodeView
    signs: tuple[Sign, ...]

    @property
    def key(self) -> str:
        """Name this sickness: another sign, or the same one anew, is another."""
        return ",".join(f"{s.what}@{s.since:.0f}" for s in self.signs)

    @property
    def what(self) -> str:
        return "; ".join(f"{s.source}: {s.what}" for s in self.signs)

    @property
    def sentence(self) -> str:
        return f"{self.node.name} is sick: {self.what}"


def sickness_findings(seen: Snapshot) -> Iterator[Announce | Concern]:
    """Yield who is well again, else who is to leave, the clearest case first, or whom to call.

    Of the departures one is to be begun; the next has its turn when that one is over.
    """
    running = {instance_id for instance_id, state in seen.states.items() if state == "running"}
    nodes = [n for n in seen.nodes or () if n.zone and n.instance_id in running]
    leaving = [incident for incident in seen.incidents if not serves_on(incident, seen.now)]
    treated = [i for i in leaving if any(k.startswith(_SICK) for k in i.announcements)]
    if treated:
        yield from _recoveries(nodes, treated, seen)
        return
    ids = {incident.instance_id for incident in leaving}
    standing = [n for n in nodes if n.instance_id not in ids]
    sick = [patient for n in standing if (patient := _patient(n, seen))]
    common = _common_cause(sick, standing)
    if common is not None:
        yield common
        return
    for patient in sorted(sick, key=_clearest):
        if patient.node.zone in seen.zones_in_trouble:
            continue  # It bears the zone's incident out, which pages and freezes.
        if not _signs_last(patient.signs, seen.now):
            continue
        id_ = patient.node.instance_id or ""
        doubt = _sickness_doubt(patient)
        if doubt is None:
            told = _announcement(Kind.SICK_NODE, id_, patient.key)
            yield Announce(replace(told, event_type=patient.what), f"{patient.sentence}.")
        else:
            yield Concern(f"sick:{id_}:{patient.key}", doubt, page="sick")


def signs_of(node: NodeView, status: StatusView | None) -> tuple[Sign, ...]:
    """Return everything that is wrong with a node, however short it has been so."""
    found = [Sign(AGENT, f"{what}=False", since) for what, since in sorted(node.sick.items())]
    if node.unready_since is not None:
        found.append(Sign(KUBELET, "not Ready", node.unready_since))
    checks = {} if status is None else status.impaired
    found += [Sign(EC2, f"{check} check", since) for check, since in sorted(checks.items())]
    return tuple(found)


def _patient(node: NodeView, seen: Snapshot) -> Patient | None:
    found = signs_of(node, seen.statuses.get(node.instance_id or ""))
    lasting = tuple(s for s in found if seen.now - s.since >= TOGETHER_SECONDS)
    return Patient(node, lasting) if lasting else None


def _recoveries(
    nodes: Sequence[NodeView], treated: Sequence[Incident], seen: Snapshot
) -> Iterator[Announce]:
    """Call departures off of machines that all three call well; EC2's silence proves nothing.

    One that has begun cannot be called off, nor one that is wanted for another reason by now.
    """
    by_instance = {incident.instance_id: incident for incident in treated}
    for node in nodes:
        incident = by_instance.get(node.instance_id or "")
        status = seen.statuses.get(node.instance_id or "")
        if incident is None or status is None or not node.ready or signs_of(node, status):
            continue
        begun = incident.called_off or incident.terminate_asked_at is not None
        if incident.kind is Kind.SICK_NODE and not begun and incident.state in UNDRAINED:
            what = f"well:{len(incident.announcements)}"
            told = _announcement(Kind.SICK_NODE, incident.instance_id, what)
            yield Announce(replace(told, closed=True), f"{incident.instance_id} is well again.")


def _common_cause(sick: Sequence[Patient], nodes: Sequence[NodeView]) -> Concern | None:
    """Recognise a trouble that more machines have than one departure mends."""
    standing = Counter(n.zone for n in nodes)
    for zone, count in sorted(Counter(p.node.zone for p in sick).items(), key=str):
        if _too_many(count, standing[zone]):
            return _shared_sickness(f"{count} of {standing[zone]} of zone {zone}", sick)
    if _too_many(len(sick), len(nodes)):
        return _shared_sickness(f"{len(sick)} of {len(nodes)} of the cluster", sick)
    return None


def _too_many(count: int, standing: int) -> bool:
    return count > 1 and count > standing * MOST_SHARE


def _shared_sickness(whose: str, sick: Sequence[Patient]) -> Concern:
    named = sorted(p.node.instance_id or "" for p in sick)
    told = "; ".join(p.sentence for p in sick[:3])
    reason = (
        f"{whose} of Kafka's machines are unhealthy at once. Replacing them would not help: none "
        f"is replaced, and a person decides. {told}."
    )
    return Concern(f"sick_together:{','.join(named)}", reason, page="sick")


def _clearest(patient: Patient) -> tuple[int, float, str]:
    sources = len({s.source for s in patient.signs})
    return (-sources, min(s.since for s in patient.signs), patient.node.name)


def _signs_last(signs: Sequence[Sign], now: float) -> bool:
    """Say whether two who watch agree, or one has said so for as long as one alone must."""
    return len({s.source for s in signs}) > 1 or any(
        now - s.since >= ALONE_SECONDS[s.source] for s in signs
    )


def _sickness_doubt(patient: Patient) -> str | None:
    """Say why a person is asked before a machine is replaced; None: nothing speaks against it."""
    born = patient.node.created_at
    first = min(s.since for s in patient.signs)
    if born is None:
        return None
    if first - born < BOOT_SECONDS and {s.source for s in patient.signs} == {AGENT}:
        return (
            f"{patient.sentence}, from its first minutes on, and neither EC2 nor its kubelet bears "
            f"that out. The agent may never have looked again: restart its pod on the node, and "
            f"replace the node if it says the same."
        )
    if first - born < YOUNG_SECONDS:
        return (
            f"{patient.sentence}, within an hour of its birth. It is not replaced: look for what "
            f"another machine of the same template would have, too."
        )
    return None
