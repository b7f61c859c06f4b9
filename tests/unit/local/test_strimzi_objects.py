"""The objects of the twin's Strimzi stand-in: claims, owners, and what makes a pod another."""

import copy

from local.kubernetes import strimzi_resources
from local.kubernetes.strimzi_model import KafkaCluster
from local.kubernetes.strimzi_resources import RESOURCE_REVISION, REVISION
from local.kubernetes.strimzi_roller import reasons_to_restart
from tests.every_case import every_case
from tests.unit.local.described_kafka import KAFKA, POOLS, cluster, rendered_pod


def test_a_claim_outlives_its_cluster_unless_it_asks_not_to() -> None:
    described = cluster()
    broker = described.nodes[1]
    (kept,) = strimzi_resources.claims(described, broker)
    assert "ownerReferences" not in kept["metadata"]
    pools = copy.deepcopy(POOLS)
    pools[1]["spec"]["storage"]["volumes"][0] |= {
        "deleteClaim": True,
        "volumeAttributesClass": "fast",
    }
    described = cluster(pools=pools)
    (owned,) = strimzi_resources.claims(described, described.nodes[1])
    assert owned["metadata"]["ownerReferences"][0]["kind"] == "KafkaNodePool"
    assert owned["spec"]["volumeAttributesClassName"] == "fast"


def test_a_node_goes_with_its_pool_and_its_services_go_with_the_kafka() -> None:
    described = cluster()
    config = strimzi_resources.config_map(described, described.nodes[1])
    pods = {"coban-broker-a-10": rendered_pod(10)}
    for rendered in (strimzi_resources.pod_set(described, "broker-a", pods), config):
        (owner,) = rendered["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("KafkaNodePool", "uid-broker-a")
    owners = {
        service["metadata"]["name"]: service["metadata"]["ownerReferences"][0]["kind"]
        for service in strimzi_resources.services(described)
    }
    assert owners["coban-kafka-brokers"] == owners["coban-kafka-nlb-bootstrap"] == "Kafka"
    assert owners["coban-broker-a-nlb-10"] == "KafkaNodePool"


def with_config(**config: object) -> KafkaCluster:
    kafka = copy.deepcopy(KAFKA)
    kafka["spec"]["kafka"]["config"] |= config
    return cluster(kafka)


def with_pool(**spec: object) -> KafkaCluster:
    pools = copy.deepcopy(POOLS)
    pools[1]["spec"] |= spec
    return cluster(pools=pools)


@every_case(
    ("changed", "node_id", "why"),
    [
        (cluster(), 10, []),
        # Brokers take a setting while they run; controllers take some at a start alone.
        *((with_config(**{"log.retention.ms": 1}), each, []) for each in (0, 10)),
        (with_config(**{"num.network.threads": 4}), 0, [REVISION]),
        (with_pool(resources={"requests": {"cpu": "1"}}), 10, [RESOURCE_REVISION]),
        (with_pool(jvmOptions={"-Xmx": "1g"}), 10, [REVISION]),
        # The heap of another pool.
        (with_pool(jvmOptions={"-Xmx": "1g"}), 20, []),
    ],
)
def test_a_pod_shows_what_of_its_description_has_changed(
    changed: KafkaCluster, node_id: int, why: list[str]
) -> None:
    found = reasons_to_restart(rendered_pod(node_id), rendered_pod(node_id, changed))
    assert found == [f"{annotation} differs" for annotation in why]


def test_brokers_run_where_the_node_tells_its_rack() -> None:
    terms = rendered_pod(10)["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][-1] == {
        "key": "topology.kubernetes.io/zone",
        "operator": "Exists",
    }
    assert len(terms[0]["matchExpressions"]) == 2
