"""Says which right on Kafka each call of the functions needs: one table for ACLs and sentences.

infra renders the functions' KafkaUser from it, handlers.adapters.kafka names the missing right by
it where Kafka refuses a call, and a test on a real broker takes each right away and sees its call
refused. Operations and resources are Kafka's own (Apache Kafka documentation, "Authorization and
ACLs: operations and resources on protocols"). Alter implies Describe, and AlterConfigs implies
DescribeConfigs; nothing else is implied by anything here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

EVERY = "*"


class KafkaResource(StrEnum):
    """What a right is on, as a KafkaUser's ACL spells it."""

    CLUSTER = "cluster"
    TOPIC = "topic"


class KafkaOperation(StrEnum):
    """What a right allows, as a KafkaUser's ACL spells it."""

    ALTER = "Alter"
    ALTER_CONFIGS = "AlterConfigs"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One operation on one resource, or on every resource of a kind; the cluster has no name."""

    resource: KafkaResource
    operation: KafkaOperation
    name: str = EVERY

    @property
    def sentence(self) -> str:
        """Return what a person grants, in the words of Kafka's own tools."""
        if self.resource is KafkaResource.CLUSTER:
            return f"{self.operation} on the cluster"
        where = "every topic" if self.name == EVERY else f"topic {self.name}"
        return f"{self.operation} on {where}"


class KafkaRequest(StrEnum):
    """A request of Kafka's protocol that the functions send, by its name there."""

    METADATA = "Metadata"
    DESCRIBE_TOPIC_PARTITIONS = "DescribeTopicPartitions"
    DESCRIBE_CLUSTER = "DescribeCluster"
    DESCRIBE_QUORUM = "DescribeQuorum"
    DESCRIBE_LOG_DIRS = "DescribeLogDirs"
    DESCRIBE_TOPIC_CONFIGS = "DescribeConfigs of topics"
    DESCRIBE_BROKER_CONFIGS = "DescribeConfigs of brokers"
    LIST_CONFIG_RESOURCES = "ListConfigResources"
    LIST_PARTITION_REASSIGNMENTS = "ListPartitionReassignments"
    ALTER_PARTITION_REASSIGNMENTS = "AlterPartitionReassignments"
    ELECT_LEADERS = "ElectLeaders"
    ALTER_BROKER_CONFIGS = "IncrementalAlterConfigs of brokers"
    ALTER_TOPIC_CONFIGS = "IncrementalAlterConfigs of topics"


_DESCRIBE_TOPICS = Right(KafkaResource.TOPIC, KafkaOperation.DESCRIBE)
_DESCRIBE_CLUSTER = Right(KafkaResource.CLUSTER, KafkaOperation.DESCRIBE)
_CLUSTER_CONFIGS = Right(KafkaResource.CLUSTER, KafkaOperation.DESCRIBE_CONFIGS)
_ALTER_CLUSTER = Right(KafkaResource.CLUSTER, KafkaOperation.ALTER)

# DescribeCluster answers anybody who may connect; it is here so that the table is every call.
RIGHT_OF = MappingProxyType[KafkaRequest, Right | None](
    {
        KafkaRequest.METADATA: _DESCRIBE_TOPICS,
        KafkaRequest.DESCRIBE_TOPIC_PARTITIONS: _DESCRIBE_TOPICS,
        KafkaRequest.DESCRIBE_CLUSTER: None,
        KafkaRequest.DESCRIBE_QUORUM: _DESCRIBE_CLUSTER,
        KafkaRequest.DESCRIBE_LOG_DIRS: _DESCRIBE_CLUSTER,
        KafkaRequest.DESCRIBE_TOPIC_CONFIGS: Right(
            KafkaResource.TOPIC, KafkaOperation.DESCRIBE_CONFIGS
        ),
        KafkaRequest.DESCRIBE_BROKER_CONFIGS: _CLUSTER_CONFIGS,
        # Lists the names of all topics to whoever has this one right, whatever the topics' ACLs
        # say: the second source of what an answer may have left out (brokers from 4.1 on).
        KafkaRequest.LIST_CONFIG_RESOURCES: _CLUSTER_CONFIGS,
        KafkaRequest.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE_CLUSTER,
        KafkaRequest.ALTER_PARTITION_REASSIGNMENTS: _ALTER_CLUSTER,
        KafkaRequest.ELECT_LEADERS: _ALTER_CLUSTER,
        KafkaRequest.ALTER_BROKER_CONFIGS: Right(
            KafkaResource.CLUSTER, KafkaOperation.ALTER_CONFIGS
        ),
        KafkaRequest.ALTER_TOPIC_CONFIGS: Right(KafkaResource.TOPIC, KafkaOperation.ALTER_CONFIGS),
    }
)

# What a function that only reads sends: λ health and λ volumes.
READING = frozenset(
    {
        KafkaRequest.METADATA,
        KafkaRequest.DESCRIBE_TOPIC_PARTITIONS,
        KafkaRequest.DESCRIBE_CLUSTER,
        KafkaRequest.DESCRIBE_QUORUM,
        KafkaRequest.DESCRIBE_LOG_DIRS,
        KafkaRequest.DESCRIBE_TOPIC_CONFIGS,
        KafkaRequest.DESCRIBE_BROKER_CONFIGS,
        KafkaRequest.LIST_CONFIG_RESOURCES,
        KafkaRequest.LIST_PARTITION_REASSIGNMENTS,
    }
)
# What moving leaders away and giving them back sends besides: λ tick and λ sweep's messages to it.
MOVING_LEADERS = frozenset({KafkaRequest.ALTER_PARTITION_REASSIGNMENTS, KafkaRequest.ELECT_LEADERS})

# What throttling the refill of a broker that lost its disk sends besides: λ tick. Kafka knows no
# right on a single setting. Without these a run goes on, and nothing is throttled.
THROTTLING = frozenset({KafkaRequest.ALTER_BROKER_CONFIGS, KafkaRequest.ALTER_TOPIC_CONFIGS})


def rights_for(calls: Iterable[KafkaRequest]) -> tuple[Right, ...]:
    """Return the rights that some calls need, each once.

    >>> [right.sentence for right in rights_for([Call.DESCRIBE_QUORUM, Call.ELECT_LEADERS])]
    ['Alter on the cluster', 'Describe on the cluster']
    """
    needed = {right for call in calls if (right := RIGHT_OF[call]) is not None}
    return tuple(sorted(needed))


def grant(call: KafkaRequest, *, name: str = EVERY) -> str:
    """Say what to grant where Kafka refused a call, as a clause that ends a sentence.

    >>> grant(Call.DESCRIBE_TOPIC_CONFIGS, name="orders")
    "grant the functions' user DescribeConfigs on topic orders"
    """
    right = RIGHT_OF[call]
    if right is None:
        return "let the functions' user connect"
    if name != EVERY and right.resource is KafkaResource.TOPIC:
        right = Right(right.resource, right.operation, name)
    return f"grant the functions' user {right.sentence}"
