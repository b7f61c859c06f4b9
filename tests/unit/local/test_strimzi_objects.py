"""The objects of the twin's Strimzi stand-in: services, the budget, pods, claims, owners."""

from __future__ import annotations

import copy

import pytest

from local.kubernetes import strimzi_resources
from tests.unit.local.described_kafka import (
    KAFKA,
    POOLS,
    cluster,
    rendered_pod,
)


def test_the_bootstrap_service_of_a_listener_finds_brokers_only() -> None:
    described = cluster()
    services = {s["metadata"]["name"]: s["spec"] for s in strimzi_resources.services(described)}
    selector = services["coban-kafka-nlb-bootstrap"]["selector"].items()
    assert selector <= rendered_pod(10)["metadata"]["labels"].items()
    assert not selector <= rendered_pod(0)["metadata"]["labels"].items()
    assert services["coban-kafka-nlb-bootstrap"]["ports"][0]["targetPort"] == "tcp-nlb"


def test_a_brokers_service_finds_that_broker_alone() -> None:
    services = {s["metadata"]["name"]: s["spec"] for s in strimzi_resources.services(cluster())}
    selector = services["coban-broker-a-nlb-10"]["selector"].items()
    assert selector <= rendered_pod(10)["metadata"]["labels"].items()
    assert not selector <= rendered_pod(20)["metadata"]["labels"].items()


def test_peers_resolve_each_other_before_they_are_ready() -> None:
    services = {s["metadata"]["name"]: s["spec"] for s in strimzi_resources.services(cluster())}
    headless = services["coban-kafka-brokers"]
    assert headless["clusterIP"] == "None"
    assert headless["publishNotReadyAddresses"]
    assert rendered_pod(10)["spec"]["subdomain"] == "coban-kafka-brokers"


def test_the_budget_is_an_integer_over_all_nodes() -> None:
    spec = strimzi_resources.budget(cluster())["spec"]
    assert spec["minAvailable"] == 2
    assert "maxUnavailable" not in spec


def test_a_pod_takes_its_pools_place_grace_and_volume() -> None:
    spec = rendered_pod(10)["spec"]
    assert spec["terminationGracePeriodSeconds"] == 330
    assert spec["affinity"] == POOLS[1]["spec"]["template"]["pod"]["affinity"]
    assert spec["tolerations"] == [{"key": "dedicated", "operator": "Exists"}]
    claim = spec["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert claim == "data-0-coban-broker-a-10"


@pytest.mark.parametrize(("node_id", "port"), [(0, 9090), (10, 9091)])
def test_readiness_asks_the_port_of_the_nodes_role(node_id: int, port: int) -> None:
    container = rendered_pod(node_id)["spec"]["containers"][0]
    assert container["readinessProbe"]["tcpSocket"] == {"port": port}


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
    for rendered in (rendered_pod(10), config):
        (owner,) = rendered["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("KafkaNodePool", "uid-broker-a")
    for rendered in strimzi_resources.services(described):
        assert rendered["metadata"]["ownerReferences"][0]["kind"] == "Kafka"


def test_the_same_description_is_the_same_revision_and_a_setting_changes_it() -> None:
    kafka = copy.deepcopy(KAFKA)
    kafka["spec"]["kafka"]["config"]["min.insync.replicas"] = 1
    annotation = strimzi_resources.REVISION
    first, again, other = rendered_pod(10), rendered_pod(10), rendered_pod(10, cluster(kafka))
    revisions = [p["metadata"]["annotations"][annotation] for p in (first, again, other)]
    assert revisions[0] == revisions[1] != revisions[2]
