"""Facts of the machines below Kafka that somebody else made: nodes, instances, groups, pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node that holds pods of Kafka."""

    name: str
    zone: str | None
    instance_id: str | None
    # Of Karpenter's or Auto Mode's NodePool, or of the Provisioner before them.
    node_pool: str | None
    auto_mode: bool
    # A label of Karpenter's, EKS's or the usual one of people's own says so.
    spot: bool = False
    # None where its status says nothing of it.
    ready: bool | None = True
    # Cordoned, deleted, or marked by whoever will empty it.
    leaving: bool = False
    # Conditions by which the kubelet, or EKS's node monitoring agent, says that it is unwell.
    ailments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance as EC2 describes it."""

    spot: bool
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledEvent:
    """What AWS has scheduled for an instance: EC2's code, and when it begins at the earliest."""

    code: str
    not_before: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationHook:
    """A lifecycle hook of instances that terminate."""

    name: str
    heartbeat_seconds: int
    default_result: str
    # Where Auto Scaling itself announces it, beside EventBridge.
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingGroup:
    """An Auto Scaling group that holds a node of Kafka's."""

    name: str
    zones: frozenset[str]
    desired: int
    maximum: int
    suspended: frozenset[str]
    hooks: tuple[TerminationHook, ...]
    # Whether an instance whose hook is abandoned is kept (InstanceLifecyclePolicy).
    retains_on_abandon: bool
    # The managed node group it belongs to, and the EKS cluster of that.
    managed_node_group: str | None
    eks_cluster: str | None = None
    lifetime_seconds: int | None = None
    # Whether a load balancer's opinion ends an instance.
    asks_load_balancer: bool = False
    tags: Mapping[str, str] | None = None
    # Its mixed instances policy has a share for spot, or its template asks for it.
    may_be_spot: bool = False
    # Its warm pool takes nodes back, stopped, when it shrinks.
    reuses: bool = False
    # Every instance it has is protected from scale-in.
    protected: bool = False
    # Instance -> its lifecycle state, or Unhealthy where the group calls it so.
    states: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleIn:
    """What lowers a group's size by itself: a scaling policy, or a scheduled action."""

    title: str
    # The size that a scheduled action leaves at most; None: as a policy's metric says.
    leaves: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedNodeGroup:
    """How EKS updates a managed node group."""

    name: str
    at_once: int | None
    percent_at_once: int | None
    strategy: str
    # EKS replaces nodes that its monitoring agent complains of.
    repaired: bool = False
    # An update replaces its nodes at this moment.
    updating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """A NodePool of Karpenter's or Auto Mode's; `expire_after` is None for Never."""

    name: str
    expire_after: str | None
    grace: str | None
    consolidation: str
    # Of budgets that hold always for nodes that are underutilized: how many nodes at once.
    budgets: tuple[str, ...]
    # Before karpenter.sh/v1 an expired node waited for budgets, annotations and PDBs.
    forceful: bool = True
