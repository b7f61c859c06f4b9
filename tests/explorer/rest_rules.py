"""Judges an explored world that was left alone: everything is over, or somebody knows.

And whatever was lent for it is given back: leases, hooks, labels, marks, cordons, taints, the
places of leaders, room in groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from core.events import Kind
from core.incidents.record import TERMINAL, Incident, State
from handlers.store.documents import Freezes
from tests.explorer import refills
from tests.explorer.ledger import ObjectRecords
from tests.explorer.limits import HOLD_LIMIT
from tests.explorer.nature import least
from tests.explorer.outages import FOREIGN
from tests.explorer.rules import break_rule, run_of, valid_leases
from tests.explorer.world import CLUSTER, FIRST, World

# So long a service is away at most, and no deadline counts meanwhile.
PATIENCE = HOLD_LIMIT + 1300


def at_rest(world: World) -> None:
    """Judge a world that was left alone for as long as anything may take."""
    for incident in world.incidents.values():
        _ended_or_paged(world, incident)
    _nothing_left(world)
    _leases_given_back(world)
    _retired(world)
    _run_over(world)
    if any(i.instance_id == FOREIGN for i in world.incidents.values()):
        break_rule(world, "foreign", f"{FOREIGN} is another environment's, and has an incident.")
    if (throttled := refills.left_on(world)) is not None:
        break_rule(world, "throttle_left", throttled)
    for rule, left in _lent(world):
        break_rule(world, rule, left)
    # Brokers that are out for good without anybody having been called.
    for node_id in () if world.paged else world.out():
        break_rule(world, "lost_broker", f"Broker {node_id} stays out, and nobody was called.")


def nobody_called(world: World) -> None:
    """Judge a world in which every fault was over within minutes: that is nobody's matter."""
    for id_, key in world.paged:
        break_rule(world, "called", f"A person was called for {key} of {id_ or 'no incident'}.")
    for incident in world.incidents.values():
        if incident.state is State.RETAINED:
            break_rule(world, "kept", f"{incident.id} is retained: {incident.reason}")


def _retired(world: World) -> None:
    """A machine that AWS still retires does not keep its broker without anybody knowing."""
    retired = FIRST[10]
    ahead = any("RETIREMENT" in code for code in world.scheduled)
    if not ahead or world.lifecycle(retired) != "InService" or world.pod_on(retired) is None:
        return
    own = [i for i in world.incidents.values() if i.instance_id == retired]
    wished = any(i.ignored_by or i.release for i in own)
    if not wished and not any(i.open for i in own) and not {i.id for i in own} & _heard(world):
        break_rule(world, "forgotten", f"{retired} is retired under its broker, and forgotten.")


def _heard(world: World) -> set[str]:
    return {id_ for id_, _ in world.paged}


def _ended_or_paged(world: World, incident: Incident) -> None:
    for key in incident.pages:
        if (incident.id, key) not in world.paged:
            break_rule(world, "page_lost", f"{incident.id} has paged {key}; nobody was called.")
    # One call stands for all that a lost zone takes along.
    zone_lost = incident.lost_at is not None and ("", "zone_lost") in world.paged
    if zone_lost or any(id_ == incident.id for id_, _ in world.paged):
        return
    # What a run has begun is bounded by the run's deadline, which is longer than these worlds.
    of_run = incident.kind is Kind.ROTATION and not incident.hooks and bool(world.paged)
    if incident.open and not of_run:
        break_rule(
            world, "stuck", f"{incident.id} stays {incident.state} unheard: {incident.reason}"
        )
    elif incident.state is State.RETAINED:
        break_rule(world, "unheard", f"{incident.id} is retained, and nobody was called.")


def _nothing_left(world: World) -> None:
    """No instance stands in its hooks, or is retained, without anybody knowing."""
    for name, group in sorted(world.groups.items()):
        for instance_id, state in group.instances.items():
            own = {i.id for i in world.incidents.values() if i.instance_id == instance_id}
            # One call stands for all that a lost zone takes along.
            heard = any(id_ in own for id_, _ in world.paged) or ("", "zone_lost") in world.paged
            if state in {"Terminating:Wait", "Terminating:Retained"} and not heard:
                break_rule(
                    world, "left", f"{instance_id} of {name} stays {state}, and nobody was called."
                )


def _leases_given_back(world: World) -> None:
    over = all(i.state in TERMINAL for i in world.incidents.values())
    # One that was used waits for whoever comes next to see that it has ended.
    if over and any(lease.out_at is None for lease in valid_leases(world)):
        break_rule(world, "lease_left", "The lease is held, and every incident is over.")


def _run_over(world: World) -> None:
    """A run ends, or stops for a person; what it waits for is bounded by each node's deadline."""
    run = run_of(world)
    if run is None or run["state"] != "running":
        return
    began = [t[name] or 0.0 for t in run["turns"] for name in ("began_at", "done_at", "since")]
    moved = max(began, default=0.0)
    if world.now - max(moved, run["started_at"]) > run["options"]["deadline_seconds"] + PATIENCE:
        break_rule(world, "run_stuck", f"The run goes on for ever: {run['reason']}")


def _lent(world: World) -> Iterator[tuple[str, str]]:
    """Yield what somebody who is over still has of the cluster's."""
    open_ids = {i.id for i in world.incidents.values() if i.open}
    yield from _marks(world, open_ids)
    for pod in world.pods.values():
        if pod.may_leave not in {None, *open_ids}:
            yield "label_left", f"{pod.name} may leave for {pod.may_leave}, which is over."
    if open_ids or Freezes(ObjectRecords(lambda: world), CLUSTER).current(world.now):
        return
    moved = {key for key, order in world.orders.items() if order != world.placed[key]}
    if moved:
        yield "leaders_left", f"{sorted(moved)} are not in their own order."
    protected = [name for name, group in world.groups.items() if group.protected]
    if protected:
        yield "protected_left", f"{protected} are protected, and no zone is frozen."
    yield from _room(world)


def _marks(world: World, open_ids: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    """Yield what nodes that stay still bear of incidents that are over."""
    for instance_id, node in world.nodes.items():
        if world.lifecycle(instance_id) != "InService":
            continue
        # Of a mark for nobody that the ledger knows a person has been told.
        if node.spare_for not in {None, *open_ids, *_heard(world)}:
            yield "spare_left", f"{node.name} is kept for {node.spare_for}, which is over."
        if node.cordoned_for not in {None, *open_ids} and not node.schedulable:
            yield "cordon_left", f"{node.name} is cordoned for {node.cordoned_for}."
        if node.out_of_service and world.instances[instance_id].state == "running":
            yield "taint_left", f"{node.name} runs, and is out of service."


def _room(world: World) -> Iterator[tuple[str, str]]:
    """Yield groups that keep room for somebody who never came, where nobody was called."""
    for name, group in world.groups.items():
        busy = sum(world.pod_on(instance_id) is not None for instance_id in group.instances)
        # Who drains by hand leaves its machine where it is, beside the one that came for it.
        others = world.gated or world.direct or bool(world.paged)
        if group.desired > max(busy, least(world, group)) and not others:
            yield "room_left", f"{name} wants {group.desired} instances, and {busy} are used."
