"""Alerts on brokers and their pods: there, started, able to answer."""

from __future__ import annotations

from infra.alerts.rules.alert import BROKER_STATE, Alert, Scope, fewer

RUNNING = 3
LEAST_IDLE = 0.2
# Kafka's meter counts the idle nanoseconds of all its handlers, each by its share.
NANOSECONDS = "1e9"
RESTARTS = 2


def alerts(scope: Scope) -> list[Alert]:
    """Return the alerts on brokers and pods."""
    mine = scope.kafka
    idle = f"kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total{mine}"
    restarts = f'kube_pod_container_status_restarts_total{{namespace="{scope.namespace}"}}'
    return [
        Alert(
            name="KafkaBrokerMissing",
            expression=fewer(f"{BROKER_STATE}{mine} == {RUNNING}", scope.brokers),
            minutes=15,
            severity="critical",
            summary=f"Fewer than {scope.brokers} brokers run for a quarter of an hour.",
        ),
        Alert(
            name="KafkaPodPending",
            expression=scope.pending,
            minutes=10,
            severity="critical",
            summary="{{ $labels.pod }} finds no node for ten minutes; its volume ties it to a "
            "zone.",
        ),
        Alert(
            name="KafkaPodRestarting",
            expression=f"sum by (namespace, pod) (increase({restarts}[30m])) > {RESTARTS} "
            f"and on (namespace, pod) {scope.pods}",
            minutes=0,
            severity="warning",
            summary="{{ $labels.pod }} restarted {{ $value | humanize }} times in half an hour.",
        ),
        Alert(
            name="KafkaRequestHandlersBusy",
            expression=f"max by (pod, node) (rate({idle}[5m])) / {NANOSECONDS} < {LEAST_IDLE}",
            minutes=15,
            severity="warning",
            summary="{{ $labels.pod }} has {{ $value | humanizePercentage }} of its request "
            "handlers idle: clients wait.",
        ),
    ]
