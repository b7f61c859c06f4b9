"""Names what a line of a bill can be: its component, owner, flow, part of a volume and saving."""

from __future__ import annotations

from enum import StrEnum


class Component(StrEnum):
    """What money buys, in the order the report lists it."""

    BROKER_COMPUTE = "broker compute"
    INSTANCES = "EC2 instances"
    GP3_STORAGE = "gp3 storage"
    GP3_IOPS = "gp3 IOPS"
    GP3_THROUGHPUT = "gp3 throughput"
    OTHER_VOLUMES = "other volumes"
    SNAPSHOTS = "snapshots"
    INTER_AZ = "inter-AZ transfer"
    LOAD_BALANCER = "load balancer"
    PRIVATELINK = "PrivateLink"
    NAT_GATEWAY = "NAT gateway"
    CONTROL_PLANE = "control plane"
    REPORTS = "Stillwater's reports"
    BETWEEN_REGIONS = "inter-region transfer"
    INTERNET = "internet egress"
    PUBLIC_IPV4 = "public IPv4"
    MANAGED_KAFKA = "Amazon MSK"
    SPLIT = "split cost allocation"
    OTHER = "other"
    UNREADABLE = "unreadable rows"


class Attribution(StrEnum):
    """How closely a charge's owner is known."""

    NODE_POOL = "node pool"
    CLUSTER = "cluster"
    NOBODY = "unattributed"


class Flow(StrEnum):
    """Why bytes moved, in the order the report lists it."""

    PRODUCE = "produce"
    REPLICATE = "replicate"
    CONSUME = "consume"
    UNEXPLAINED = "between zones, flow not known"
    LOAD_BALANCER_ZONES = "load balancer between zones"
    PEERING = "peering"
    LOAD_BALANCER = "load balancer"
    PRIVATELINK = "PrivateLink"


class Certainty(StrEnum):
    """How a row's money was found."""

    BILLED = "billed"
    SHARED = "shared"
    # What consumers may have fetched from other zones, of which some may have stayed in their own.
    AT_MOST = "at most"


class VolumePart(StrEnum):
    """What of a volume a meter counts; a snapshot stands for itself."""

    STORAGE = "storage"
    IOPS = "iops"
    THROUGHPUT = "throughput"
    SNAPSHOT = "snapshot"


class Easy(StrEnum):
    """What is paid for and cheap to do without, in the order in which it is looked for."""

    EXTENDED_SUPPORT = "extended support of EKS versions"
    IDLE_RESERVATION = "capacity reservations that nothing runs in"
    UNUSED_COMMITMENT = "commitments that nothing uses"
    IDLE_IPV4 = "public IPv4 addresses of nothing"
    OLD_VOLUMES = "io1 and io2 volumes"
    GP2_VOLUMES = "gp2 volumes"
    SNAPSHOTS = "snapshots"
    NAT_BYTES = "bytes through NAT gateways"
    CROSS_ZONE_LB = "load balancers' bytes between zones"
    PUBLIC_IPV4 = "public IPv4 addresses in use"
    INTERNET = "bytes to the internet"
