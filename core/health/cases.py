"""Situations in which the rule sets differ: the page of rules is made of them, and tests too.

Each is an observation such as a real node gives; tests/integration/test_node_health.py brings the
same about on real Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.health.node import NEVER, NodeObservation, Recovery, Role

NOW = 10_000.0
WELL = {
    role: NodeObservation(
        node_id=1,
        role=role,
        now=NOW,
        process=True,
        started_at=0.0,
        listening={9090: role.is_controller, 9091: role.is_broker},
        scraped=True,
        broker_state=3 if role.is_broker else None,
        raft_state="follower" if role.is_controller else "observer",
        raft_leader=0,
        apply_lag_seconds=0.4,
        offline_log_directories=0,
        quorum_answers=True,
        fenced=False if role.is_broker else None,
        since_heartbeat_seconds=0.5 if role.is_broker else None,
        voter_lag_seconds=0.3 if role.is_controller else None,
        not_in_sync=0 if role.is_broker else None,
        was_in_sync=role.is_broker,
    )
    for role in Role
}
_BROKER, _CONTROLLER, _COMBINED = (
    WELL[role] for role in (Role.BROKER, Role.CONTROLLER, Role.COMBINED)
)
_FIRST_OF_MANY = replace(
    _COMBINED,
    started_at=NOW - 3,
    broker_state=1,
    raft_state="prospective",
    raft_leader=-1,
    listening={9090: True, 9091: False},
    quorum_answers=False,
    fenced=None,
    not_in_sync=None,
    was_in_sync=False,
    apply_lag_seconds=None,
    voter_lag_seconds=None,
)


@dataclass(frozen=True, slots=True)
class HealthCase:
    """One situation; `well` says that nothing should be restarted or taken for broken.

    `shipped_green`: the shipped probes pass, both, though it is not well. `serves`: it is not well
    and stays in service, because nobody else can do what it does.
    """

    what: str
    observed: NodeObservation
    well: bool = False
    shipped_green: bool = True
    serves: bool = False


def _silent(observed: NodeObservation, heard_seconds: float, *, fenced: bool) -> NodeObservation:
    return replace(
        observed,
        scraped=False,
        broker_state=None,
        raft_state=None,
        apply_lag_seconds=None,
        since_heartbeat_seconds=heard_seconds,
        fenced=fenced,
    )


CASES = (
    *(HealthCase(f"a {role.value} node that is well", WELL[role], well=True) for role in Role),
    HealthCase(
        "a broker in a long log recovery, an hour old",
        replace(
            _BROKER,
            now=3600.0,
            broker_state=2,
            fenced=True,
            listening={9090: False, 9091: False},
            recovery={"/data-0": Recovery(12, 340)},
            recovery_moved_at=3590.0,
            apply_lag_seconds=3500.0,
            not_in_sync=40,
            was_in_sync=False,
        ),
        well=True,
    ),
    HealthCase(
        "no java left",
        replace(_silent(_BROKER, 3.0, fenced=False), process=False, listening={9091: False}),
        shipped_green=False,
    ),
    HealthCase(
        "a controller without its majority",
        replace(_CONTROLLER, raft_state="prospective", raft_leader=-1, quorum_answers=False),
    ),
    HealthCase(
        "a combined node without its majority",
        replace(_COMBINED, raft_state="prospective", raft_leader=-1, quorum_answers=False),
    ),
    HealthCase(
        "a broker while the controllers have no majority",
        replace(_BROKER, quorum_answers=False, fenced=None, apply_lag_seconds=60.0),
        serves=True,
    ),
    HealthCase("a controller that never joined", replace(_CONTROLLER, voter_lag_seconds=NEVER)),
    HealthCase("a broker fenced again, and running again", replace(_BROKER, fenced=True)),
    HealthCase(
        "a broker that hangs past its session",
        _silent(_BROKER, 30.0, fenced=True),
        shipped_green=False,
    ),
    HealthCase(
        "one of two directories still in recovery",
        replace(
            _BROKER,
            broker_state=1,
            fenced=True,
            listening={9090: False, 9091: False},
            recovery={"/data-0": Recovery(0, 0), "/data-1": Recovery(3, 12)},
            apply_lag_seconds=300.0,
            not_in_sync=40,
            was_in_sync=False,
        ),
        well=True,
    ),
    HealthCase(
        "state 3 while a directory still recovers, which 4.2 never tells",
        replace(_BROKER, recovery={"/data-0": Recovery(0, 0), "/data-1": Recovery(3, 12)}),
    ),
    HealthCase(
        "a broker that refills from empty",
        replace(_BROKER, not_in_sync=12, was_in_sync=False),
    ),
    HealthCase("a broker that fell behind", replace(_BROKER, not_in_sync=2), serves=True),
    HealthCase("one log directory lost", replace(_BROKER, offline_log_directories=1), serves=True),
    HealthCase("a dead listener", replace(_BROKER, listening={9091: False})),
    HealthCase("metadata applied no more", replace(_BROKER, apply_lag_seconds=300.0)),
    HealthCase("a broker in controlled shutdown", replace(_BROKER, broker_state=6)),
    HealthCase(
        "gauges gone from the exporter", replace(_BROKER, broker_state=None), shipped_green=False
    ),
    HealthCase(
        "raft gauges gone from a controller's exporter", replace(_CONTROLLER, raft_state=None)
    ),
    HealthCase("one missed scrape", _silent(_BROKER, 0.5, fenced=False), shipped_green=False),
    HealthCase(
        "the first node of a combined cluster whose others are pending",
        _FIRST_OF_MANY,
        shipped_green=False,
    ),
)
