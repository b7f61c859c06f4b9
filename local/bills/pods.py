"""Shares an hour of a node among its pods, as AWS's split cost allocation data does.

A vCPU weighs nine times a GB of memory. A pod has the larger of what it asks for and what it uses;
what no pod has is unused, and goes to the pods of each meter by what they have of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

NODE_VCPU, NODE_GB = Decimal(2), Decimal(16)
VCPU_WEIGHT = 9
PLACES = Decimal("0.0000000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class BillPod:
    """A pod that every node of the cluster carries; `{broker}` in its name is the Kafka pod's."""

    name: str
    namespace: str
    vcpu: Decimal
    gb: Decimal
    # None where AWS does not know the controller, as it does not know a StrimziPodSet.
    workload_type: str | None = None
    workload: str | None = None


@dataclass(frozen=True, slots=True)
class PodShare:
    """One meter of one pod for one hour: what it had, what of the unused is its, and the cost."""

    pod: BillPod
    meter: str
    quantity: Decimal
    split: Decimal
    unused: Decimal


KAFKA = BillPod(name="{broker}", namespace="kafka", vcpu=Decimal("1.5"), gb=Decimal(12))
PODS = (
    KAFKA,
    BillPod(
        name="aws-node-{node}",
        namespace="kube-system",
        vcpu=Decimal("0.05"),
        gb=Decimal("0.125"),
        workload_type="DaemonSet",
        workload="aws-node",
    ),
    BillPod(
        name="agent-{node}",
        namespace="observability",
        vcpu=Decimal("0.1"),
        gb=Decimal("0.25"),
        workload_type="DaemonSet",
        workload="agent",
    ),
    BillPod(
        name="report-5d8f-{node}",
        namespace="default",
        vcpu=Decimal("0.1"),
        gb=Decimal("0.5"),
        workload_type="ReplicaSet",
        workload="report-5d8f",
    ),
)


def shares(pods: Sequence[BillPod], cost: Decimal) -> Iterator[PodShare]:
    """Share a node's hour of this cost out; what all shares hold adds up to it exactly."""
    of_vcpu = (cost * VCPU_WEIGHT * NODE_VCPU / (VCPU_WEIGHT * NODE_VCPU + NODE_GB)).quantize(
        PLACES
    )
    meters = (
        ("vCPU", of_vcpu, NODE_VCPU, [pod.vcpu for pod in pods]),
        ("GB", cost - of_vcpu, NODE_GB, [pod.gb for pod in pods]),
    )
    for meter, whole, size, had in meters:
        split = [(whole * amount / size).quantize(PLACES) for amount in had]
        rest = whole - sum(split, Decimal(0))
        unused = [(rest * amount / sum(had)).quantize(PLACES) for amount in had[1:]]
        unused.insert(0, rest - sum(unused, Decimal(0)))
        for pod, amount, used, idle in zip(pods, had, split, unused, strict=True):
            yield PodShare(pod, meter, amount, used, idle)
