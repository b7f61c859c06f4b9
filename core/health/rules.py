"""Is a Kafka node alive, and is it ready? Three sets of rules over one observation.

`proposal` is what Strimzi's proposal 046 asks, `shipped` what Strimzi runs, `strict` (the default)
what this project asks. The strict rules hold what a node says of itself against what the quorum,
the active controller and the leaders say, because the first alone stays green when a broker is
fenced again, when it refills from nothing, or when one of its directories still recovers; the
gravest answer is the verdict. Who probes, how often, and how many answers in a row count is the
kubelet's affair. rules.toml has observations in which the sets differ, of which
docs/reference/health-rules.md is made.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from core.health.node import (
    CONTROL_PLANE_PORT,
    NEVER,
    REPLICATION_PORT,
    RUNNING,
    STARTING,
    STATES,
    STOPPING,
    UNKNOWN_STATE,
    Limits,
    NodeObservation,
    Recovery,
    Role,
)
from core.health.verdict import Health, HealthVerdict, healthy, not_known, unhealthy

# Nothing else is part of a quorum with a leader.
JOINED = frozenset({"leader", "follower"})
# A node that has applied nothing counts from 1970.
_EVER_SECONDS = 1e9
# Of one node: a degraded one serves, and one that starts does not, so starting hides degraded. Of
# many parts it is the other way round (core.health.verdict.SEVERITY).
_GRAVITY = (Health.HEALTHY, Health.DEGRADED, Health.STARTING, Health.UNKNOWN, Health.UNHEALTHY)


def strict_liveness(observed: NodeObservation, limits: Limits) -> HealthVerdict:
    """Ask for a restart only where one may mend: no process, a dead listener, a hung JVM.

    A node is never restarted for what its peers do not say, nor while it recovers its logs: it
    would begin that again.
    """
    name = f"Node {observed.node_id}"
    if observed.process is False:
        return unhealthy(f"{name} has no Java process.")
    if observed.recovering:
        return healthy(f"{name} recovers its logs.")
    if observed.scraped:
        closed = _closed_port(observed, limits)
        if closed is not None:
            return unhealthy(f"{name} runs, but does not listen on port {closed}.")
        return healthy(f"{name} runs and answers.")
    hangs = _hangs(observed, limits)
    if hangs is not None:
        return unhealthy(f"{name} hangs: its exporter does not answer, and {hangs}.")
    return not_known(
        f"The exporter of node {observed.node_id} does not answer.",
        (f"metrics of node {observed.node_id}",),
    )


def _hangs(observed: NodeObservation, limits: Limits) -> str | None:
    """Return what else says that a silent broker hangs; None where nothing does."""
    heard = observed.since_heartbeat_seconds
    if heard is not None and heard > limits.session_seconds and not _young(observed, limits):
        return f"the controllers have not heard of it for {heard:.0f} s"
    # Of a broker that it fenced, the active controller may tell no time since its last heartbeat
    # (seen on 4.2.0); that this process has served before tells it from one that starts.
    return "the quorum has fenced it" if observed.was_in_sync and observed.fenced else None


def _closed_port(observed: NodeObservation, limits: Limits) -> int | None:
    """Return a port that should be open by now and is not.

    A broker opens its own only after its logs are recovered (KAFKA-14658), a controller within
    seconds; which of them is late is asked of the state, and of the time.
    """
    replication, control = (
        observed.listening.get(port) for port in (REPLICATION_PORT, CONTROL_PLANE_PORT)
    )
    if observed.role.is_broker and observed.broker_state == RUNNING and replication is False:
        return REPLICATION_PORT
    late = observed.started_at is not None and not _young(observed, limits)
    return CONTROL_PLANE_PORT if observed.role.is_controller and late and control is False else None


def strict_readiness(observed: NodeObservation, limits: Limits) -> HealthVerdict:
    """Return the gravest of all findings, with every reason as grave and every missing source."""
    found = list(findings(observed, limits))
    if not found:
        return healthy(f"Node {observed.node_id} does its part.")
    gravest = max((f.health for f in found), key=_GRAVITY.index)
    return HealthVerdict(
        gravest,
        " ".join(f.reason for f in found if f.health is gravest),
        tuple(source for f in found for source in f.missing),
    )


def findings(observed: NodeObservation, limits: Limits) -> Iterator[HealthVerdict]:
    """Yield everything that keeps a node from being healthy."""
    if observed.process is False:
        yield _finding(observed, Health.UNHEALTHY, "has no Java process")
        return
    if not observed.scraped:
        yield _missing(observed, "metrics", "its exporter does not answer")
    else:
        if observed.role.is_broker:
            yield from _broker_says(observed, limits)
        if observed.role.is_controller:
            yield from _controller_says(observed, limits)
        yield from _applies(observed, limits)
    if observed.role.is_broker:
        yield from _others_say(observed)
    if observed.role.is_controller:
        yield from _leader_says(observed, limits)


def _broker_says(observed: NodeObservation, limits: Limits) -> Iterator[HealthVerdict]:
    """Judge the broker half by its own gauges."""
    state = observed.broker_state
    if observed.recovering:
        yield _recovery(observed, limits)
    elif state is None:
        # At SIGTERM the gauges go within 0.1 s, and an exporter may lose them otherwise too.
        yield _missing(observed, "BrokerState", "its exporter answers without BrokerState")
    elif state in STARTING:
        yield _excuse_if_young(observed, limits, f"is {STATES[state]}")
    elif state in STOPPING:
        yield _finding(observed, Health.UNHEALTHY, f"is {STATES[state]}")
    elif state != RUNNING:
        yield _missing(observed, "BrokerState", f"its BrokerState is {state}")
    elif observed.listening.get(REPLICATION_PORT) is False:
        yield _finding(
            observed, Health.UNHEALTHY, f"is running and does not listen on {REPLICATION_PORT}"
        )
    if observed.offline_log_directories:
        yield _finding(
            observed,
            Health.DEGRADED,
            f"has lost {observed.offline_log_directories} of its log directories",
        )


def _recovery(observed: NodeObservation, limits: Limits) -> HealthVerdict:
    left = "; ".join(
        f"{directory}: {recovery.logs or 0} logs and {recovery.segments or 0} segments left"
        for directory, recovery in observed.recovery.items()
        if recovery.left
    )
    told = f"recovers its logs ({left or 'how far is not told'})"
    moved = observed.recovery_moved_at
    if moved is not None and observed.now - moved > limits.recovery_stall_seconds:
        stalled = f"and that has not moved for {observed.now - moved:.0f} s"
        return _finding(observed, Health.UNHEALTHY, f"{told}, {stalled}")
    return _finding(observed, Health.STARTING, told)


def _controller_says(observed: NodeObservation, limits: Limits) -> Iterator[HealthVerdict]:
    """Judge the controller half by its own gauges."""
    state = observed.raft_state
    if observed.listening.get(CONTROL_PLANE_PORT) is False:
        yield _excuse_if_young(observed, limits, f"does not listen on {CONTROL_PLANE_PORT}")
    if state is None:
        yield _missing(observed, "raft current-state", "its exporter answers without raft state")
    elif state not in JOINED:
        yield _excuse_if_young(
            observed, limits, f"is {state}, so it has no part in a quorum with a leader"
        )
    elif observed.raft_leader is not None and observed.raft_leader < 0:
        yield _excuse_if_young(observed, limits, "knows no leader of the quorum")


def _applies(observed: NodeObservation, limits: Limits) -> Iterator[HealthVerdict]:
    lag = observed.apply_lag_seconds
    if lag is None or lag <= limits.apply_lag_seconds or observed.quorum_answers is False:
        return  # without a quorum there is nothing to apply
    if observed.role.is_broker and observed.recovering:
        return  # the thread that applies metadata is the one that loads the logs (seen on 4.2.0)
    since = f"applied its last record of metadata {lag:.0f} s ago"
    yield _excuse_if_young(
        observed, limits, since if lag < _EVER_SECONDS else "has applied no metadata yet"
    )


def _others_say(observed: NodeObservation) -> Iterator[HealthVerdict]:
    """Judge the broker half by what the quorum and the leaders say of it."""
    if observed.quorum_answers is False and observed.broker_state == RUNNING:
        # Brokers go on serving from memory, and describe everybody as unfenced.
        yield _finding(
            observed, Health.DEGRADED, "serves from memory: the controllers have no quorum"
        )
        return
    if observed.recovering or observed.broker_state in STARTING:
        return  # it is fenced and out of sync, as everybody is who starts
    fenced = observed.is_fenced
    if fenced is None:
        yield _missing(observed, "fencing", "neither DescribeCluster nor a controller told of it")
    elif fenced and observed.broker_state == RUNNING:
        yield _finding(
            observed, Health.UNHEALTHY, "is fenced, though it says of itself that it is running"
        )
    elif fenced:
        yield _finding(observed, Health.UNHEALTHY, "is fenced")
    if observed.not_in_sync is None:
        yield _missing(observed, "ISR", "the leaders of its partitions were not asked")
    elif observed.not_in_sync and not observed.was_in_sync:
        yield _finding(
            observed,
            Health.STARTING,
            f"is still filling {observed.not_in_sync} replicas that their leaders do not count as "
            f"in sync",
        )
    elif observed.not_in_sync:
        # It leads others, which clients reach only here.
        yield _finding(observed, Health.DEGRADED, f"has fallen out of {observed.not_in_sync} ISRs")


def _leader_says(observed: NodeObservation, limits: Limits) -> Iterator[HealthVerdict]:
    """Judge the controller half by what the quorum's leader says of it."""
    lag = observed.voter_lag_seconds
    if observed.quorum_answers is False:
        yield _excuse_if_young(observed, limits, "is one of controllers that have no quorum")
    elif lag == NEVER:
        yield _excuse_if_young(observed, limits, "has never fetched from the quorum's leader")
    elif lag is not None and lag > limits.voter_lag_seconds:
        yield _excuse_if_young(observed, limits, f"is {lag:.0f} s behind the quorum's leader")


