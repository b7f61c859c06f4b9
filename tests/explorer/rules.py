"""Judges an explored world: what must never happen (tests.explorer.rest_rules: how it must end).

Every rule is asked at the moment of an effect, with the truth at hand and, where only that can be
held against the functions, what the invocation itself had read. They know nothing of how core
decides: a rule that asked core would agree with its mistakes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.availability.lease import Lease
from core.events import Kind
from core.events.announcements import URGENT
from core.incidents.actions import HookResult
from core.incidents.observation import PodView
from core.incidents.record import Incident, State
from core.views import ClusterView
from tests.explorer.limits import HOLD_LIMIT, RETENTION
from tests.explorer.partitions import MIN_ISR, Order, Partition
from tests.explorer.world import CLUSTER, TAG, ZONES, Drain, World, node_named

# A page is sent once for each reason; a crash may send it again, a storm is a fault.
MOST_PAGES = 6
# As far as an explored clock may be ahead: a pause that ends by it has ended.
CLOCKS_APART = 150.0


@dataclass(slots=True)
class Invocation:
    """One run of a function: what it has read, written and said so far."""

    function: str
    began: float  # by its own clock
    calls: int = 0
    skew: float = 0.0  # how far its clock is ahead
    faults: dict[int, str] = field(default_factory=dict)
    kafka: ClusterView | None = None
    looked_at: World | None = None  # as it was when Strimzi's operator was read last
    pods: tuple[PodView, ...] = ()
    attachments: dict[str, tuple[str, ...]] | None = None
    versions: dict[str, int] = field(default_factory=dict)  # of incidents as it wrote them
    trace: list[tuple[str, bool]] | None = None
    again: Callable[[float], object] | None = None  # takes the same message once more
    raced: set[str] = field(default_factory=set)  # kinds of writes that have lost a race


def break_rule(world: World, rule: str, sentence: str) -> None:
    if not any(known.startswith(rule) for known in world.broken):
        world.broken = (*world.broken, f"{rule}: {sentence}")


def incident_of(world: World, instance_id: str) -> Incident | None:
    """Return an instance's last incident."""
    found = [i for i in world.incidents.values() if i.instance_id == instance_id]
    # Of two that were opened within a second the later one was written later.
    return max(reversed(found), key=lambda i: i.opened_at) if found else None


def evicted(world: World, drain: Drain, node_id: int) -> str:
    """Judge an eviction by the termination handler; return who is to blame for it."""
    if world.direct and not world.gated:
        return "nth"  # It asks nobody, and nothing of ours keeps two of its drains apart.
    incident = incident_of(world, drain.instance_id)
    if incident is None:
        break_rule(world, "unasked", f"Node {node_id} is drained, and no incident asked for it.")
        return "nobody"
    if incident.kind in URGENT or incident.lost_at is not None:
        return "aws"  # Taken, or out with its machine already.
    _alone(world, node_id, incident)
    # Whoever abandons a hook in the middle of a drain stops the hook, and not the drain.
    by_hand = drain.instance_id in world.abandoned
    if incident.state in {State.RETAINED, State.CANCELLED} and not by_hand:
        break_rule(
            world,
            "kept_drained",
            f"{drain.instance_id} is kept (incident {incident.id} is {incident.state}), and its "
            f"broker {node_id} is evicted by the drain sent before.",
        )
    return incident.id


def let_through(world: World, invocation: Invocation, instance_id: str, node_id: int) -> str:
    """Judge an eviction that the gate lets through; return who is to blame for it."""
    incident = incident_of(world, instance_id)
    if incident is None or not incident.open:
        break_rule(world, "unasked", f"Node {node_id} is let through, and no incident has it.")
        return "nobody"
    if incident.kind in URGENT or incident.lost_at is not None:
        return "aws"
    _alone(world, node_id, incident)
    if not any(i.holder == incident.id and i.out_at is not None for i in world.leases):
        break_rule(world, "unleased", f"Broker {node_id} is let through without the lease.")
    if incident.kind is Kind.EVICTION and paused(world):
        break_rule(world, "paused", f"Broker {node_id} is let through, and the cluster is paused.")
    if incident.release is None and not _consents(world, invocation.kafka, node_id):
        break_rule(
            world, "no_consent", f"Broker {node_id} is let through, and no reading shows all whole."
        )
    _operator_rests(world, invocation, incident)
    return incident.id


