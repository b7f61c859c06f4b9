"""A real Kafka node, started as the twin's kubelet starts it: formats once, stops on SIGTERM.

Its listeners ask for certificates, put together from what Secrets hold.

It needs no twin, and a node of its own: empty volumes, a first start, an end.
"""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from core.ground import naming
from local import environment
from local.kafka import container, jars
from local.kubernetes import images, strimzi_resources
from local.kubernetes.strimzi_admin import show
from local.kubernetes.strimzi_authorities import (
    component_certificate,
    new_authority,
    served_hosts,
    user_certificate,
)
from local.kubernetes.strimzi_config import described_settings, own_settings
from local.kubernetes.strimzi_model import node_ids, read
from local.kubernetes.strimzi_roller import configuration_changes
from local.place import Place, claim_place
from local.processes import Child, Processes
from tests.integration.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).resolve().parents[2]
NODE_ID = 7
VOLUMES = [
    {"id": 0, "type": "persistent-claim", "size": "1Gi", "kraftMetadata": "shared"},
    {"id": 1, "type": "persistent-claim", "size": "1Gi"},
]
POOL: dict[str, Any] = {
    "metadata": {
        "name": "both-a",
        "uid": "uid-pool",
        "annotations": {"strimzi.io/next-node-ids": f"[{NODE_ID}]"},
    },
    "spec": {
        "replicas": 1,
        "roles": ["controller", "broker"],
        "storage": {"type": "jbod", "volumes": VOLUMES},
    },
}


def broker_host(place: Place) -> str:
    """Return where the node listens; no load balancer stands before it here."""
    return place.socket_address(f"10.{place.number}.1.5")


def kafka(place: Place) -> dict[str, Any]:
    listener = {
        "name": "nlb",
        "port": 9094,
        "type": "cluster-ip",
        "tls": True,
        "authentication": {"type": "tls"},
        "configuration": {"advertisedHostTemplate": broker_host(place)},
    }
    return {
        "metadata": {"name": "c", "namespace": "kafka", "uid": "uid-kafka"},
        "spec": {
            "kafka": {
                "version": jars.version(),
                "metadataVersion": "4.2-IV1",
                "listeners": [listener],
                "config": {
                    "offsets.topic.replication.factor": 1,
                    "transaction.state.log.min.isr": 1,
                    "min.insync.replicas": 1,
                    "broker.session.timeout.ms": 9000,
                    "auto.create.topics.enable": True,
                    naming.REPLICA_SELECTOR: naming.FOLLOWER_FETCHING,
                },
            }
        },
    }


