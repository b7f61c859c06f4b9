"""Asks the table of rules of whatever facts there are, worst first.

A ClusterSpec is rendered as the facts of the cluster it would become. Of those only the rules that
a description answers are asked: they say what is wanted, and nothing of what runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal

from core.checks import (  # noqa: F401 - importing them enters their rules
    account,
    advice,
    balancing,
    coming_back,
    evictions,
    groups,
    handlers,
    kafka,
    machines,
    new_cluster,
    others,
    placement,
    pods,
    room,
    strimzi,
)
from core.checks.facts import NOT_ASKED, ClusterFacts
from core.checks.finding import (
    RULES,
    Finding,
    Rule,
    Weight,
    not_judged,
    unknown,
    worst_first,
    worth_knowing,
)
from core.cluster.kafka_settings import default_config
from core.cluster.nodes import NodePool
from core.cluster.spec import ClusterSpec
from core.ground import naming
from core.ground.constants import INTERNAL_LISTENER
from core.ground.errors import one_line
from core.ground.fields import Unknown
from core.model.kafka import Kafka, KafkaListener, KafkaPool, Pod, Topic
from core.model.nodes import Node


def findings(seen: ClusterFacts) -> list[Finding]:
    """Return everything found, worst first, with what could not be read."""
    found = [each for rule in RULES if rule.is_asked_of(seen) for each in _findings_of(rule, seen)]
    return worst_first([*_unread(seen), *found])


def _findings_of(rule: Rule, seen: ClusterFacts) -> list[Finding]:
    """Return what a rule finds, or that it cannot: one odd answer costs no other rule's word."""
    try:
        return list(rule.judge(seen))
    except Exception as error:  # noqa: BLE001 - whatever the answer is, it is not good news
        return [
            not_judged(
                "unjudged",
                rule.title,
                f"an answer is not as documented ({type(error).__name__}: {one_line(error)}): this "
                f"was not judged",
                "look at what it is about yourself, and tell the authors of Stillwater",
            )
        ]


def _unread(seen: ClusterFacts) -> Iterator[Finding]:
    """Yield a finding per reason: what one refusal hides is hidden together."""
    hidden: dict[Unknown, list[str]] = {}
    for field in fields(seen):
        part = getattr(seen, field.name)
        if isinstance(part, Unknown) and part is not NOT_ASKED:
            hidden.setdefault(part, []).append(field.name.replace("_", " "))
    for why, parts in hidden.items():
        yield unknown(", ".join(parts), why)


MIB = 1024 * 1024
# In Strimzi's words, where they are others; it has no type of its own for tokens.
AUTHENTICATIONS = {"none": None, "oauth": "custom"}
RACK = "topology.kubernetes.io/zone"
# Beside whatever may cost a broker: what Kafka could never do, or never do with a broker away.
UNWORKABLE = frozenset({"no-spare-replica", "topic-no-spare-replica", "too-few-brokers"})


def described_facts(spec: ClusterSpec) -> ClusterFacts:
    """Return the facts of a cluster as a description wants it."""
    placed = [place for pool in spec.pools for place in _placed(spec, pool)]
    return ClusterFacts(
        description=spec,
        kafkas=(described_kafka(spec),),
        pools=tuple(_pool(spec, pool) for pool in spec.pools),
        topics=tuple(_topics(spec)),
        pods=tuple(pod for pod, _ in placed),
        nodes={node.name: node for _, node in placed},
        read_at=0,
    )


def described_kafka(spec: ClusterSpec) -> Kafka:
    """Return the Kafka resource that a description asks for, with the settings it gets."""
    wanted, config = spec.kafka, {**default_config(spec), **spec.kafka.config}
    return Kafka(
        namespace=spec.kubernetes.namespace,
        name=spec.name,
        rack_aware=True,
        rack_key=RACK,
        listeners=tuple(
            KafkaListener(name, AUTHENTICATIONS.get(how := each.authentication, how), tls=each.tls)
            for name, each in (
                (INTERNAL_LISTENER, wanted.internal_listener),
                (wanted.listener.name, wanted.listener),
            )
        ),
        config={key: str(value) for key, value in config.items()},
        authorization=wanted.authorization,
    )


def description_findings(spec: ClusterSpec) -> tuple[list[Finding], list[Finding]]:
    """Return what is found of a description, and what of it the description accepts by name."""
    found = findings(described_facts(spec))
    accepted = [each for each in found if each.check in spec.accept]
    unused = sorted({*spec.accept} - {each.check for each in found})
    told = [
        worth_knowing(
            "accept-unused",
            "accept",
            f"it names {name}, and nothing of that name is found",
            "take it out, or write it as docs/reference/checks.md does",
        )
        for name in unused
    ]
    return [each for each in found if each not in accepted] + told, accepted


def stops_up(found: Finding) -> bool:
    """Say whether nothing is made of a description of which this is found, and not accepted."""
    return found.weight is Weight.BROKER or found.check in UNWORKABLE


def _placed(spec: ClusterSpec, pool: NodePool) -> Iterator[tuple[Pod, Node]]:
    for zone, ids in spec.node_ids_of(pool).items():
        for node_id in ids[: pool.nodes_per_zone]:
            name = naming.pod(spec.name, pool.name, node_id)
            pod = Pod(
                namespace=spec.kubernetes.namespace,
                name=name,
                kafka=spec.name,
                broker=pool.role.is_broker,
                controller=pool.role.is_controller,
                node=name,
                grace_seconds=spec.timings.pod_grace_seconds,
                heap_bytes=pool.heap_mib * MIB,
                memory_bytes=Decimal(pool.memory_request_mib * MIB),
            )
            node = Node(
                name=name,
                zone=zone,
                instance_id=None,
                node_pool=None,
                auto_mode=False,
                labels={RACK: zone},
            )
            yield pod, node


def _pool(spec: ClusterSpec, pool: NodePool) -> KafkaPool:
    roles = {"broker": pool.role.is_broker, "controller": pool.role.is_controller}
    return KafkaPool(
        namespace=spec.kubernetes.namespace,
        name=pool.name,
        kafka=spec.name,
        replicas=spec.nodes_of(pool),
        roles=frozenset(role for role, has in roles.items() if has),
    )


def _topics(spec: ClusterSpec) -> Iterator[Topic]:
    for topic in spec.topics:
        minimum = topic.config.get("min.insync.replicas")
        yield Topic(
            namespace=spec.kubernetes.namespace,
            name=topic.name,
            kafka=spec.name,
            replicas=topic.replication_factor,
            min_in_sync=None if minimum is None else int(str(minimum)),
            unclean=str(topic.config.get("unclean.leader.election.enable", "")).lower() == "true",
        )