def evicted_by_us(world: World, invocation: Invocation, instance_id: str, node_id: int) -> str:
    """Judge an eviction of a broker that our own drain asks for; return who is to blame for it."""
    incident = incident_of(world, instance_id)
    if incident is None or not incident.open:
        break_rule(world, "unasked", f"Node {node_id} is evicted, and no incident has it.")
        return "nobody"
    if invocation.versions.get(incident.id) != incident.version:
        break_rule(
            world, "version", f"Broker {node_id} is evicted by an invocation that lags behind."
        )
    if incident.kind in URGENT:
        return "aws"
    _alone(world, node_id, incident)
    if not any(i.holder == incident.id and i.out_at is not None for i in world.leases):
        break_rule(world, "unleased", f"Broker {node_id} is evicted without the lease.")
    if paused(world):
        break_rule(world, "paused", f"Broker {node_id} is evicted, and the cluster is paused.")
    if incident.release is None and not _consents(world, invocation.kafka, node_id):
        break_rule(
            world, "no_consent", f"Broker {node_id} is evicted, and no reading shows all whole."
        )
    _operator_rests(world, invocation, incident)
    return incident.id


def reboots(world: World, invocation: Invocation, instance_id: str) -> None:
    """Judge a root volume that one of our functions has replaced: the machine boots."""
    incident = incident_of(world, instance_id)
    pod = world.pod_on(instance_id)
    if pod is not None and not pod.stopping:
        break_rule(world, "boot", f"{instance_id} is to boot under broker {pod.node_id}.")
    if incident is None or not incident.open or incident.in_place is None:
        break_rule(world, "unasked", f"{instance_id} is to boot, and no incident has it.")
        return
    if invocation.versions.get(incident.id) != incident.version:
        break_rule(world, "version", f"{instance_id} is to boot by an invocation that lags behind.")
    if not any(lease.holder == incident.id for lease in valid_leases(world)):
        break_rule(world, "unleased", f"{instance_id} is to boot without the lease.")
    if paused(world):
        break_rule(world, "paused", f"{instance_id} is to boot, and the cluster is paused.")
    if incident.node_id is not None:
        _alone(world, incident.node_id, incident)


def _alone(world: World, node_id: int, incident: Incident) -> None:
    """Judge that nobody else is out by our doing when a broker is told to stop, but its party.

    A party is of one zone, and no partition loses too many by its absence alone. Whoever releases
    an instance by hand answers for what the operator has out.
    """
    ours = {b for b in world.out() if b != node_id and _ours(world, world.brokers[b].blame)}
    beside = sorted(ours - party_of(world, node_id))
    if incident.release is None:
        by_two_hands(world, node_id, "ours")
    if beside:
        whom = ", ".join(f"{b} (by {world.brokers[b].blame})" for b in beside)
        break_rule(world, "two_out", f"Broker {node_id} is evicted while {whom} is out.")
    if len({ZONES[b] for b in (*ours, node_id)}) > 1 and not beside:
        break_rule(world, "two_zones", f"Broker {node_id} is evicted beside {sorted(ours)}.")
    for (topic, number), order in world.orders.items():
        left = len(set(order) - ours - {node_id})
        if node_id in order and ours & set(order) and left < MIN_ISR:
            break_rule(
                world,
                "below_minimum",
                f"{topic}-{number} keeps {left} replicas as {node_id} goes beside {sorted(ours)}.",
            )


def by_two_hands(world: World, node_id: int, hand: str) -> None:
    """Count a broker that one hand stops while one is out by the other: ours, the operator's.

    Both ask Kafka before each broker, so that no partition falls below its minimum by both. Two
    hands do not: the operator's that forces a restart, and that of a termination handler which no
    eviction gate answers: it evicts as soon as the disruption budget lets it.
    """
    out = {b for b in world.out() if b != node_id}
    blamed = {world.brokers[b].blame for b in out}
    others = {"operator", "forced"} if hand == "ours" else world.incidents.keys()
    if not blamed & others:
        return
    world.two_hands += 1
    asked = world.gated or world.emptied_by_us
    if hand == "forced" or (hand == "ours" and not asked):
        return
    for (topic, number), order in world.orders.items():
        left = len(set(order) - out - {node_id})
        if node_id in order and left < min(MIN_ISR, len(order) - 1):
            break_rule(
                world,
                "two_hands",
                f"{topic}-{number} keeps {left} replicas as {node_id} goes while {sorted(out)} "
                f"are out, by {', '.join(sorted(blamed))}.",
            )


