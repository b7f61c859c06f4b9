"""Three combined nodes with an authorizer: `root` may do all, `functions` what it is granted.

SASL in the clear: authentication is another test's.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.admin import KafkaAdminClient

from core.availability.wholeness import MOVING_LEADERS
from core.views import ClusterView
from handlers.adapters.kafka import KafkaAdmin
from local.place import Place
from local.processes import Child, Processes
from tests.integration.waiting import until_read

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
NODES = (1, 2, 3)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = 'user_root="root" user_functions="functions"'


class Named:
    """A user with a password that is its name."""

    def __init__(self, user: str) -> None:
        self.user = user

    def __call__(self) -> Mapping[str, Any]:
        return {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.user,
        }

    def remedy(self, error: BaseException) -> str:
        del error
        return ""


@dataclass
class Cluster:
    place: Place
    processes: Processes
    java: list[str]
    running: dict[int, Child] = field(default_factory=dict)

    def start(self, node: int) -> None:
        """Start a node on a log directory of its own, which is made where there is none."""
        config = str(self.place.path(f"{node}.properties"))
        tool = [*self.java, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
        subprocess.run([*tool, "-t", CLUSTER_ID, "-c", config], check=True, capture_output=True)
        command = [*self.java, "kafka.Kafka", config]
        self.running[node] = self.processes.start(f"kafka-{node}", command)

    def lose_disk(self, node: int) -> None:
        self.processes.stop(self.running[node])
        shutil.rmtree(self.place.path(f"data-{node}"))

    def addresses(self) -> list[str]:
        return [f"127.{self.place.number}.9.{n}:9092" for n in NODES]

    def read(self, about: set[int] | None = None) -> ClusterView:
        admin = KafkaAdmin(self.addresses(), Named("functions"), needed=MOVING_LEADERS)
        return admin.read(about)

    def root(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self.addresses()[0], **Named("root")())

    def until(
        self, holds: Callable[[ClusterView], bool], about: set[int] | None = None
    ) -> ClusterView:
        return until_read(lambda: self.read(about), holds)


def properties(place: Place, node: int) -> str:
    hosts = {n: f"127.{place.number}.9.{n}" for n in NODES}
    module = f'{PLAIN} username="root" password="root" {USERS};'
    return "\n".join(
        (
            "process.roles=broker,controller",
            f"node.id={node}",
            "controller.quorum.voters=" + ",".join(f"{n}@{h}:9090" for n, h in hosts.items()),
            "controller.listener.names=CONTROLLER",
            "inter.broker.listener.name=CLIENTS",
            "listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
            f"listeners=CLIENTS://{hosts[node]}:9092,CONTROLLER://{hosts[node]}:9090",
            "sasl.enabled.mechanisms=PLAIN",
            "sasl.mechanism.inter.broker.protocol=PLAIN",
            "sasl.mechanism.controller.protocol=PLAIN",
            f"listener.name.clients.plain.sasl.jaas.config={module}",
            f"listener.name.controller.plain.sasl.jaas.config={module}",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users=User:root",
            f"log.dirs={place.path(f'data-{node}')}",
            "min.insync.replicas=1",
            "log.cleaner.dedupe.buffer.size=8388608",
        )
    )
