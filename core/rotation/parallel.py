"""Which nodes of a run overlap: brokers that go together, and machines made ready ahead.

The largest safe parties are found on the cluster as it is (core.availability.consent), so none is
refused; controllers go one by one, zones one after another, and consent is asked again for each
member with the lease in hand (core.availability.lease). A machine takes minutes to boot and a
broker minutes to come back, and neither needs the other: once whoever is away has begun to leave,
the incidents of the next turn are opened for their replacements alone (`Incident.ahead`). Their
groups get room, and nothing of theirs leaves before the run has come to them. What a run no longer
wants is called off with it, and ends by itself where a run has died.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from core.availability.consent import (
    breaks,
    may_leave_together,
    outsider_missing,
    parties,
    parting,
    too_much,
)
from core.ground.words import id_list
from core.incidents.in_place import DRAINED_BY_US
from core.incidents.observation import Policy, zones_of
from core.incidents.record import State
from core.rotation.estimate import RunObservation, away_seconds, together
from core.rotation.preconditions import (
    departure_order,
    machine_objections,
    objections_but_consent,
    wait_of,
)
from core.rotation.run_record import (
    ACTOR,
    CallOff,
    MakeReady,
    NodeTurn,
    Options,
    Phase,
    Run,
    RunState,
    RunStep,
    note_run,
)
from core.views import ClusterView


def refusals(options: Options, policy: Policy) -> Iterator[str]:
    """Yield why a run may not take several nodes at a time; one that takes one is never refused."""
    if options.at_once != 1 and policy.drain_route == "direct":
        yield (
            "With drain_route direct no drain asks Kafka, so nodes go one at a time; leave "
            "--at-once out, or set drain_route to held."
        )
    if options.at_once != 1 and policy.drain_route == "asked":
        yield (
            "Karpenter's drains ask the gate one by one, so nodes go one at a time; leave "
            "--at-once out."
        )
    if options.in_place and policy.drain_route not in DRAINED_BY_US:
        yield (
            f"With drain_route {policy.drain_route} others drain, so that no machine can be kept "
            f"back for a boot; leave --in-place out."
        )


def company(
    first: NodeTurn,
    waiting: Sequence[NodeTurn],
    seen: RunObservation,
    options: Options,
    policy: Policy,
) -> tuple[tuple[NodeTurn, ...], tuple[str, ...]]:
    """Return who goes together with a node that may go, and why others of its zone do not.

    A node left out has its own turn later. `waiting` are the others, in their order. Nobody goes
    with it unless Kafka consents to the whole party, and has every other replica in sync: one that
    leaves an ISR meanwhile stops the run (core.rotation.following).
    """
    chosen: list[NodeTurn] = []
    left_out: list[str] = []
    for turn in waiting:
        if options.at_once is not None and len(chosen) + 1 >= options.at_once:
            break
        if not go_alike(first, turn):
            continue
        objection = next(_parallel_against(turn, seen, options, policy, [first, *chosen]), None)
        if objection is None:
            chosen.append(turn)
        else:
            left_out.append(f"Broker {turn.node_id} does not go together with them. {objection}")
    while chosen and (heavy := _heavy([first, *chosen], seen)):
        left_out.append(f"Broker {chosen.pop().node_id} does not go together with them. {heavy}")
    refusal = _party_refusal([first, *chosen], seen.kafka, policy) if chosen else None
    if refusal:
        return (), (*left_out, f"Broker {first.node_id} goes alone. {refusal}")
    return tuple(chosen), tuple(left_out)


def _parallel_against(
    turn: NodeTurn, seen: RunObservation, options: Options, policy: Policy, away: Sequence[NodeTurn]
) -> Iterator[str]:
    home = seen.node_of(turn.node_id)
    if home is None or home.instance_id != turn.instance_id:
        yield f"Node {turn.node_id} is not on instance {turn.instance_id}."
    # All of them have to be back before the maintenance window closes, whoever stops last.
    expected = [each.expected_seconds or 0.0 for each in (turn, *away)]
    apart = away_seconds(turn.image_id)
    takes = together(expected, at_once=policy.stops_together, apart_seconds=apart)
    wait = wait_of(replace(turn, expected_seconds=takes), seen.now, options, policy)
    if wait is not None:
        yield wait.sentence
    ids = {each.node_id for each in away}
    yield from objections_but_consent(turn, seen, options, ids, policy)
    if seen.kafka is not None:
        between = parting(turn.node_id, ids, seen.kafka, isr_margin=policy.isr_margin)
        if between is not None:
            yield f"Partition {between.name} would not keep what it needs in sync."


def _party_refusal(
    party: Sequence[NodeTurn], kafka: ClusterView | None, policy: Policy
) -> str | None:
    """Say what speaks against a party that does not speak against each of it alone."""
    members = frozenset(turn.node_id for turn in party)
    if kafka is None:
        return None  # Nobody goes at all then.
    missing = outsider_missing(members, kafka)
    if missing:
        return missing
    verdict = may_leave_together(members, kafka, isr_margin=policy.isr_margin)
    return None if verdict.allowed else verdict.reason


def _heavy(party: Sequence[NodeTurn], seen: RunObservation) -> str | None:
    """Say which of the others would lead too much while a party is away."""
    if seen.kafka is None:
        return None
    ids = {turn.node_id for turn in party}
    return too_much(ids, seen.kafka, zones_of(seen.nodes, seen.pods))


def heavy_parties(
    turns: Iterable[NodeTurn], batches: Iterable[int], seen: RunObservation
) -> Iterator[str]:
    """Yield, a sentence for each party, that the others would lead too much without it."""
    together: dict[int, list[NodeTurn]] = {}
    for turn, batch in zip(turns, batches, strict=True):
        together.setdefault(batch, []).append(turn)
    for party in together.values():
        heavy = _heavy(party, seen) if len(party) > 1 else None
        if heavy:
            ids = id_list(sorted(turn.node_id for turn in party))
            yield f"Only as many of {ids} go together as the others can replace. {heavy}"


def batch_numbers(
    turns: Sequence[NodeTurn], kafka: ClusterView | None, options: Options, policy: Policy
) -> list[int]:
    """Return which batch each of the ordered turns would be in, were nothing else in the way."""
    places: dict[tuple[str, bool], list[int]] = {}
    for turn in turns:
        if not turn.votes:
            places.setdefault(_place(turn), []).append(turn.node_id)
    party_of: dict[int, tuple[int, ...]] = {turn.node_id: (turn.node_id,) for turn in turns}
    for ids in places.values():
        if kafka is None or options.at_once == 1:
            break
        found = parties(ids, kafka, isr_margin=policy.isr_margin, most=options.at_once)
        party_of.update({node_id: members for members in found for node_id in members})
    numbers: dict[tuple[int, ...], int] = {}
    return [numbers.setdefault(party_of[t.node_id], len(numbers) + 1) for t in turns]


def partings(
    turns: Iterable[NodeTurn], batches: Iterable[int], kafka: ClusterView | None, policy: Policy
) -> Iterator[str]:
    """Yield, a sentence for each zone, what keeps its brokers from going all together."""
    heads: dict[str, dict[int, NodeTurn]] = {}
    for turn, batch in zip(turns, batches, strict=True):
        if not turn.votes:
            heads.setdefault(turn.zone, {}).setdefault(batch, turn)
    for zone, first_of in heads.items():
        if kafka is None or len(first_of) == 1:
            continue
        one, other = list(first_of.values())[:2]
        pair = {one.node_id, other.node_id}
        shared = [p for p in kafka.held_by(one.node_id) if breaks(pair, p, policy.isr_margin)]
        if shared:
            yield (
                f"Brokers of {zone} leave in {len(first_of)} sets. {id_list(sorted(pair))} "
                f"leave separately because of partition {shared[0].name} ({len(shared)} in all). "
                "With its replicas in different zones they would leave together."
            )


def go_alike(one: NodeTurn, other: NodeTurn) -> bool:
    """Say whether two turns may be of one party, as far as their places go.

    Whoever waits for its own machine to boot would start on the spare of one that gets another.
    """
    return _place(one) == _place(other) and not (one.votes or other.votes)


def _place(turn: NodeTurn) -> tuple[str, bool]:
    return turn.zone, turn.image_id is not None


_BEGUN = frozenset({State.DRAINING, State.GATING})


def machines_come_ahead(options: Options, policy: Policy) -> bool:
    """Say whether a run may have machines made ready: Karpenter's come when it disrupts a node."""
    return policy.drain_route != "asked" and not options.in_place


