"""`EvictionGate` for programs in any language: who evicts one of Kafka's pods has to ask it."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi

from infra.functions.definition import Scope
from infra.functions.function import in_cluster
from infra.gate import gate
from infra.iam import Account
from infra.package import adopted, facts
from infra.package.adopted import Kafka, Machines

TYPE = "stillwater:index:EvictionGate"
LEVELS = ("gate", "act")


class EvictionGateArgs(TypedDict):
    cluster: str
    """What `Operations` is called by."""
    eks_cluster: str
    """The EKS cluster's name."""
    endpoint: pulumi.Input[str]
    """Its API server: `https://` and a name."""
    certificate_authority: pulumi.Input[str]
    """Its authority as EKS gives it: base64."""
    kafka: Kafka
    """The one Kafka that is meant."""
    machines: Machines
    """What holds its nodes: the gate's pods run off them, where there are others."""
    image: str
    """The gate's image with its version: `docker build --target gate` of this repository."""
    ledger_table: pulumi.Input[str]
    """The ledger of `Operations`."""
    ticks_queue_url: pulumi.Input[str]
    """The queue of `Operations` that asks for the next step of an incident."""
    level: NotRequired[str]
    """The level of `Operations`: `gate` or `act`. `gate` by default."""
    drainer: NotRequired[str]
    """The drainer of `Operations`."""
    queue_url: NotRequired[str]
    """The queue of `Operations` of their termination handler."""
    operators: NotRequired[Sequence[str]]
    """Accounts whose deletions of Kafka's pods are not asked about, beside Strimzi's own where it
    runs beside its Kafka: `system:serviceaccount:NAMESPACE:NAME`."""


class EvictionGate(pulumi.ComponentResource):
    """Two replicas off Kafka's machines that the API server asks before a pod of Kafka is evicted,
    and the least they may do in AWS and in the cluster.

    For an `Operations` at `gate` or `act` whose `gateElsewhere` is set: in a program of its own,
    such as the one that has the cluster's `kubernetes` provider."""

    service: pulumi.Output[str]
    """What the gate is called in the namespace `kube-system`."""

    def __init__(
        self, name: str, args: EvictionGateArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        account = Account.current(pulumi.InvokeOptions(parent=self))
        description, cluster = adopted.adoption_of(
            args,
            account.region,
            level=facts.one_of(args, "level", LEVELS, "gate"),
            # No function stands in any here.
            subnets=[adopted.LATE_SUBNET.format(0)],
            security_groups=[adopted.LATE_SECURITY_GROUP.format(0)],
            drainer=args.get("drainer"),
            queue_url=args.get("queue_url"),
            eviction_gate=adopted.gate(args, "image", args.get("operators")),
        )
        gate.EvictionGate(
            name,
            gate.EvictionGateArgs(
                scope=Scope(cluster=cluster, account=account),
                late={
                    "ledger_table": args["ledger_table"],
                    "ticks_queue_url": args["ticks_queue_url"],
                    **in_cluster(
                        cluster.eks_cluster,
                        args["endpoint"],
                        args["certificate_authority"],
                        description.kafkas[0].bootstrap or "",
                    ),
                },
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.service = pulumi.Output.from_input(cluster.gate_name)
        self.register_outputs({"service": self.service})