class KafkaNode:
    """One combined node, its volumes and its configuration on this machine."""

    def __init__(self, place: Place, processes: Processes) -> None:
        self.place, self.processes = place, processes
        self.bootstrap = f"{broker_host(place)}:9094"
        cluster = read(kafka(place), [POOL], node_ids([POOL]), "AAAAAAAAAAAAAAAAAAAAAA")
        (node,) = cluster.nodes
        self.cluster, self.node = cluster, node
        config = strimzi_resources.config_map(cluster, node)
        self.pod = strimzi_resources.pod(cluster, node)
        self.pod["metadata"]["uid"] = "uid-pod"
        self.mounts = {container.CONFIG_MOUNT: place.path("configuration")}
        self.mounts[container.CONFIG_MOUNT].mkdir()
        for name, text in config["data"].items():
            (self.mounts[container.CONFIG_MOUNT] / name).write_text(text)
        for volume in VOLUMES:
            directory = place.path("volumes", f"vol-{volume['id']}")
            # What every new ext4 file system has, and what kills a broker that finds it.
            (directory / "lost+found").mkdir(parents=True)
            self.mounts[f"/var/lib/kafka/data-{volume['id']}"] = directory
        self.trusting = self._issue(sorted(served_hosts(cluster, node)))
        pod_ip = f"10.{place.number}.1.5"
        place.path("hosts").write_text(f"{place.socket_address(pod_ip)} {cluster.host(node)}\n")
        request = images.ContainerRequest(
            place=place,
            cluster=cluster.name,
            pod=self.pod,
            container=self.pod["spec"]["containers"][0],
            environment={},
            mounts=self.mounts,
            pod_ip=pod_ip,
        )
        self.command = images.launch(request).argv

    def _issue(self, hosts: list[str]) -> ssl.SSLContext:
        """Write what the operator's Secrets would hold; return how a user of its connects."""
        authority = new_authority("cluster-ca v0")
        issued = component_certificate(authority, "c-kafka", hosts)
        secrets = {
            container.NODE_CERTS: {"node.crt": issued.certificate, "node.key": issued.key},
            container.CLUSTER_CA_CERTS: {"ca.crt": authority.certificate},
            container.CLIENT_CA_CERTS: {"ca.crt": authority.certificate},
        }
        for path, data in secrets.items():
            self.mounts[path] = self.place.path(Path(path).name)
            self.mounts[path].mkdir()
            for name, text in data.items():
                (self.mounts[path] / name).write_text(text)
        context = ssl.create_default_context(cadata=authority.certificate)
        user = user_certificate(authority, "billing")
        show(context, user.certificate, user.key)
        return context

    def start(self) -> Child:
        variables = environment.base(self.place)
        child = self.processes.start(
            "kafka", self.command, environment=variables, directory=REPOSITORY
        )
        self.processes.wait_until(
            child, self._listens, within_seconds=PATIENCE_SECONDS, what="its client port is open"
        )
        return child

    def _listens(self) -> bool:
        try:
            socket.create_connection((broker_host(self.place), 9094), 1).close()
        except OSError:
            return False
        return True

    def log(self) -> str:
        return self.place.path("logs", "kafka.log").read_text()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[KafkaNode]:
    folder = jars.fetch()
    with claim_place() as claim:
        place = Place(claim.number, tmp_path)
        place.save()
        place.path("kafka").mkdir()
        place.path("kafka", "jars").symlink_to(folder)
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            yield KafkaNode(place, processes)
        finally:
            processes.close()


def test_a_node_formats_its_volumes_once_and_keeps_its_records(node: KafkaNode) -> None:
    first = node.start()
    named: dict[str, Any] = {"security_protocol": "SSL", "ssl_context": node.trusting}
    producer = KafkaProducer(bootstrap_servers=node.bootstrap, acks="all", **named)
    offset = producer.send("kept", b"before the restart").get(PATIENCE_SECONDS).offset
    producer.close()

    node.processes.stop(first, grace_seconds=PATIENCE_SECONDS)
    assert first.popen.returncode == 143, "SIGTERM did not reach Kafka itself"

    node.start()
    consumer = KafkaConsumer(bootstrap_servers=node.bootstrap, consumer_timeout_ms=120_000, **named)
    consumer.assign([TopicPartition("kept", 0)])
    consumer.seek(TopicPartition("kept", 0), offset)
    assert next(consumer).value == b"before the restart"
    consumer.close()
    formatted = [line for line in node.log().splitlines() if line.startswith("Formatting ")]
    assert len(formatted) == len(VOLUMES)


def test_a_broker_tells_the_operator_which_settings_differ_and_which_need_a_restart(
    node: KafkaNode,
) -> None:
    node.start()
    named: dict[str, Any] = {"security_protocol": "SSL", "ssl_context": node.trusting}
    admin = KafkaAdminClient(bootstrap_servers=node.bootstrap, **named)
    about = ConfigResource(ConfigResourceType.BROKER, str(NODE_ID))
    found = admin.describe_configs([about], config_filter="all")["broker"][str(NODE_ID)]
    admin.close()
    described, own = described_settings(node.cluster), own_settings(node.cluster, node.node)
    assert configuration_changes(described, own, found) == {}
    other = described | {"num.io.threads": "16", "group.initial.rebalance.delay.ms": "100"}
    changes = configuration_changes(other, own, found)
    assert {key: found[key]["read_only"] for key in changes} == {
        "num.io.threads": False,
        "group.initial.rebalance.delay.ms": True,
    }
