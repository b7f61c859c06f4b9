"""Breaks what histories in other orders have taught: two reboots, events again, room, machines."""

from __future__ import annotations

from tests.explorer.mutant import Mutant

ORDERS = (
    Mutant(
        "between two reboots others lead on",
        "    back = (RestoreLeaders(),) if moved else ()\n    return stay(incident",
        "    back = ()\n    return stay(incident",
    ),
    Mutant(
        "a reboot that is not closed hides the next",
        "for due, code in _dates(incident) if seen.now < due + MAINTENANCE_SECONDS]",
        "for due, code in _dates(incident)[:1] if seen.now < due + MAINTENANCE_SECONDS]",
    ),
    Mutant(
        "what was called off is never scheduled again",
        "return any(not each.closed or now - each.said_at <= LIST_LAGS_SECONDS for each in same)",
        "return bool(same)",
    ),
    Mutant(
        "an incident that is over is over with all that was scheduled",
        "return (each for each in scheduled_changes(over) if each.closed or not left)",
        "return (each for each in scheduled_changes(over) if each or not left)",
    ),
    Mutant(
        "whoever is ignored keeps the room it asked for",
        "_OVER = frozenset({State.CANCELLED, State.RELEASED",
        "_OVER = frozenset({State.RELEASED",
    ),
    Mutant(
        "room that was only written down is given back",
        "raised = incident.surge_to is not None and has_room(incident, seen)",
        "raised = incident.surge_to is not None",
    ),
    Mutant(
        "a Node that was deleted has never joined",
        '    dns_name = "" if seen.instance is None else seen.instance.private_dns_name\n',
        '    dns_name = ""\n',
    ),
    Mutant(
        "whoever has the most time goes first",
        "return None if first >= mine else first[1]",
        "return None if first <= mine else first[1]",
    ),
    Mutant(
        "one that nobody looks at keeps the others waiting",
        "for w in seen.waiting if seen.now <= w.next_look_at + late),",
        "for w in seen.waiting),",
    ),
    Mutant(
        "whom EC2 takes is retained where its group kept it",
        "hooked = incident.is_hooked and not incident.urgent",
        "hooked = True",
    ),
    Mutant(
        "a machine boots under whoever runs there",
        "against = _wanted_back(incident, seen) or _occupation(incident, seen)",
        "against = _wanted_back(incident, seen)",
    ),
    Mutant(
        "a whole zone's machines come ahead",
        "if chosen and not _joins(turn, chosen, seen.kafka, policy):",
        "if chosen and not go_alike(chosen[0], turn):",
    ),
    Mutant(
        "a node stays kept for an incident that is over",
        "for node, incident in kept if incident is not None and not incident.open)",
        "for node, incident in kept if incident is not None and incident.unreadable)",
        "handlers",
    ),
)
