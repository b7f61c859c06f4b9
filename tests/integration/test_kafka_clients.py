"""Who may speak to the twin's Kafka: nobody without a name, everybody else by their ACLs."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, TopicAuthorizationFailedError

from core.ground import naming
from local.demo import load
from local.demo import spec as demo_spec
from local.demo.clients import CONSUMER, PRODUCER, WATCHER
from local.kafka import jars
from local.kafka.run import jvm
from local.kubernetes.strimzi_config import CONTROL_PLANE_PORT, REPLICATION_PORT
from tests.integration.cluster import Cluster
from tests.integration.kafkas_tool import kafkas_tool

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
INTERNAL_PORT = 9093


@pytest.fixture(scope="module")
def doors(provisioned: Cluster) -> dict[str, list[str]]:
    """Every listener by how a tool reaches it."""
    namespace = str(provisioned.outputs["namespace"])
    service = f"{naming.bootstrap_service(demo_spec.CLUSTER)}.{namespace}.svc"
    controller = provisioned.pods()[0]["metadata"]["name"]
    host = naming.pod_host(demo_spec.CLUSTER, namespace, controller)
    brokers = {
        "load balancer": provisioned.bootstrap.split(",")[0],
        "internal": f"{service}:{INTERNAL_PORT}",
        "replication": f"{service}:{REPLICATION_PORT}",
    }
    return {
        **{door: ["--bootstrap-server", address] for door, address in brokers.items()},
        "control plane": ["--bootstrap-controller", f"{host}:{CONTROL_PLANE_PORT}"],
    }


def test_kafkas_own_tool_is_refused_on_every_listener_without_a_certificate(
    cluster: Cluster, doors: dict[str, list[str]]
) -> None:
    authority = cluster.twin.place.path("cluster.crt")
    authority.write_text(cluster.secret(naming.cluster_ca_secret(demo_spec.CLUSTER))["ca.crt"])
    options = f"ssl.truststore.type=PEM\nssl.truststore.location={authority}\n"
    java = jvm(jars.fetch(), cluster.twin.place.path("hosts"))
    # All at once: each waits for its answer longer than it works.
    with ThreadPoolExecutor(len(doors)) as pool:
        said = pool.map(lambda where: kafkas_tool(java, options, where), doors.values())
    for door, answer in zip(doors, said, strict=True):
        assert "Default configs" not in answer, door
        assert "bad_certificate" in answer or "certificate_required" in answer, (door, answer)


def test_nobody_is_heard_in_the_clear(cluster: Cluster) -> None:
    pods = cluster.pods()
    brokers, controllers = (
        cluster.twin.place.socket_address(pods[node_id]["status"]["podIP"]) for node_id in (10, 0)
    )
    addresses = [
        cluster.bootstrap.split(",")[0],
        *(f"{brokers}:{port}" for port in (INTERNAL_PORT, REPLICATION_PORT)),
        f"{controllers}:{CONTROL_PLANE_PORT}",
    ]
    for address in addresses:
        with pytest.raises((KafkaError, OSError)):
            KafkaAdminClient(bootstrap_servers=address, bootstrap_timeout_ms=1_000)


def test_the_demos_clients_are_held_to_their_acls(cluster: Cluster) -> None:
    servers = cluster.bootstrap.split(",")
    cluster.create_topic(load.TOPIC, num_partitions=1, replication_factor=3)
    cluster.create_topic("secrets", num_partitions=1, replication_factor=3)
    try:
        producer = KafkaProducer(bootstrap_servers=servers, **cluster.access(PRODUCER)())
        assert producer.send(load.TOPIC, b"x").get(30).offset == 0
        with pytest.raises(TopicAuthorizationFailedError):
            producer.send("secrets", b"x").get(30)
        producer.close()
        reader = KafkaConsumer(
            bootstrap_servers=servers, auto_offset_reset="earliest", **cluster.access(CONSUMER)()
        )
        assert reader.topics() == {load.TOPIC}
        reader.assign([TopicPartition(load.TOPIC, 0)])
        assert len(reader.poll(30_000)) == 1
        reader.close()
        watcher = KafkaAdminClient(bootstrap_servers=servers, **cluster.access(WATCHER)())
        with pytest.raises(KafkaError, match="Authorization"):
            watcher.delete_topics([load.TOPIC])
        watcher.close()
    finally:
        cluster.delete_topic("secrets")
        cluster.delete_topic(load.TOPIC)
