"""A node leaves and its broker comes back: the story of a rotation in figures.

From left to right as it happens: the functions decide (CloudWatch), a node is cordoned, leaders
move away, the broker is back and catches up.
"""

from __future__ import annotations

from core import metric_names as counted
from core.cluster import ClusterSpec
from infra.alerts.dashboards.panel import RATE, Counted, Dashboard, Panel, Prom, by_pod
from infra.alerts.rules import Scope
from infra.alerts.rules.alert import BROKER_STATE
from infra.alerts.rules.rotation import CORDONED


def dashboard(spec: ClusterSpec) -> Dashboard:
    """Return the dashboard of rotations."""
    scope = Scope(spec)
    return Dashboard(
        key="rotation",
        title="Kafka rotation",
        description="Which nodes leave, what Kafka bears meanwhile, when brokers are back.",
        panels=[*_decisions(), *_nodes(scope), *_brokers(scope)],
    )


def _decisions() -> list[Panel]:
    return [
        Panel(
            title="Incidents",
            description="Nodes on their way out: opened, and the two ways a rotation fails.",
            unit="short",
            queries=tuple(
                Counted(name=name)
                for name in (
                    counted.INCIDENTS_OPENED,
                    counted.INCIDENTS_RETAINED,
                    counted.INCIDENTS_LOST,
                )
            ),
        ),
        Panel(
            title="Decisions and pages",
            description="Turns of the loop, and how often it asked for somebody.",
            unit="short",
            queries=tuple(
                Counted(name=name)
                for name in (counted.DECISIONS_MADE, counted.PAGES_SENT, counted.LEDGER_ERRORS)
            ),
        ),
    ]


def _nodes(scope: Scope) -> list[Panel]:
    return [
        Panel(
            title="Pods on cordoned nodes",
            description="Pods of Kafka whose node is being drained; each is one rotation.",
            unit="short",
            queries=(
                Prom(
                    expression=f"count by (pod, node) ({scope.pods} and on (node) {CORDONED})",
                    legend="{{pod}} on {{node}}",
                ),
            ),
        ),
        Panel(
            title="Pods without a node",
            description="Pods of Kafka that wait for a node of their zone. With a replacement "
            "first, a moment at most.",
            unit="short",
            queries=by_pod(scope.pending),
        ),
    ]


def _brokers(scope: Scope) -> list[Panel]:
    mine = scope.kafka
    controller = "kafka_controller_kafkacontroller"
    return [
        Panel(
            title="Registrations",
            description="What the controllers hold of each broker: 10 fenced, 20 in controlled "
            "shutdown, 30 active.",
            unit="short",
            queries=(
                Prom(
                    expression=f"max by (broker) ({controller}_brokerregistrationstate{mine})",
                    legend="broker {{broker}}",
                ),
            ),
        ),
        Panel(
            title="Broker states",
            description="2 is log recovery, 3 running, 6 pending controlled shutdown. No line is "
            "no process.",
            unit="short",
            queries=by_pod(f"max by (pod) ({BROKER_STATE}{mine})"),
        ),
        Panel(
            title="Replicas missing",
            description="As the leaders see it: partitions at min ISR bear no further loss, "
            "those under it refuse writes.",
            unit="short",
            queries=tuple(
                Prom(
                    expression=f"sum(kafka_server_replicamanager_{name}{mine})",
                    legend=legend,
                )
                for legend, name in (
                    ("under-replicated", "underreplicatedpartitions"),
                    ("at min ISR", "atminisrpartitioncount"),
                    ("under min ISR", "underminisrpartitioncount"),
                )
            ),
        ),
        Panel(
            title="Catching up",
            description="What brokers fetch as followers: a hill after each rotation, whose area "
            "is what the rotation moved.",
            unit="Bps",
            queries=by_pod(
                "sum by (pod) (rate(kafka_server_brokertopicmetrics_"
                f"replicationbytesinpersec_total{mine}[{RATE}]))"
            ),
        ),
        Panel(
            title="Leaders",
            description="Partitions led, by broker: away before a rotation, back after it.",
            unit="short",
            queries=by_pod(f"sum by (pod) (kafka_server_replicamanager_leadercount{mine})"),
        ),
        Panel(
            title="Preferred leaders missing",
            description="Partitions not led by the broker they should be: uneven load until they "
            "are elected again.",
            unit="short",
            queries=(Prom(expression=f"max({controller}_preferredreplicaimbalancecount{mine})"),),
        ),
    ]
