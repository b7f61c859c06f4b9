"""The lines a described Kafka cluster is billed by: resources, commitments, taxes and the rest.

Prices are round figures of this file's own, so that a reader can do the sums; they are nobody's
price list. Commitments balance: what is paid for one and what it is worth to the hours it covers,
used or not, are the same money (cost-and-usage semantics of savings plans and reservations). Pods
share an hour of their node as AWS's split cost allocation data has it: a vCPU weighs nine times a
GB of memory, a pod has the larger of what it asks for and what it uses, and what no pod has goes to
the pods of each meter by what they have of it.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from core.ground.naming import CLUSTER_TAG, POOL_TAG
from core.ground.naming import pod as pod_name
from local.bills.line import PAYER, BillLine, month_start
from spark.tag_keys import CLAIM_TAG

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


HOUR_PRICE = Decimal("0.5")
PLAN_HOUR, RESERVED_HOUR = Decimal("0.3"), Decimal("0.25")
GIB_MONTH, IOPS_MONTH, GIBPS_MONTH = Decimal("0.08"), Decimal("0.005"), Decimal("40.96")
CROSSING_GB = Decimal("0.01")
RESERVATION = "arn:aws:ec2:us-east-1:111111111111:reserved-instances/synthetic"


class Coverage(StrEnum):
    """How a broker's instance hour is paid for."""

    ON_DEMAND = "on demand"
    SAVINGS_PLAN = "savings plan"
    RESERVED = "reserved"
    # Half of every hour by a savings plan, the other half on demand: two lines of one instance.
    MIXED = "savings plan and on demand"


