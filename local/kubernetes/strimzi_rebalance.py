"""The twin's stand-in for Cruise Control: a KafkaRebalance moves replicas of the real cluster.

States and annotations are Strimzi's (KafkaRebalanceState and KafkaRebalanceAnnotation of
io.strimzi:api 1.2.0). The proposal is simpler than Cruise Control's: as many replicas on each
broker of a zone, and none on brokers that are to go. A replica stays in its zone where a broker
there may take it. Kafka's own reassignment moves them, throttled. `autoRebalance` is not played:
here a rebalance begins with a KafkaRebalance that somebody makes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from core.ground.errors import StillwaterError
from core.ground.naming import REBALANCE_TEMPLATE_ANNOTATION
from core.ground.words import listing
from local.kubernetes.client import Api, Informer, find
from local.kubernetes.strimzi_admin import admin, runs
from local.kubernetes.strimzi_objects import (
    STRIMZI,
    EntityOperator,
    Object,
    OperatorObjects,
    kafka_of,
    not_ready,
    resource_path,
)
from local.kubernetes.strimzi_roller import mark

ASKED, AUTO_APPROVAL = "strimzi.io/rebalance", "strimzi.io/rebalance-auto-approval"
PROPOSED, MOVING, DONE, STOPPED = "ProposalReady", "Rebalancing", "Ready", "Stopped"
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
MIB = 1024**2
Replicas = Mapping[TopicPartition, list[int]]


class RebalanceOperator(EntityOperator):
    """Brings every KafkaRebalance one state further."""

    kind, retry_seconds = "Rebalances", 1.0

    def __init__(self, api: Api, objects: OperatorObjects) -> None:
        super().__init__(api, objects)
        self._rebalances = Informer(api, f"{STRIMZI}/kafkarebalances", self._on_change)
        self.informers = (self._rebalances,)

    def _reconcile_all(self) -> None:
        for each in list(self._rebalances.objects.values()):
            if mark(each, REBALANCE_TEMPLATE_ANNOTATION) != "true" and runs(
                self._api, *kafka_of(each)
            ):
                self._reconcile(each)

    def _reconcile(self, rebalance: Object) -> None:
        namespace, cluster = kafka_of(rebalance)
        path, asked = resource_path("kafkarebalances", rebalance), mark(rebalance, ASKED)
        found = find(self._api, f"{STRIMZI}/namespaces/{namespace}/kafkas/{cluster}") or {}
        if "cruiseControl" not in (found.get("spec") or {}):
            said = "Kafka resource lacks 'cruiseControl' declaration : No deployed Cruise Control."
            self._objects.report(rebalance, path, not_ready("InvalidResourceException", said))
            return
        state = _state(rebalance)
        with admin(self._api, namespace, cluster) as client:
            if asked == "refresh" or state == "New":
                self._propose(client, rebalance, path)
            elif state == PROPOSED and "approve" in {asked, _approval(rebalance)}:
                _begin(client, rebalance)
                self._objects.report(rebalance, path, _held(MOVING))
            elif state == MOVING and asked == "stop":
                _end(client, cancel=True)
                self._objects.report(rebalance, path, _held(STOPPED))
            elif state == MOVING and not client.list_partition_reassignments():
                _end(client, cancel=False)
                self._objects.report(rebalance, path, _held(DONE))
        if asked:
            self._api.merge(path, {"metadata": {"annotations": {ASKED: None}}})

    def _propose(self, client: KafkaAdminClient, rebalance: Object, path: str) -> None:
        proposal, sizes = _proposal(client, rebalance), dict(_sizes(client))
        named = {key: rebalance["metadata"][key] for key in ("name", "namespace")}
        self._objects.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": named,
                "data": {"brokerLoad.json": _load(proposal, sizes)},
            }
        )
        result = {**_result(proposal, sizes), "afterBeforeLoadConfigMap": named["name"]}
        self._objects.report(rebalance, path, _held(PROPOSED), optimizationResult=result)

    def _forget(self, entity: Object) -> None:
        """Leave what moves to Kafka, as Cruise Control does when its KafkaRebalance goes."""


def _state(rebalance: Object) -> str:
    conditions = (rebalance.get("status") or {}).get("conditions") or [{"type": "New"}]
    return str(conditions[0]["type"])


def _held(state: str) -> Object:
    return {"type": state, "status": "True"}


def _approval(rebalance: Object) -> str:
    return "approve" if mark(rebalance, AUTO_APPROVAL) == "true" else ""


def moves(
    replicas: Replicas, racks: Mapping[int, str], mode: str, brokers: Collection[int]
) -> dict[TopicPartition, list[int]]:
    """Return the partitions that get other brokers, and which; `brokers` are those of the mode."""
    if absent := sorted(set(brokers) - racks.keys()):
        raise StillwaterError(f"Kafka has no broker {listing(list(map(str, absent)))} yet.")
    wanted = {partition: list(held) for partition, held in replicas.items()}
    held = Counter(dict.fromkeys(racks, 0))
    held.update(broker for each in wanted.values() for broker in each)
    if mode == "remove-brokers":
        for partition, each in wanted.items():
            for place, broker in enumerate(each):
                if broker in brokers:
                    heir = _heir(partition, each, broker, racks, held, brokers)
                    each[place] = heir
                    held[heir] += 1
    else:
        for broker in sorted(brokers if mode == "add-brokers" else racks):
            _fill(broker, wanted, racks, held)
    return {partition: each for partition, each in wanted.items() if each != replicas[partition]}


def _heir(
    partition: TopicPartition,
    replicas: list[int],
    leaving: int,
    racks: Mapping[int, str],
    held: Counter[int],
    going: Collection[int],
) -> int:
    """Return who takes a replica over: of its rack if possible, with the fewest replicas."""
    others = {racks[broker] for broker in replicas if broker != leaving}
    able = [broker for broker in racks if broker not in going and broker not in replicas]
    if not able:
        named = f"partition {partition.topic}-{partition.partition}"
        raise StillwaterError(
            f"No broker can take the replica of {named} over from broker {leaving}: brokers "
            f"{listing(list(map(str, replicas)))} have one each. Add a broker first."
        )
    return min(able, key=lambda b: (racks[b] in others, racks[b] != racks[leaving], held[b], b))


def _fill(
    broker: int,
    wanted: dict[TopicPartition, list[int]],
    racks: Mapping[int, str],
    held: Counter[int],
) -> None:
    """Move replicas to a broker from its rack's fullest, until they have as many."""
    # By their numbers, so that each topic gives some of its partitions.
    for _, each in sorted(wanted.items(), key=lambda item: (item[0].partition, item[0].topic)):
        rack = [other for other in racks if racks[other] == racks[broker]]
        fullest = max(rack, key=lambda other: (held[other], other))
        if held[fullest] - held[broker] <= 1:
            return
        if broker not in each and fullest in each:
            each[each.index(fullest)] = broker
            held[fullest] -= 1
            held[broker] += 1