def add_machines_ahead(step: RunStep, seen: RunObservation, policy: Policy) -> RunStep:
    """Add to a step the machines it has made ready, or those it calls off."""
    run = step.run
    if run.state is not RunState.RUNNING or run.pause_asked_by or run.abort_asked_by:
        called = (CallOff(n) for n in seen.ahead if run.turn_of(n).phase is Phase.WAITING)
        return replace(step, actions=(*step.actions, *called))
    chosen = _next(run, seen, policy)
    if not chosen:
        return step
    ids, away = ([t.node_id for t in turns] for turns in (chosen, run.open_turns))
    comes = "comes" if len(away) == 1 else "come"
    said = f"Room for {_node_names(ids)} is made while {_node_names(away)} {comes} back."
    for turn in chosen:
        run = run.replace_turn(replace(turn, ahead=True, reason=said))
    run = note_run(run, ACTOR, said, seen.now, quiet=True)
    wanted = (MakeReady(turn.node_id) for turn in chosen)
    return replace(step, run=run, actions=(*step.actions, *wanted))


def _node_names(ids: list[int]) -> str:
    return f"node{'' if len(ids) == 1 else 's'} {id_list(sorted(ids))}"


def _next(run: Run, seen: RunObservation, policy: Policy) -> list[NodeTurn]:
    """Return those whose turn follows, once nothing keeps back whoever is away; [] before."""
    begun = run.open_turns and all(_has_begun(turn, seen) for turn in run.open_turns)
    asked = seen.ahead or any(turn.ahead for turn in run.waiting)
    if not begun or asked or not machines_come_ahead(run.options, policy):
        return []
    leader = None if seen.kafka is None else seen.kafka.quorum_leader
    open_now = [
        turn for turn in run.waiting if wait_of(turn, seen.now, run.options, policy) is None
    ]
    chosen: list[NodeTurn] = []
    for turn in departure_order(open_now, seen.pods, leader):
        if chosen and not _joins(turn, chosen, seen.kafka, policy):
            continue
        if next(_ahead_against(turn, seen, chosen, policy), None) is None:
            chosen.append(turn)
        elif not chosen:
            break  # Who is behind it has its turn after it.
        if len(chosen) == run.options.at_once:
            break
    return chosen


