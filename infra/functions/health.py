"""λ health: how the whole cluster does, for whoever in the account may invoke it (ADR 0013).

It is called on schedule as well: its verdict is a metric with an alarm, which tells also when
Prometheus cannot. It reads the ledger, Kafka, the list of pods, and through the API server's proxy
the metrics of each Kafka node and the REST port of each Connect worker; RBAC names every pod with
its port, so it may GET that and nothing else of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from core import naming
from core.cluster import ClusterSpec
from core.constants import CONNECT_REST_PORT
from infra import iam
from infra.functions import rbac
from infra.functions.function import Function, FunctionArgs, Placement
from infra.functions.kept import KEYS as SETTINGS
from infra.functions.kept import keep
from infra.functions.ledger import Ledger
from infra.functions.packaging import Package
from infra.functions.schedule import Schedule, wake
from infra.kafka import identity as kafka_identity
from infra.kafka.cluster import kafka_pods

TYPE = "stillwater:infra:Health"
GROUP = "stillwater:health"
ROLE = "stillwater-health"
# Often enough to be a second pair of eyes beside Prometheus, and less than a cent a day.
SCHEDULE = "rate(5 minutes)"


@dataclass(frozen=True, kw_only=True)
class HealthArgs:
    spec: ClusterSpec
    account: iam.Account
    package: Package
    ledger: Ledger
    eks_endpoint: pulumi.Input[str]
    eks_ca: pulumi.Input[str]
    bootstrap: pulumi.Input[str]
    placement: Placement
    # Those with Kafka's authorities and with the credentials of these functions, by name.
    kafka_secrets: Sequence[str]


class Health(pulumi.ComponentResource):
    """The function, its access entry, and a role that reads what a verdict rests on."""

    function: Function

    def __init__(
        self, name: str, args: HealthArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.function = self._function()
        group = rbac.Group(name=GROUP, role=ROLE, parent=self)
        group.enter(f"{name}-entry", args.spec.prefix, self.function.role_arn)
        group.inside(f"{name}-role", args.spec.kubernetes.namespace, _rules(args))
        asked = Schedule(
            prefix=args.spec.prefix,
            role="health",
            does="asks how the cluster does",
            expression=SCHEDULE,
        )
        wake(name, asked, self.function, self)
        self.register_outputs({"name": self.function.name})

    def _function(self) -> Function:
        args = self._args
        # The list of nodes grows with every broker.
        long = {"STILLWATER_EKS_CA": args.eks_ca, "STILLWATER_KAFKA_NODES": nodes(args.spec)}
        kept = keep(f"{self._name}-kept", args.ledger, "health", long, self)
        return Function(
            f"{self._name}-function",
            FunctionArgs(
                function_name=naming.function(args.spec.prefix, "health"),
                description="How the whole cluster does: 200, 503 or 500, and why",
                handler="handlers.health.handler",
                package=args.package,
                timeout_seconds=args.spec.timings.lambda_timeout_seconds,
                environment={**environment(args), **kept.environment},
                after=[kept.item],
                statements=[
                    # What AWS said about zones; incidents come from the index.
                    args.ledger.may(
                        "ReadFreezes", ["dynamodb:GetItem"], f"freezes#{args.spec.name}"
                    ),
                    args.ledger.may("ReadItsSettings", ["dynamodb:GetItem"], SETTINGS),
                    iam.Statement(
                        sid="FindOpenIncidents",
                        actions=["dynamodb:Query"],
                        resources=[args.ledger.open_index_arn],
                    ),
                ],
                account=args.account,
                placement=args.placement,
            ),
            opts=self._child,
        )


def workers(spec: ClusterSpec) -> list[str]:
    """Return the pods of the Connect workers that a spec asks for."""
    count = 0 if spec.connect is None else spec.connect.replicas
    return [naming.connect_pod(spec.name, number) for number in range(count)]


def nodes(spec: ClusterSpec) -> str:
    """Return every Kafka node as handlers.health reads them: controller/controller-a:0 ...

    Strimzi gives a pool's nodes the first ids of those reserved in a zone.
    """
    return " ".join(
        f"{pool.role}/{naming.kafka_node_pool(pool.name, zone)}:"
        + ",".join(str(node_id) for node_id in reserved[: pool.nodes_per_zone])
        for pool in spec.pools
        for zone, reserved in spec.node_ids_of(pool).items()
    )


def environment(args: HealthArgs) -> dict[str, pulumi.Input[str]]:
    """Return the variables that handlers.health reads."""
    spec, connect = args.spec, args.spec.connect
    return {
        "STILLWATER_PREFIX": spec.prefix,
        "STILLWATER_CLUSTER": spec.name,
        "STILLWATER_NAMESPACE": spec.kubernetes.namespace,
        "STILLWATER_REGION": spec.region,
        "STILLWATER_LEDGER_TABLE": args.ledger.table_name,
        "STILLWATER_EKS_CLUSTER": spec.prefix,
        "STILLWATER_EKS_ENDPOINT": args.eks_endpoint,
        "STILLWATER_KAFKA_BOOTSTRAP": args.bootstrap,
        **kafka_identity.environment(spec),
        "STILLWATER_EXPORTERS": "on" if spec.metrics.enabled else "off",
        "STILLWATER_CONNECT_WORKERS": str(len(workers(spec))),
        "STILLWATER_CONNECT_STARTUP_S": str(0 if connect is None else connect.startup_seconds),
        "STILLWATER_CONNECT_PROBE_S": str(spec.timings.connect_probe_timeout_seconds),
    }


def _rest_ports(spec: ClusterSpec) -> list[str]:
    return [f"{pod}:{CONNECT_REST_PORT}" for pod in workers(spec)]


def _rules(args: HealthArgs) -> list[rbac.Rule]:
    spec = args.spec
    exposing = kafka_pods(spec) if spec.metrics.enabled else []
    return [
        rbac.may("", ["pods"], ["list"]),
        # A worker's REST port would also take orders: GET is all that is asked, and allowed.
        *rbac.may_get("pods/proxy", [*rbac.exporters(exposing), *_rest_ports(spec)]),
        *rbac.may_get("secrets", args.kafka_secrets),
    ]