def _operator_rests(world: World, invocation: Invocation, incident: Incident) -> None:
    """Judge that no drain begins while a roll can be seen to be under way.

    A person overrides it, AWS's date, and for what is announced an operator that gets nowhere.
    """
    seen, due = invocation.looked_at, incident.taken_at
    if incident.release is not None:
        return
    if seen is None:
        break_rule(world, "operator_unread", f"{incident.id} is drained, the operator unread.")
        return
    taken = due is not None and world.now >= due - HOLD_LIMIT
    roll, stalled = seen.roll, seen.stalled_since
    if taken:
        return
    planned = any(key.startswith(Kind.ROTATION) for key in incident.announcements)
    if stalled is not None and not planned:
        return
    if stalled is not None or (roll is not None and roll.shows(incident.node_id)):
        break_rule(world, "roll_seen", f"{incident.id} is drained, and {roll or 'a stall'} shows.")


def party_of(world: World, node_id: int) -> frozenset[int]:
    """Return whom a run takes together with a broker, itself included.

    A turn that could not record what it began has opened the incidents all the same.
    """
    run = run_of(world)
    turns = () if run is None else run["turns"]
    mine = next((t for t in turns if t["node_id"] == node_id), None)
    if mine is not None and mine["phase"] in {"leaving", "returning"}:
        return frozenset({node_id, *mine["party"]})
    told = [i.party for i in world.incidents.values() if i.open and i.node_id == node_id]
    named = (told[-1] or "").split("/")[2:] if told and mine is not None else []
    return frozenset({node_id, *(int(each) for each in "+".join(named).split("+") if each)})


def run_of(world: World) -> dict[str, Any] | None:
    """Return the rotation run there is, as the ledger keeps it."""
    found: dict[str, Any] | None = world.records.get(f"rotation#{CLUSTER}", (0, None))[1]
    return found


def reordered(world: World, orders: Mapping[Partition, Order]) -> None:
    """Judge new orders of replicas: leaders move by them, replicas do not."""
    for partition, order in orders.items():
        if set(order) != set(world.orders[partition]):
            break_rule(world, "reassigned", f"{partition} moves to {order}.")


def _ours(world: World, blame: str) -> bool:
    """Say whether a broker is out by our doing, and no person has let it go as it was."""
    incident = world.incidents.get(blame)
    return incident is not None and incident.release is None


def forwarded(world: World, invocation: Invocation, instance_id: str) -> None:
    """Judge a drain that is sent to the termination handler."""
    incident = incident_of(world, instance_id)
    if incident is None:
        break_rule(world, "unasked", f"A drain of {instance_id} is sent, and no incident has it.")
        return
    if invocation.versions.get(incident.id) != incident.version:
        break_rule(
            world,
            "version",
            f"A drain of {incident.id} is sent by an invocation that had it at version "
            f"{invocation.versions.get(incident.id)}; it is at {incident.version}.",
        )
    if incident.kind in URGENT:
        return
    if incident.forwarded is None and paused(world):
        break_rule(world, "paused", f"A drain of {incident.id} is sent, and the cluster is paused.")
    if incident.node_id is None:
        return
    _first(world, incident, incident.node_id)
    waived = incident.release is not None or incident.forwarded is not None
    if not waived and not _consents(world, invocation.kafka, incident.node_id):
        break_rule(
            world,
            "no_consent",
            f"A drain of {incident.id} is sent, and no reading shows all whole.",
        )
    _operator_rests(world, invocation, incident)


def _first(world: World, incident: Incident, node_id: int) -> None:
    """Judge that nobody but a broker's party holds the lease, or can still be drained."""
    together, instance_id = party_of(world, node_id), incident.instance_id
    for lease in valid_leases(world):
        other = lease.holder.partition(".")[0] != instance_id
        if other and lease.node_id not in {None, *together}:
            break_rule(
                world, "two_holders", f"{incident.id} is drained while {lease.holder} holds."
            )
    for other_id in _pending(world, instance_id):
        if _housed(world, other_id) not in together:
            break_rule(
                world,
                "two_drains",
                f"A drain of {instance_id} is sent while the one of {other_id} can still evict.",
            )


def paused(world: World) -> bool:
    """Say whether a person has paused the cluster, by whichever function's clock."""
    _, document = world.records.get(f"pause#{CLUSTER}", (0, None))
    said = document["pause"] if document else None
    return said is not None and said["until"] > world.now + CLOCKS_APART


def terminated(world: World, instance_id: str) -> None:
    """Judge a termination that one of our functions asks the group for; a spare may always go."""
    if paused(world) and world.pod_on(instance_id) is not None:
        break_rule(world, "paused", f"{instance_id} is terminated, and the cluster is paused.")