def _joins(
    turn: NodeTurn, others: Sequence[NodeTurn], kafka: ClusterView | None, policy: Policy
) -> bool:
    """Say whether a node goes together with others, once whoever is away now is in sync again."""
    if kafka is None or not go_alike(others[0], turn):
        return False
    together = {turn.node_id, *(other.node_id for other in others)}
    held = (replace(p, isr=p.replicas) for p in kafka.held_by(turn.node_id))
    return not any(breaks(together, p, policy.isr_margin) for p in held)


def _has_begun(turn: NodeTurn, seen: RunObservation) -> bool:
    """Say whether a node that is away has left: before, it may wait for long."""
    incident = seen.incidents.get(turn.node_id)
    leaving = incident is not None and incident.state in _BEGUN
    return turn.phase is Phase.RETURNING or leaving


def _ahead_against(
    turn: NodeTurn, seen: RunObservation, beside: list[NodeTurn], policy: Policy
) -> Iterator[str]:
    """Yield why no machine is made ready for a node now: its turn may still come in another way."""
    home = seen.node_of(turn.node_id)
    if home is None or home.instance_id != turn.instance_id:
        yield f"Node {turn.node_id} is not on instance {turn.instance_id}."
    if turn.image_id is not None or seen.claim_of(turn.instance_id) is not None:
        yield f"Node {turn.node_id} gets no machine of its group."
    if any(incident.node_id == turn.node_id for incident in seen.others):
        # It would go by what the incident was opened for, and wait for no turn of the run.
        yield f"Node {turn.node_id} has an incident already."
    yield from machine_objections(turn, seen, {each.node_id for each in beside}, policy)
