"""Alerts on nodes that leave: a rotation that takes longer than its own timeouts allow.

The limits are the description's own timings: what core.timing has compared is also what is watched.
"""

from __future__ import annotations

from core.naming import GATE
from infra.alerts.rules.alert import Alert, Scope, whole_minutes

GATES = f'kube_deployment_status_replicas_available{{deployment="{GATE}"}}'
CORDONED = "max by (node) (kube_node_spec_unschedulable) == 1"
# Values of BrokerRegistrationState (KIP-1131): 10 fenced, 20 controlled shutdown, 30 active. A
# broker that was unregistered is -1 and is missed by nobody.
UNREGISTERED, ACTIVE = 0, 30


def alerts(scope: Scope) -> list[Alert]:
    """Return the alerts on rotations."""
    mine, timings = scope.kafka, scope.spec.timings
    state = f"kafka_controller_kafkacontroller_brokerregistrationstate{mine}"
    leaving = f"{scope.pods} and on (node) {CORDONED}"
    lacking = f"sum(kafka_server_replicamanager_underminisrpartitioncount{mine})"
    gate = [] if scope.spec.eviction_gate is None else [_gate_away(scope)]
    return [
        *gate,
        Alert(
            name="KafkaRotationStuck",
            expression=leaving,
            minutes=whole_minutes(2 * timings.nth_drain_timeout_seconds),
            severity="warning",
            summary="{{ $labels.pod }} is still on {{ $labels.node }}, which is cordoned, twice "
            "as long as a drain may take.",
        ),
        Alert(
            name="KafkaControlledShutdownStuck",
            expression="max(kafka_controller_kafkacontroller_controlledshutdownbrokercount"
            f"{mine}) > 0",
            minutes=whole_minutes(timings.pod_grace_seconds) + 1,
            severity="warning",
            summary="A broker hands over its leaders for longer than its pod's grace: it was "
            "killed, or is about to be.",
        ),
        Alert(
            name="KafkaUnderMinIsrInRotation",
            expression=f"{lacking} > 0 and on () count({leaving}) > 0",
            minutes=0,
            severity="critical",
            summary="{{ $value }} partitions cannot be written while a node is drained: the "
            "drain took a replica that was needed.",
        ),
        Alert(
            name="KafkaBrokerNotBack",
            expression=f"(max by (broker) ({state}) > {UNREGISTERED}) < {ACTIVE}",
            minutes=whole_minutes(timings.post_condition_wait_seconds),
            severity="critical",
            summary="Broker {{ $labels.broker }} is registered and not active; a rotation waits "
            "no longer for it.",
        ),
    ]


def _gate_away(scope: Scope) -> Alert:
    """Alert on a gate that nobody serves: drains of brokers wait until somebody does."""
    return Alert(
        name="KafkaEvictionGateAway",
        expression=f"(sum({GATES}) < 1 or absent({GATES})) and on () count({scope.pods}) > 0",
        minutes=2,
        severity="critical",
        summary="No replica of the eviction gate answers: nobody can evict a pod of Kafka's.",
    )
