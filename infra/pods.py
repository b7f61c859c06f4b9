"""Defines what every controller's pod gets from its node, is denied there, and may be reached by.

No pod has a limit on processor time: a throttled controller answers a lost node late. A
NetworkPolicy that selects a pod closes its other ports. The kubelet's probes come from the pod's
own node and pass every policy (aws-network-policy-agent#65).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from core.cluster.limits import Request

# Container: none of Linux's capabilities; these controllers open no port below 1024.
NO_CAPABILITIES: dict[str, Any] = {"capabilities": {"drop": ["ALL"]}}
# Pod: the container runtime's filter of system calls, which Kubernetes leaves off by default.
FILTERED_CALLS: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
# The kubelet keeps 50 MiB of a container's log at most (containerLogMaxSize and -MaxFiles), and
# these controllers write nothing else.
DISK_REQUEST_MIB, DISK_LIMIT_MIB = 64, 256


def resources(request: Request, *, memory_limit_mib: int | None = None) -> dict[str, Any]:
    """Return requests, and the memory and disk at which a leak ends the pod and not its node."""
    return {
        "requests": {
            "cpu": f"{request.cpu_millis}m",
            "memory": f"{request.memory_mib}Mi",
            "ephemeral-storage": f"{DISK_REQUEST_MIB}Mi",
        },
        "limits": {
            "memory": f"{memory_limit_mib or request.memory_mib}Mi",
            "ephemeral-storage": f"{DISK_LIMIT_MIB}Mi",
        },
    }


def off_kafkas_machines(pool_labels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the affinity to nodes on which no Kafka is meant to run.

    That is a preference: where all nodes are Kafka's, a pod on them answers, and one that waits
    for another does not.
    """
    expressions = [
        {"key": key, "operator": "NotIn", "values": list(values)}
        if values
        else {"key": key, "operator": "DoesNotExist"}
        for key, values in sorted(pool_labels.items())
    ]
    preferred = [{"weight": 100, "preference": {"matchExpressions": expressions}}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def control_plane(eks_cluster: str, opts: pulumi.InvokeOptions) -> list[dict[str, Any]]:
    """Return the subnets that the API server calls from, as peers: those the cluster has now.

    In a cluster of IPv6 it calls from their other block, and IPv4's rules mean nothing there.
    """
    vpc = aws.eks.get_cluster(name=eks_cluster, opts=opts).vpc_config
    subnets = [aws.ec2.get_subnet(id=subnet, opts=opts) for subnet in sorted(vpc.subnet_ids)]
    blocks = [each for s in subnets for each in (s.cidr_block, s.ipv6_cidr_block) if each]
    return [{"ipBlock": {"cidr": block}} for block in blocks]


def ingress(ports: Mapping[int, Sequence[Mapping[str, Any]] | None]) -> list[dict[str, Any]]:
    """Return a rule for each port: its peers alone, everybody for None, no rule without a peer."""
    return [
        {
            **({} if peers is None else {"from": list(peers)}),
            "ports": [{"port": port, "protocol": "TCP"}],
        }
        for port, peers in ports.items()
        # To Kubernetes an empty list means everybody.
        if peers is None or peers
    ]


def admit(
    name: str,
    metadata: Mapping[str, Any],
    pods: Mapping[str, str],
    ports: Mapping[int, Sequence[Mapping[str, Any]] | None],
    opts: pulumi.ResourceOptions,
) -> k8s.networking.v1.NetworkPolicy:
    """Admit to each port of the pods its peers alone; None admits everybody, no peers nobody."""
    spec: Any = {
        "podSelector": {"matchLabels": pods},
        "policyTypes": ["Ingress"],
        "ingress": ingress(ports),
    }
    described: Any = metadata
    return k8s.networking.v1.NetworkPolicy(name, metadata=described, spec=spec, opts=opts)
