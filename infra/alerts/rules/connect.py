"""Alerts on Connect: its workers, its tasks, its rebalances."""

from __future__ import annotations

from infra.alerts.rules.alert import Alert, Scope, fewer


def alerts(scope: Scope) -> list[Alert]:
    """Return the alerts on Connect's workers; none where the description has no Connect."""
    described, mine = scope.spec.connect, scope.connect
    if described is None:
        return []
    tasks = "kafka_connect_connect_worker_metrics_connector_failed_task_count"
    rebalancing = "kafka_connect_connect_worker_rebalance_metrics_rebalancing"
    return [
        Alert(
            name="ConnectTaskFailed",
            # GET /health stays 200: it knows the worker and none of its tasks (KIP-1017).
            expression=f"sum by (connector) ({tasks}{mine}) > 0",
            minutes=5,
            severity="warning",
            summary="{{ $value }} tasks of connector {{ $labels.connector }} have failed.",
        ),
        Alert(
            name="ConnectWorkerMissing",
            expression=fewer(f"{rebalancing}{mine}", described.replicas),
            minutes=10,
            severity="warning",
            summary=f"Fewer than {described.replicas} Connect workers answer.",
        ),
        Alert(
            name="ConnectRebalancing",
            expression=f"max({rebalancing}{mine}) == 1",
            minutes=15,
            severity="warning",
            summary="Connect rebalances for a quarter of an hour: tasks stand still.",
        ),
    ]
