"""Decides what is operated of a Kafka that exists, from what its description calls it by."""

from __future__ import annotations

from core.cluster.adoption import AdoptedKafka, Adoption
from core.cluster.operated import SASL, Operated, policy, secrets_of
from core.cluster.operation import LEAST_MIB
from core.cluster.rights import FUNCTION_CALLS, GATE
from core.ground import naming
from core.incidents.actions import Level
from core.incidents.observation import Mark, Ownership
from core.settings.functions import KafkaIdentity

# Labels of nodes, and tags of their instances, that EKS and Karpenter write by themselves. Auto
# Mode's are of AmazonEKSComputePolicy.
NODE_GROUP_LABEL, NODE_POOL_LABEL = "eks.amazonaws.com/nodegroup", "karpenter.sh/nodepool"


def operated_kafka(adopted: Adoption, kafka: AdoptedKafka) -> Operated:
    """Return what is operated of one of a description's Kafkas."""
    level: Level = adopted.level.value  # type: ignore[assignment]
    me = _identity(kafka)
    speaking = (*FUNCTION_CALLS, GATE)
    return Operated(
        prefix=adopted.called(kafka),
        name=kafka.name,
        namespace=kafka.namespace,
        eks_cluster=adopted.eks_cluster,
        region=adopted.region,
        level=level,
        ephemeral=True,
        timings=adopted.timings,
        policy=policy(
            adopted.timings,
            drain_route="evict" if adopted.evicts else "held",
            scale_in="restore",
            isr_margin=1,
            gate="isr",
            maintenance=adopted.maintenance,
        ),
        memory_mib=LEAST_MIB,
        slack=adopted.slack,
        alerts=adopted.alerts,
        scaling_groups=adopted.scaling_groups,
        handler_queue_url=adopted.queue_url,
        instances=ownership(adopted),
        pool_labels=_pool_labels(adopted),
        node_claims=bool(adopted.node_pools),
        identities=dict.fromkeys(speaking, me),
        secrets=dict.fromkeys(speaking, secrets_of(me)),
        queues=("events", "ticks", *(("nth",) if adopted.installs_handler else ())),
        eviction_gate=adopted.eviction_gate if adopted.gated else None,
        # Theirs may be anywhere: `operators` names it where it is not beside its Kafka.
        operator_namespace=kafka.namespace,
    )


def ownership(adopted: Adoption) -> Ownership:
    """Return by which tags the instances of the description's machines are known."""
    eks, marks = adopted.eks_cluster, list[Mark]()
    if groups := adopted.managed_node_groups:
        marks.append({"eks:cluster-name": (eks,), "eks:nodegroup-name": groups})
    if pools := adopted.node_pools:
        marks.append({f"kubernetes.io/cluster/{eks}": (), NODE_POOL_LABEL: pools})
        marks.append({"eks:eks-cluster-name": (eks,), "eks:kubernetes-node-pool-name": pools})
    return Ownership(marks=tuple(marks), scaling_groups=adopted.scaling_groups)


def _pool_labels(adopted: Adoption) -> dict[str, tuple[str, ...]]:
    named: dict[str, tuple[str, ...]] = {}
    if adopted.pool_label is not None:
        named[adopted.pool_label] = ()
    if adopted.managed_node_groups:
        named[NODE_GROUP_LABEL] = adopted.managed_node_groups
    if adopted.node_pools:
        named[NODE_POOL_LABEL] = adopted.node_pools
    return named


def _identity(kafka: AdoptedKafka) -> KafkaIdentity:
    how, transport = kafka.authentication, "SSL" if kafka.tls else "PLAINTEXT"
    return KafkaIdentity(
        security=f"SASL_{transport}" if how in SASL else transport,  # type: ignore[arg-type]
        authentication=how,
        namespace=kafka.namespace,
        secret=kafka.credentials_secret or "none",
        authority_secret=kafka.authority_secret or naming.cluster_ca_secret(kafka.name),
    )