# The part of an hour that a savings plan covers.
_PLANNED = {Coverage.SAVINGS_PLAN: Decimal(1), Coverage.MIXED: Decimal("0.5")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """One broker, its node and its volume."""

    node_id: int
    zone: str
    pool: str = "broker"
    instance_type: str = "r7g.large"
    coverage: Coverage = Coverage.ON_DEMAND
    volume_gib: int = 100
    iops: int = 3000
    throughput_mib_per_s: int = 125
    crossing_gb_per_hour: Decimal = Decimal(1)


@dataclass(frozen=True, kw_only=True)
class ClusterBill:
    """What to bill: a cluster for some hours of a month, and what stands beside it on the bill."""

    name: str = "harbour"
    period: str = "2026-10"
    hours: int = 2
    region_prefix: str = ""
    brokers: Sequence[Broker] = field(
        default_factory=lambda: (
            Broker(node_id=10, zone="us-east-1a"),
            Broker(node_id=20, zone="us-east-1b", coverage=Coverage.SAVINGS_PLAN, iops=4000),
            Broker(
                node_id=30, zone="us-east-1c", coverage=Coverage.RESERVED, throughput_mib_per_s=250
            ),
        )
    )
    # Hours of each commitment that nothing used.
    unused_plan_hours: Decimal = Decimal("0.5")
    unused_reserved_hours: Decimal = Decimal("0.25")
    taxes: Sequence[Decimal] = (Decimal("1.23"),)
    credits: Sequence[Decimal] = (Decimal("-0.5"),)
    refunds: Sequence[Decimal] = (Decimal("-0.07"),)
    support: Decimal = Decimal("2.5")
    marketplace: Decimal = Decimal("0.75")
    # Of every usage line, where a private agreement's discount is in net columns.
    net_discount: Decimal | None = None
    # What runs on every node, by split cost allocation data; nothing leaves such lines out.
    pods: Sequence[BillPod] = PODS

    @property
    def seconds_in_month(self) -> int:
        start = month_start(self.period)
        return calendar.monthrange(start.year, start.month)[1] * 86400


def lines(bill: ClusterBill) -> Iterator[BillLine]:
    """Return every line of the bill."""
    for hour in range(bill.hours):
        yield from hour_lines(bill, hour)
    yield from monthly_lines(bill)


def hour_lines(bill: ClusterBill, hour: int) -> Iterator[BillLine]:
    """Return what one hour of the cluster is billed by."""
    for broker in bill.brokers:
        yield from _instance(bill, broker, hour)
        yield from _volume(bill, broker, hour)
        for operation in ("InterZone-In", "InterZone-Out"):
            yield _line(
                bill,
                hour,
                component="inter-AZ transfer",
                owner=_pool(broker),
                usage_type="DataTransfer-Regional-Bytes",
                operation=operation,
                unit="GB",
                quantity=broker.crossing_gb_per_hour,
                cost=broker.crossing_gb_per_hour * CROSSING_GB,
                resource_id=_instance_id(broker),
                zone=broker.zone,
                tags=_node_tags(bill, broker),
            )
    whole = {CLUSTER_TAG: bill.name}
    shared = (
        ("AWSELB", "LoadBalancerUsage", "LoadBalancing:Network", "Hrs", "load balancer", "0.0225"),
        ("AWSELB", "LCUUsage", "LoadBalancing:Network", "LCU-Hrs", "load balancer", "0.006"),
        ("AmazonVPC", "VpcEndpoint-Hours", "VpcEndpoint", "Hrs", "PrivateLink", "0.01"),
        ("AmazonVPC", "VpcEndpoint-Bytes", "VpcEndpoint", "GB", "PrivateLink", "0.01"),
        (
            "AmazonEKS",
            "AmazonEKS-Hours:perCluster",
            "CreateOperation",
            "Hours",
            "control plane",
            "0.1",
        ),
        ("AmazonEC2", "NatGateway-Bytes", "NatGateway", "GB", "NAT gateway", "0.045"),
        ("AmazonEC2", "EBS:SnapshotUsage", "CreateSnapshot", "GB-Mo", "snapshots", "0.05"),
    )
    for product, usage_type, operation, unit, component, price in shared:
        yield _line(
            bill,
            hour,
            component=component,
            owner="whole cluster",
            product=product,
            usage_type=usage_type,
            operation=operation,
            unit=unit,
            quantity=Decimal(1),
            cost=Decimal(price),
            resource_id=f"arn:aws:synthetic:{product}:{usage_type}",
            tags=whole,
        )


def monthly_lines(bill: ClusterBill) -> Iterator[BillLine]:
    """Return what is billed once a month: fees of commitments, taxes, credits, refunds, support."""
    start = month_start(bill.period)
    used = (
        sum((_PLANNED.get(b.coverage, Decimal(0)) for b in bill.brokers), Decimal(0)) * bill.hours
    )
    commitment = (used + bill.unused_plan_hours) * PLAN_HOUR
    yield BillLine(
        hour=start,
        kind="SavingsPlanRecurringFee",
        product="ComputeSavingsPlans",
        usage_type="ComputeSP:1yrNoUpfront",
        unblended=commitment,
        sp_commitment=commitment,
        sp_used=used * PLAN_HOUR,
        amortised=bill.unused_plan_hours * PLAN_HOUR,
    )
    reserved = Decimal(sum(b.coverage is Coverage.RESERVED for b in bill.brokers) * bill.hours)
    unused = bill.unused_reserved_hours * RESERVED_HOUR
    yield BillLine(
        hour=start,
        kind="RIFee",
        usage_type="HeavyUsage:r7g.large",
        ri_arn=RESERVATION,
        unblended=reserved * RESERVED_HOUR + unused,
        ri_unused_fee=unused,
        amortised=unused,
    )
    for kind, amounts in (("Tax", bill.taxes), ("Credit", bill.credits), ("Refund", bill.refunds)):
        for amount in amounts:
            yield BillLine(hour=start, kind=kind, unblended=amount, amortised=amount)
    yield BillLine(
        hour=start,
        kind="Fee",
        product="AWSSupportEnterprise",
        usage_type="Dollar",
        unblended=bill.support,
        amortised=bill.support,
    )
    yield BillLine(
        hour=start,
        product="6njl1pau431dv1qxipg63mvah",
        entity="AWS Marketplace",
        usage_type="BoxUsage:r7g.large",
        unit="Hrs",
        quantity=Decimal(1),
        unblended=bill.marketplace,
        amortised=bill.marketplace,
    )


def _instance(bill: ClusterBill, broker: Broker, hour: int) -> Iterator[BillLine]:
    planned = _PLANNED.get(broker.coverage, Decimal(0))
    paid = [*_covered_lines(bill, broker, hour, planned)] if planned else []
    if broker.coverage is Coverage.RESERVED:
        discounted: dict[str, Any] = {"kind": "DiscountedUsage", "ri_arn": RESERVATION}
        effective: dict[str, Any] = {"ri_effective": RESERVED_HOUR, "amortised": RESERVED_HOUR}
        usage = _usage(bill, broker, Decimal(1))
        paid.append(_line(bill, hour, cost=Decimal(0), **discounted, **effective, **usage))
    elif planned < 1:
        rest = 1 - planned
        paid.append(_line(bill, hour, cost=rest * HOUR_PRICE, **_usage(bill, broker, rest)))
    yield from paid
    if bill.pods:
        yield from _split(bill, broker, hour, paid)


def _usage(bill: ClusterBill, broker: Broker, hours: Decimal) -> dict[str, Any]:
    return {
        "component": "broker compute",
        "owner": _pool(broker),
        "usage_type": f"BoxUsage:{broker.instance_type}",
        "operation": "RunInstances",
        "unit": "Hrs",
        "quantity": hours,
        "resource_id": _instance_id(broker),
        "zone": broker.zone,
        "tags": _node_tags(bill, broker),
    }


def _covered_lines(
    bill: ClusterBill, broker: Broker, hour: int, hours: Decimal
) -> Iterator[BillLine]:
    """Return what a savings plan covers of an hour, and the line that takes its price back."""
    usage, price, worth = _usage(bill, broker, hours), hours * HOUR_PRICE, hours * PLAN_HOUR
    covered: dict[str, Any] = {"kind": "SavingsPlanCoveredUsage", "sp_effective": worth}
    yield _line(bill, hour, cost=price, amortised=worth, **covered, **usage)
    negation = {**usage, "kind": "SavingsPlanNegation"}
    yield _line(bill, hour, cost=-price, amortised=Decimal(0), **negation)


def _split(
    bill: ClusterBill, broker: Broker, hour: int, paid: Sequence[BillLine]
) -> Iterator[BillLine]:
    """Return the second view of an instance's hour: what each pod on it had of it."""
    cost = sum((line.amortised for line in paid), Decimal(0))
    off = bill.net_discount or Decimal(0)
    discounted = sum((line.amortised * off for line in paid if line.kind == "Usage"), Decimal(0))
    net = 1 - discounted / cost
    pod_of_broker = pod_name(bill.name, _pool(broker), broker.node_id)
    for share in shares(bill.pods, cost):
        name = share.pod.name.format(broker=pod_of_broker, node=broker.node_id)
        known = {
            "aws:eks:cluster-name": f"{bill.name}-eks",
            "aws:eks:namespace": share.pod.namespace,
            "aws:eks:node": _instance_id(broker),
            "aws:eks:workload-type": share.pod.workload_type,
            "aws:eks:workload-name": share.pod.workload,
        }
        yield _line(
            bill,
            hour,
            component="split cost allocation",
            product="AmazonEKS",
            usage_type=f"EKS-EC2-{share.meter}-Hours",
            operation="EKSPod-EC2",
            unit=f"{share.meter}-Hours",
            quantity=share.quantity,
            cost=Decimal(0),
            split_cost=share.split,
            unused_cost=share.unused,
            net_split_cost=None if bill.net_discount is None else share.split * net,
            net_unused_cost=None if bill.net_discount is None else share.unused * net,
            parent=_instance_id(broker),
            resource_id=(
                f"arn:aws:eks:us-east-1:{PAYER}:pod/{bill.name}-eks/{share.pod.namespace}/"
                f"{name}/{broker.node_id:08d}"
            ),
            tags={key: value for key, value in known.items() if value is not None},
        )


def _volume(bill: ClusterBill, broker: Broker, hour: int) -> Iterator[BillLine]:
    share = Decimal(3600) / bill.seconds_in_month
    throughput = Decimal(max(0, broker.throughput_mib_per_s - 125)) / 1024
    meters = (
        ("EBS:VolumeUsage.gp3", "GB-Mo", Decimal(broker.volume_gib), GIB_MONTH, "gp3 storage"),
        (
            "EBS:VolumeP-IOPS.gp3",
            "IOPS-Mo",
            Decimal(max(0, broker.iops - 3000)),
            IOPS_MONTH,
            "gp3 IOPS",
        ),
        ("EBS:VolumeP-Throughput.gp3", "GiBps-mo", throughput, GIBPS_MONTH, "gp3 throughput"),
    )
    for usage_type, unit, amount, price, component in meters:
        quantity = (amount * share).quantize(PLACES)
        yield _line(
            bill,
            hour,
            component=component,
            owner=_pool(broker),
            usage_type=usage_type,
            operation="CreateVolume-Gp3",
            unit=unit,
            quantity=quantity,
            cost=(quantity * price).quantize(PLACES),
            resource_id=f"vol-{broker.node_id:017d}",
            zone=broker.zone,
            tags={
                CLUSTER_TAG: bill.name,
                CLAIM_TAG: f"data-0-{bill.name}-{_pool(broker)}-{broker.node_id}",
            },
        )


def _line(
    bill: ClusterBill,
    hour: int,
    *,
    cost: Decimal,
    usage_type: str,
    amortised: Decimal | None = None,
    **fields: Any,
) -> BillLine:
    net = None if bill.net_discount is None else cost * (1 - bill.net_discount)
    given: Mapping[str, Any] = {"amortised": cost if amortised is None else amortised, **fields}
    return BillLine(
        hour=month_start(bill.period) + timedelta(hours=hour),
        usage_type=f"{bill.region_prefix}{usage_type}",
        unblended=cost,
        net=net,
        **given,
    )


def _pool(broker: Broker) -> str:
    return f"{broker.pool}-{broker.zone[-1]}"


def _instance_id(broker: Broker) -> str:
    return f"i-{broker.node_id:017d}"


def _node_tags(bill: ClusterBill, broker: Broker) -> dict[str, str]:
    return {CLUSTER_TAG: bill.name, POOL_TAG: broker.pool}