@dataclass(frozen=True)
class Proposal:
    """The replicas as they are, and the partitions that get other brokers."""

    replicas: Replicas
    wanted: Replicas

    @property
    def new(self) -> Iterator[tuple[TopicPartition, int]]:
        """Yield each replica that is to be copied, and onto which broker."""
        for partition, brokers in self.wanted.items():
            for broker in set(brokers) - set(self.replicas[partition]):
                yield partition, broker


def _proposal(client: KafkaAdminClient, rebalance: Object) -> Proposal:
    spec = rebalance.get("spec") or {}
    racks = {
        int(each["broker_id"]): str(each["rack"]) for each in client.describe_cluster()["brokers"]
    }
    replicas = {
        TopicPartition(topic["name"], partition["partition_index"]): list(
            partition["replica_nodes"]
        )
        for topic in client.describe_topics()
        for partition in topic["partitions"]
    }
    mode, brokers = str(spec.get("mode", "full")), spec.get("brokers") or ()
    return Proposal(replicas, moves(replicas, racks, mode, brokers))


def _result(proposal: Proposal, sizes: Mapping[TopicPartition, int]) -> Object:
    """Return what a proposal comes to, in the fields of Strimzi's that others read."""
    leaders = (proposal.replicas[each][0] != now[0] for each, now in proposal.wanted.items())
    return {
        "dataToMoveMB": sum(sizes.get(partition, 0) for partition, _ in proposal.new) // MIB,
        "numReplicaMovements": sum(1 for _ in proposal.new),
        "numLeaderMovements": sum(leaders),
        "numIntraBrokerReplicaMovements": 0,
        "intraBrokerDataToMoveMB": 0,
        "monitoredPartitionsPercentage": 100,
    }


def _load(proposal: Proposal, sizes: Mapping[TopicPartition, int]) -> str:
    """Return each broker's disk before and after, as Strimzi's brokerLoad.json has it."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for when in ("before", "after"):
        used: Counter[int] = Counter()
        for partition, replicas in proposal.replicas.items():
            held = proposal.wanted.get(partition, replicas) if when == "after" else replicas
            used.update(dict.fromkeys(held, sizes.get(partition, 0)))
        for broker, size in used.items():
            disk = found.setdefault(str(broker), {"diskUsedMB": {"before": 0.0, "after": 0.0}})
            disk["diskUsedMB"][when] = size / MIB
    return json.dumps(found)


def _sizes(client: KafkaAdminClient) -> Iterator[tuple[TopicPartition, int]]:
    for broker in client.describe_log_dirs():
        for directory in broker["log_dirs"]:
            for topic in directory["topics"]:
                for partition in topic["partitions"]:
                    named = TopicPartition(topic["name"], partition["partition_index"])
                    yield named, int(partition["partition_size"])


def _begin(client: KafkaAdminClient, rebalance: Object) -> None:
    """Throttle every broker, then let Kafka reassign."""
    wanted = _proposal(client, rebalance).wanted
    rate = (rebalance.get("spec") or {}).get("replicationThrottle")
    if rate:
        _configure(client, {key: str(rate) for key in RATES}, dict.fromkeys(REPLICAS, "*"), wanted)
    refused = client.alter_partition_reassignments(wanted)
    if any(refused.values()):
        raise StillwaterError(f"Kafka refused to reassign: {refused}.")


def _end(client: KafkaAdminClient, *, cancel: bool) -> None:
    """Take the throttle away, and with `cancel` what still moves."""
    moving = client.list_partition_reassignments()
    if cancel and moving:
        client.alter_partition_reassignments(dict.fromkeys(moving))
    topics = [TopicPartition(topic["name"], 0) for topic in client.describe_topics()]
    gone = ("DELETE", "")
    _configure(client, dict.fromkeys(RATES, gone), dict.fromkeys(REPLICAS, gone), topics)


def _configure(
    client: KafkaAdminClient,
    rates: Mapping[str, Any],
    replicas: Mapping[str, Any],
    partitions: Collection[TopicPartition],
) -> None:
    brokers = [str(each["broker_id"]) for each in client.describe_cluster()["brokers"]]
    topics = sorted({each.topic for each in partitions})
    client.alter_configs(
        [
            *(ConfigResource(ConfigResourceType.BROKER, name, dict(rates)) for name in brokers),
            *(ConfigResource(ConfigResourceType.TOPIC, name, dict(replicas)) for name in topics),
        ],
        raise_on_unknown=False,  # Kafka lists no rate among the settings that a broker may change.
    )