def _pending(world: World, instance_id: str) -> Iterator[str]:
    """Yield other instances that a drain sent by us can still take a broker from."""
    for message in world.messages.values():
        if message.queue != "nth" or world.now - message.sent_at > RETENTION:
            continue
        for other in world.instances:
            if other == instance_id or f'"{other}"' not in message.body:
                continue
            theirs = incident_of(world, other)
            harmless = TAG not in world.instances[other].tags or world.pod_on(other) is None
            if not harmless and (theirs is None or theirs.kind not in URGENT):
                yield other


def _housed(world: World, instance_id: str) -> int | None:
    pod = world.pod_on(instance_id)
    return None if pod is None else pod.node_id


def _consents(world: World, kafka: ClusterView | None, node_id: int) -> bool:
    """Say whether a reading shows everybody well but a broker and its party."""
    if kafka is None or kafka.stale or kafka.doubts or kafka.quorum_leader is None:
        return False
    together = party_of(world, node_id)
    left = [v for v in kafka.voters if v.node_id != node_id and v.caught_up]
    if kafka.fenced - together or 2 * len(left) <= len(kafka.voters):
        return False
    # One that is out already takes nothing with it.
    out = node_id in kafka.fenced
    held = [p for p in kafka.partitions if node_id in p.replicas]
    return out or all(set(p.replicas) - together <= set(p.isr) for p in held)


def completed(
    world: World, invocation: Invocation, instance_id: str, hook: str, result: HookResult
) -> None:
    """Judge a hook that is let go on: nothing of Kafka's may still be there, and it must be back.

    What the invocation has read counts as well as the truth: between the two lies the world.
    """
    incident = incident_of(world, instance_id)
    if result is not HookResult.CONTINUE or incident is None or incident.kind in URGENT:
        return
    asked = incident.release is not None
    if asked or incident.lost_at is not None or hook != "gate":
        return
    held = world.attached.get(node_named(instance_id), ())
    read = (invocation.attachments or {}).get(node_named(instance_id), ())
    if held and (read or invocation.attachments is None):
        break_rule(
            world, "gate", f"The gate of {instance_id} opens with {held[0]} still attached to it."
        )
    node_id = incident.node_id
    if node_id is None or not incident.expects_return:
        return
    back = world.brokers[node_id].status == "in_sync"
    shown = invocation.kafka is not None and _shown_back(invocation.kafka, node_id)
    if not back and not shown:
        break_rule(
            world,
            "gate",
            f"The gate of {instance_id} opens while broker {node_id} is "
            f"{world.brokers[node_id].status}.",
        )


def _shown_back(kafka: ClusterView, node_id: int) -> bool:
    """Say whether a reading shows a node in every ISR that it has, and caught up if it votes."""
    voter = next((v for v in kafka.voters if v.node_id == node_id), None)
    behind = voter is not None and not voter.caught_up
    return not behind and all(node_id in p.isr for p in kafka.partitions if node_id in p.replicas)


def tainted(world: World, instance_id: str) -> None:
    state = world.instances[instance_id].state
    if state not in {"stopped", "terminated"}:
        break_rule(world, "taint", f"{instance_id} is put out of service, and is {state}.")


def leased(world: World) -> None:
    """Judge who holds the lease.

    Beside a holder may stand who waits for nobody (AWS takes it, or has), and a node that was
    found to be out: that is noted, and was not granted.
    """
    holders = {
        lease.holder: lease.party
        for lease in valid_leases(world)
        if (lease.out_at is None or lease.forwarded_at is not None)
        and (incident := world.incidents.get(lease.holder)) is not None
        and incident.kind not in URGENT
        and incident.lost_at is None
        and incident.kind is not Kind.STATE_CHANGE
        and incident.node_id is not None
    }
    # Two rounds of one instance are about one broker.
    about = {holder.partition(".")[0] for holder in holders}
    if len(about) > 1 and (None in holders.values() or len(set(holders.values())) > 1):
        break_rule(world, "two_holders", f"The lease has the holders {', '.join(sorted(holders))}.")


def valid_leases(world: World) -> tuple[Lease, ...]:
    """Return the leases that count."""
    return tuple(
        lease for lease in world.leases if lease.out_at is not None or lease.expires_at > world.now
    )


def called(world: World, message: str) -> None:
    """Note a page that reached a person; another message of the ticks queue is none."""
    told = json.loads(message)
    if "page" in told:
        paged(world, str(told.get("incident_id", "")), str(told["page"]))


def paged(world: World, incident_id: str, key: str) -> None:
    page = (incident_id, key)
    world.paged[page] = world.paged.get(page, 0) + 1
    if world.paged[page] > MOST_PAGES:
        break_rule(world, "storm", f"{incident_id} pages {key} again and again.")