def _young(observed: NodeObservation, limits: Limits) -> bool:
    started = observed.started_at
    return started is not None and observed.now - started < limits.start_seconds


def _excuse_if_young(observed: NodeObservation, limits: Limits, told: str) -> HealthVerdict:
    """Return a finding that is excused while the node is young."""
    if _young(observed, limits):
        return _finding(observed, Health.STARTING, told)
    return _finding(observed, Health.UNHEALTHY, told)


def _finding(observed: NodeObservation, health: Health, told: str) -> HealthVerdict:
    return HealthVerdict(health, f"Node {observed.node_id} {told}.")


def _missing(observed: NodeObservation, source: str, why: str) -> HealthVerdict:
    missing = f"{source} of node {observed.node_id}"
    return not_known(f"How node {observed.node_id} does is not known: {why}.", (missing,))


class RuleSet(StrEnum):
    PROPOSAL = "proposal"
    SHIPPED = "shipped"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class ProbeRule:
    """What one rule set asks of one role, in words, for the page of rules."""

    rules: RuleSet
    role: Role
    liveness: str
    readiness: str


@cache
def _table() -> Mapping[str, Any]:
    """Return what only the page of rules and tests ask for; no function's zip has it."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def probe_rules() -> list[ProbeRule]:
    """Return what each set of rules asks of each role."""
    return [
        ProbeRule(**{**row, "rules": RuleSet(row["rules"]), "role": Role(row["role"])})
        for row in _table()["rule"]
    ]


def liveness(
    observed: NodeObservation, rules: RuleSet = RuleSet.STRICT, limits: Limits | None = None
) -> HealthVerdict:
    """Say whether the container should go on running; see `is_alive`."""
    if rules is RuleSet.STRICT:
        return strict_liveness(observed, limits or Limits())
    if rules is RuleSet.SHIPPED:
        # kafka_liveness.sh ends with 0 whether or not it finds java.
        return healthy("The shipped script always passes.")
    if observed.role is Role.BROKER:
        return _listens(observed, REPLICATION_PORT)
    if observed.process is None:
        return _unknown(observed, "the list of processes")
    if not observed.process:
        return _finding(observed, Health.UNHEALTHY, "has no Java process")
    return _finding(observed, Health.HEALTHY, "has a Java process")


def readiness(
    observed: NodeObservation, rules: RuleSet = RuleSet.STRICT, limits: Limits | None = None
) -> HealthVerdict:
    """Say whether the node does its part in the cluster now; see `is_ready`."""
    if rules is RuleSet.STRICT:
        return strict_readiness(observed, limits or Limits())
    # The two agree here, and neither asks the controller half of a combined node anything.
    if observed.role is Role.CONTROLLER:
        return _listens(observed, CONTROL_PLANE_PORT)
    state = observed.broker_state
    if state is None:
        return _finding(observed, Health.UNHEALTHY, "tells no BrokerState")
    told = f"is {STATES.get(state, state)} (BrokerState {state})"
    ready = RUNNING <= state != UNKNOWN_STATE
    return _finding(observed, Health.HEALTHY if ready else Health.UNHEALTHY, told)


def is_alive(verdict: HealthVerdict) -> bool:
    """Say whether a liveness probe passes: nothing is restarted for what is merely not known."""
    return verdict.health is not Health.UNHEALTHY


def is_ready(verdict: HealthVerdict) -> bool:
    """Say whether a readiness probe passes.

    A degraded node still serves what others cannot, so it stays. One of which too little is known
    does not pass: that it is well is what a readiness probe asserts.
    """
    return verdict.health in {Health.HEALTHY, Health.DEGRADED}


def _listens(observed: NodeObservation, port: int) -> HealthVerdict:
    found = observed.listening.get(port)
    if found is None:
        return _unknown(observed, f"port {port}")
    if not found:
        return _finding(observed, Health.UNHEALTHY, f"has no {port} open")
    return _finding(observed, Health.HEALTHY, f"listens on {port}")


def _unknown(observed: NodeObservation, source: str) -> HealthVerdict:
    return not_known(f"No source has {source} of node {observed.node_id}.", (source,))


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


def _case(
    *, role: str, observed: Mapping[str, Any] | None = None, gone: Sequence[str] = (), **said: Any
) -> HealthCase:
    otherwise = {**dict.fromkeys(gone), **(observed or {})}
    if "listening" in otherwise:
        otherwise["listening"] = {int(p): open_ for p, open_ in otherwise["listening"].items()}
    if "recovery" in otherwise:
        otherwise["recovery"] = {d: Recovery(*left) for d, left in otherwise["recovery"].items()}
    return HealthCase(observed=replace(WELL[Role(role)], **otherwise), **said)


def cases() -> list[HealthCase]:
    """Return observations in which the sets of rules differ, such as real nodes give."""
    return [_case(**row) for row in _table()["case"]]
