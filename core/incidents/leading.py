"""Decides when leaders move away from a party before it leaves, and when they may return.

    lease -> leaders away from all of the party -> label -> another reading -> drain

All of its brokers at once: moved one broker at a time, a leader could go to one that stops next.
Each incident of the party asks for the whole of it, in its own name, so the orders are given back
when the last of them is over (handlers.incidents.leadership), by the sweep if nobody else does.
"""

from __future__ import annotations

from dataclasses import replace

from core.availability.leader_load import successor, too_much
from core.availability.lease import members
from core.incidents.actions import Action, DropLease, MoveLeaders, RestoreLeaders, TakeLease
from core.incidents.decisions import is_hooked, stay
from core.incidents.observation import Observation, Policy, zones_of
from core.incidents.opening import OPEN_SECONDS, not_open_yet
from core.incidents.record import UNDRAINED, Decision, Incident, State
from core.views import id_list

# An election is seen within a second or two, and a controlled shutdown moves what is left.
ELECTED_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 1.0


def asks_of_all(incident: Incident) -> bool:
    """Say whether a reading has to show all partitions: the load of others is judged by it.

    Once its hooks stand: before, the turn ends at them, and brokers are asked for nothing.
    """
    begun = is_hooked(incident) or incident.in_place is not None
    return bool(_leavers(incident)) and begun and incident.leaders_moved_at is None


def _still_leads(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Wait until others lead what an incident's party leads; None: they do, or it leaves alone.

    A party whose leaders the others should not take over gives the lease back.
    """
    party = _leavers(incident)
    if not party or seen.kafka is None:
        return None
    led = [
        p for p in seen.kafka.partitions if p.leader in party and successor(p, party) is not None
    ]
    if incident.leaders_moved_at is None:
        # One that leaves alone hands over as many by its own shutdown.
        zones = zones_of(seen.nodes, seen.pods)
        refusal = too_much(party, seen.kafka, zones) if len(party) > 1 else None
        if refusal:
            return stay(incident, policy, refusal, DropLease())
        reason = f"Others are to lead what {id_list(sorted(party))} lead."
        moving = MoveLeaders(tuple(sorted(party)))
        return stay(incident, policy, reason, TakeLease(), moving, delay=LOOK_AGAIN_SECONDS)
    if led and seen.now - incident.leaders_moved_at < ELECTED_SECONDS:
        who = "The party leads" if len(party) > 1 else f"Broker {incident.node_id} leads"
        reason = f"{who} {len(led)} partitions still, {led[0].name} first."
        return stay(incident, policy, reason, TakeLease(), delay=LOOK_AGAIN_SECONDS)
    return None


def party_waits(
    incident: Incident, seen: Observation, policy: Policy, reason: str
) -> Decision | None:
    """Wait until others lead what a party leads, and the budgets let it leave; None: they do."""
    leading = _still_leads(incident, seen, policy)
    if leading is not None:
        return replace(leading, reason=f"{reason} {leading.reason}")
    shut = not_open_yet(incident, seen)
    if shut is None:
        return None
    why, actions = shut
    return stay(incident, policy, f"{reason} {why}", TakeLease(), *actions, delay=OPEN_SECONDS)


def given_back(incident: Incident, seen: Observation, decision: Decision) -> tuple[Action, ...]:
    """Let a party lead again once its incident has no lease to leave by, and has not left."""
    if incident.leaders_moved_at is None or not _leavers(incident):
        return ()
    if decision.state not in UNDRAINED:
        return ()  # Its end gives them back.
    dropped = any(isinstance(each, DropLease) for each in decision.actions)
    return (RestoreLeaders(),) if dropped or seen.lease_holder != incident.id else ()


def led_again_by_a_run(incident: Incident, state: State) -> bool:
    """Say whether a run waits for a broker that is back, and has it lead again (following).

    Only a run takes parties and boots machines in place; one that called its own off is elsewhere.
    """
    back = state in {State.RELEASED, State.RIDDEN_THROUGH}
    return back and bool(_leavers(incident)) and not incident.called_off


def _leavers(incident: Incident) -> frozenset[int]:
    """Return whose leaders move first: a party's, or who stays away for as long as a boot takes."""
    party = frozenset(members(incident.party))
    if len(party) > 1:
        return party
    alone = incident.node_id if incident.in_place is not None else None
    return frozenset() if alone is None else frozenset({alone})
