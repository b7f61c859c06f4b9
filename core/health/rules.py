"""Is a Kafka node alive, and is it ready? Three sets of rules over one observation.

`proposal` is what Strimzi's proposal 046 asks, `shipped` what Strimzi runs, `strict` (the default)
what this project asks: core.health.strict. Who probes, how often, and how many answers in a row
count is the kubelet's affair. docs/reference/health-rules.md is made from `RULES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.health import strict
from core.health.limits import Limits
from core.health.node import (
    CONTROL_PLANE_PORT,
    REPLICATION_PORT,
    RUNNING,
    STATES,
    UNKNOWN_STATE,
    NodeObservation,
    Role,
)
from core.health.verdict import Health, HealthVerdict, healthy, not_known, unhealthy


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


_JAVA, _ALWAYS = "a Java process runs", "nothing: the shipped script has no failing path"
_STATE = "`BrokerState` is 3 or more, and not 127"
_LISTENS = "port {} is listened on"
_BROKER = (
    "state 3, no directory in recovery, not fenced as the quorum says, applies metadata, in every "
    "ISR once since its start"
)
_CONTROLLER = "port 9090, leader or follower of a known leader, caught up, applies metadata"
RULES = (
    ProbeRule(RuleSet.PROPOSAL, Role.CONTROLLER, _JAVA, _LISTENS.format(CONTROL_PLANE_PORT)),
    ProbeRule(RuleSet.PROPOSAL, Role.BROKER, _LISTENS.format(REPLICATION_PORT), _STATE),
    ProbeRule(RuleSet.PROPOSAL, Role.COMBINED, _JAVA, _STATE),
    ProbeRule(RuleSet.SHIPPED, Role.CONTROLLER, _ALWAYS, _LISTENS.format(CONTROL_PLANE_PORT)),
    ProbeRule(RuleSet.SHIPPED, Role.BROKER, _ALWAYS, _STATE),
    ProbeRule(RuleSet.SHIPPED, Role.COMBINED, _ALWAYS, _STATE),
    ProbeRule(
        RuleSet.STRICT,
        Role.CONTROLLER,
        f"{_JAVA}; {_LISTENS.format(CONTROL_PLANE_PORT)} once it had its time to start",
        _CONTROLLER,
    ),
    ProbeRule(
        RuleSet.STRICT,
        Role.BROKER,
        f"{_JAVA}; {_LISTENS.format(REPLICATION_PORT)} once it is in state 3; it is not hung "
        f"(exporter silent and last heartbeat older than the session)",
        _BROKER,
    ),
    ProbeRule(RuleSet.STRICT, Role.COMBINED, "both of the above", f"{_BROKER}; {_CONTROLLER}"),
)


def liveness(
    observed: NodeObservation, rules: RuleSet = RuleSet.STRICT, limits: Limits | None = None
) -> HealthVerdict:
    """Say whether the container should go on running; see `is_alive`."""
    if rules is RuleSet.STRICT:
        return strict.liveness(observed, limits or Limits())
    if rules is RuleSet.SHIPPED:
        # kafka_liveness.sh ends with 0 whether or not it finds java.
        return healthy("The shipped script always passes.")
    if observed.role is Role.BROKER:
        return _listens(observed, REPLICATION_PORT)
    if observed.process is None:
        return _unknown(observed, "the list of processes")
    if not observed.process:
        return _no(observed, "has no Java process")
    return _yes(observed, "has a Java process")


def readiness(
    observed: NodeObservation, rules: RuleSet = RuleSet.STRICT, limits: Limits | None = None
) -> HealthVerdict:
    """Say whether the node does its part in the cluster now; see `is_ready`."""
    if rules is RuleSet.STRICT:
        return strict.readiness(observed, limits or Limits())
    # The two agree here, and neither asks the controller half of a combined node anything.
    if observed.role is Role.CONTROLLER:
        return _listens(observed, CONTROL_PLANE_PORT)
    state = observed.broker_state
    if state is None:
        return _no(observed, "tells no BrokerState")
    told = f"is {STATES.get(state, state)} (BrokerState {state})"
    return (_yes if RUNNING <= state != UNKNOWN_STATE else _no)(observed, told)


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
    return _yes(observed, f"listens on {port}") if found else _no(observed, f"has no {port} open")


def _yes(observed: NodeObservation, told: str) -> HealthVerdict:
    return healthy(f"Node {observed.node_id} {told}.")


def _no(observed: NodeObservation, told: str) -> HealthVerdict:
    return unhealthy(f"Node {observed.node_id} {told}.")


def _unknown(observed: NodeObservation, source: str) -> HealthVerdict:
    return not_known(f"Nobody told {source} of node {observed.node_id}.", (source,))
