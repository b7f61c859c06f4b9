"""Gives a group the room back that an incident asked for, and that nobody needs any more.

A planned incident has its group want one instance more, and terminates its own through the group,
which then wants one less. Where it ends otherwise (called off, ignored, terminated by somebody
else, lost) the group is left with a machine for nobody. What has been launched already would be
taken at random by a group that wants less, the broker's own machine as well as the idle one: so the
idle one is terminated by its name, and the group only wants less where nothing was launched yet.
"""

from __future__ import annotations

from core.incidents.actions import Action, SetDesired, TerminateInGroup
from core.incidents.observation import Observation
from core.incidents.record import Incident, State
from core.incidents.replacement import anybody_idle, replacement_for, spoken_for

# Who stays retained may yet be released, and needs its replacement then.
_OVER = frozenset({State.CANCELLED, State.RELEASED, State.LOST, State.RIDDEN_THROUGH})


def given_back(incident: Incident, seen: Observation, state: State) -> tuple[Action, ...]:
    """Return what gives the room back when an incident ends in a state; (): there is none."""
    lowered = incident.terminate_asked_at is not None and incident.refusal is None
    if seen.group is None or lowered or state not in _OVER or not is_unneeded(incident, seen):
        return ()
    if _homeless(seen):
        return ()  # It may be about to start on the idle machine.
    idle = replacement_for(incident, seen) or anybody_idle(incident, seen)
    instance_id = _instance_without_node(incident, seen) if idle is None else idle.instance_id
    if instance_id is not None:
        return (TerminateInGroup(decrement=True, instance_id=instance_id),)
    wanted = max(spoken_for(seen), len(seen.staying))
    return (SetDesired(wanted),) if wanted < seen.group.desired else ()


def is_unneeded(incident: Incident, seen: Observation) -> bool:
    """Say whether the group wants more than anybody needs, since the incident asked it to."""
    if incident.surge_to is None or seen.group is None:
        return False
    return seen.group.desired > spoken_for(seen)


def is_unsettled(seen: Observation) -> bool:
    """Say whether the group still launches a machine, or a pod may start on one that is idle."""
    states = () if seen.group is None else seen.group.instances.values()
    return any(state.startswith("Pending") for state in states) or _homeless(seen)


def _homeless(seen: Observation) -> bool:
    return any(pod.node_name is None for pod in seen.pods)


def _instance_without_node(incident: Incident, seen: Observation) -> str | None:
    """Return an instance of the group that is no Node yet, so that nothing can run there."""
    if seen.group is None:
        return None
    known = {node.instance_id for node in seen.nodes} | {incident.instance_id} | seen.leaving
    serving = sorted(i for i, state in seen.group.instances.items() if state == "InService")
    return next((i for i in serving if i not in known), None)
