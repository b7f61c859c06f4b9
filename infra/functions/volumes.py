"""λ volumes: every five minutes it looks at Kafka's volumes and decides what becomes of them.

Beside the other functions and not among them: it follows no incident, writes items of its own in
the ledger's table, and alone may read metrics.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from core import naming
from core.cluster import ClusterSpec, NodePool
from core.settings.prometheus_address import Workspace
from core.volumes import policy
from infra import iam
from infra.functions.function import Function, FunctionArgs, Placement
from infra.functions.kept import KEYS as SETTINGS
from infra.functions.kept import keep
from infra.functions.ledger import Ledger
from infra.functions.packaging import Package
from infra.functions.schedule import Schedule, wake

TYPE = "stillwater:infra:Volumes"
SCHEDULE = "rate(5 minutes)"
ROLE = "volumes"
# The ledger's items of this function: handlers.store.volume_records.
KEYS = "volume#*"


@dataclass(frozen=True, kw_only=True)
class VolumesArgs:
    spec: ClusterSpec
    account: iam.Account
    package: Package
    ledger: Ledger
    environment: Mapping[str, pulumi.Input[str]]
    eks_ca: pulumi.Input[str]
    placement: Placement


class Volumes(pulumi.ComponentResource):
    """The function, its rights and its schedule."""

    function: Function

    def __init__(
        self, name: str, args: VolumesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        spec = args.spec
        # The policies grow with every pool.
        long = {"STILLWATER_EKS_CA": args.eks_ca, "STILLWATER_VOLUMES": policies(spec)}
        kept = keep(f"{name}-kept", args.ledger, ROLE, long, self)
        self.function = Function(
            f"{name}-function",
            FunctionArgs(
                function_name=naming.function(spec.prefix, ROLE),
                description="What Kafka's volumes need, and what of it may be done",
                handler="handlers.volumes.handler",
                package=args.package,
                timeout_seconds=spec.timings.lambda_timeout_seconds,
                environment={**args.environment, **kept.environment},
                after=[kept.item],
                statements=self._statements(),
                account=args.account,
                placement=args.placement,
            ),
            opts=self._child,
        )
        asked = Schedule(
            prefix=spec.prefix, role=ROLE, does="looks at the volumes", expression=SCHEDULE
        )
        wake(name, asked, self.function, self)
        self.register_outputs({})

    def _statements(self) -> list[iam.Statement]:
        ledger = self._args.ledger
        return [
            iam.Statement(
                sid="LookAround",
                actions=[
                    "cloudwatch:GetMetricData",
                    "ec2:DescribeInstances",
                    "ec2:DescribeVolumes",
                    "ec2:DescribeVolumesModifications",
                ],
                # Describe calls of EC2 and metrics' data take no resource.
                resources=iam.ANY_RESOURCE,
            ),
            ledger.may("RememberVolumes", ["dynamodb:GetItem", "dynamodb:PutItem"], KEYS),
            ledger.may("ReadItsSettings", ["dynamodb:GetItem"], SETTINGS),
            # Who goes next, and how long those were away who went before.
            ledger.may(
                "ReadDepartures",
                ["dynamodb:GetItem"],
                "incident#*",
                f"rotation#{self._args.spec.name}",
            ),
            *self._workspace(),
            iam.Statement(
                sid="FindOpenIncidents",
                actions=["dynamodb:Query"],
                resources=[ledger.open_index_arn],
            ),
        ]

    def _workspace(self) -> list[iam.Statement]:
        """Return the right to ask a workspace; a Service is asked under RBAC."""
        asked = self._args.spec.metrics.prometheus
        address = None if asked is None else asked.asked
        if not isinstance(address, Workspace):
            return []
        of, place = self._args.account, f"{address.region}:{self._args.account.account_id}"
        workspace = f"arn:{of.partition}:aps:{place}:workspace/{address.id}"
        return [
            iam.Statement(sid="AskPrometheus", actions=["aps:QueryMetrics"], resources=[workspace])
        ]


def policies(spec: ClusterSpec) -> str:
    """Return what handlers.volume.settings reads: the mode, the budget, and each pool's policy."""
    budget = spec.volumes.max_monthly_increase_usd
    prometheus = spec.metrics.prometheus
    return json.dumps(
        {
            "mode": spec.volumes.mode,
            "frozen": spec.volumes.frozen,
            "budget_usd": None if budget is None else str(budget),
            "pools": [_pool(spec, pool) for pool in spec.pools],
            "prometheus": None if prometheus is None else prometheus.model_dump(),
        },
        separators=(",", ":"),
    )


def _pool(spec: ClusterSpec, pool: NodePool) -> dict[str, object]:
    return {
        "pools": [naming.kafka_node_pool(pool.name, zone) for zone in spec.zones_of(pool)],
        "volumes": [[v.size_gib, v.iops, v.throughput_mib_per_s] for v in pool.volumes],
        "policy": policy.to_json(pool.policy(apply=spec.volumes.applies)),
    }
