"""A Kafka and its node pools as infra describes them, for the tests of the twin's operator."""

from typing import Any

from local.kafka.run import settings
from local.kubernetes import strimzi_resources
from local.kubernetes.strimzi_config import server_config
from local.kubernetes.strimzi_model import KafkaCluster, node_ids, read

NLB = "127.41.251.1"
KAFKA: dict[str, Any] = {
    "metadata": {"name": "coban", "namespace": "kafka", "uid": "uid-1"},
    "spec": {
        "kafka": {
            "version": "4.2.0",
            "metadataVersion": "4.2-IV1",
            "listeners": [
                {
                    "name": "nlb",
                    "port": 9094,
                    "type": "cluster-ip",
                    "tls": False,
                    "configuration": {
                        "advertisedHostTemplate": NLB,
                        "advertisedPortTemplate": "10000 + {nodeId}",
                    },
                }
            ],
            "rack": {"type": "topology-label", "topologyKey": "topology.kubernetes.io/zone"},
            "config": {"min.insync.replicas": 2, "auto.create.topics.enable": False},
        }
    },
}


def pool(name: str, role: str, *, replicas: int = 1, ids: str = "", zone: str = "a") -> Any:
    where = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [f"us-east-1{zone}"]}
    volume = {"id": 0, "type": "persistent-claim", "size": "1Gi", "class": "gp3-kafka"}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "annotations": {"strimzi.io/next-node-ids": ids} if ids else {},
        },
        "spec": {
            "replicas": replicas,
            "roles": role.split("+"),
            "storage": {"type": "jbod", "volumes": [{**volume, "kraftMetadata": "shared"}]},
            "template": {
                "pod": {
                    "terminationGracePeriodSeconds": 330,
                    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchExpressions": [where]}]
                            }
                        }
                    },
                }
            },
        },
    }


POOLS = [
    pool("controller-a", "controller", ids="[0]"),
    pool("broker-a", "broker", ids="[10-19]"),
    pool("broker-b", "broker", ids="[20-29]", zone="b"),
]


def cluster(kafka: Any = KAFKA, pools: list[Any] = POOLS) -> KafkaCluster:
    return read(kafka, pools, node_ids(pools), "cluster-id")


def configure(node_id: int, described: KafkaCluster | None = None) -> dict[str, str]:
    described = described or cluster()
    node = next(n for n in described.nodes if n.node_id == node_id)
    return settings(server_config(described, node))


def rendered_pod(node_id: int, described: KafkaCluster | None = None) -> dict[str, Any]:
    described = described or cluster()
    node = next(n for n in described.nodes if n.node_id == node_id)
    return strimzi_resources.pod(described, node)
