"""A twin with a cluster's worth of instances, as bench.interruptions asks it and acts on it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.storm.burst import Member
from bench.waiting import until
from core.cluster import ClusterSpec
from core.ground import naming
from infra.functions.catalogue import INTERRUPTION, TICK
from local.twin import Twin

NAMESPACE = "kafka"
LAMBDAS = (INTERRUPTION, TICK)


@dataclass
class StormTwin:
    """A twin with a cluster's worth of instances, queues, table and functions."""

    twin: Twin
    spec: ClusterSpec
    members: tuple[Member, ...] = ()
    queues: dict[str, str] = field(default_factory=dict)
    mappings: dict[str, str] = field(default_factory=dict)
    _clients: dict[str, Any] = field(default_factory=dict)

    def aws(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.twin.aws(service)
        return self._clients[service]

    @property
    def table(self) -> str:
        return naming.ledger_table(self.spec.prefix)

    def send(self, queue: str, bodies: Sequence[str]) -> None:
        """Put messages into a queue, in their order."""
        for start in range(0, len(bodies), 10):
            self.aws("sqs").send_message_batch(
                QueueUrl=self.queues[queue],
                Entries=[
                    {"Id": str(number), "MessageBody": body}
                    for number, body in enumerate(bodies[start : start + 10])
                ],
            )

    def left_in(self, queue: str) -> int:
        """Return how many messages a queue still has, those being worked on included."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self.aws("sqs").get_queue_attributes(
            QueueUrl=self.queues[queue], AttributeNames=names
        )
        return sum(int(answer["Attributes"][name]) for name in names)

    def receive_all(self, queue: str) -> list[str]:
        """Take everything visible out of a queue."""
        bodies: list[str] = []
        while (
            found := self.aws("sqs")
            .receive_message(QueueUrl=self.queues[queue], MaxNumberOfMessages=10)
            .get("Messages")
        ):
            for message in found:
                bodies.append(message["Body"])
                self.aws("sqs").delete_message(
                    QueueUrl=self.queues[queue], ReceiptHandle=message["ReceiptHandle"]
                )
        return bodies

    def items(self) -> list[dict[str, Any]]:
        """Return everything in the ledger's table."""
        pages = self.aws("dynamodb").get_paginator("scan").paginate(TableName=self.table)
        return [item for page in pages for item in page["Items"]]

    def forget(self) -> None:
        """Empty the ledger: whatever still ticks finds nothing and ends."""
        for item in self.items():
            self.aws("dynamodb").delete_item(TableName=self.table, Key={"pk": item["pk"]})

    def feed(self, function: str, *, enabled: bool) -> None:
        """Let a function's queue reach it, or not."""
        self.aws("lambda").update_event_source_mapping(
            UUID=self.mappings[function], Enabled=enabled
        )

    def renew(self, number: int) -> None:
        """Make the next invocation of every function a cold one: new settings, new processes."""
        for role in (each.name for each in LAMBDAS):
            name = naming.function(self.spec.prefix, role)
            found = self.aws("lambda").get_function_configuration(FunctionName=name)
            variables = found["Environment"]["Variables"] | {"BENCH_ROUND": str(number)}
            self.aws("lambda").update_function_configuration(
                FunctionName=name, Environment={"Variables": variables}
            )

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return the cluster's nodes by name."""
        items = self.twin.api.get("/api/v1/nodes")["items"]
        return {item["metadata"]["name"]: item for item in items}

    def pods(self) -> dict[str, str]:
        """Return the nodes that still run their broker, by the pod's name."""
        items = self.twin.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return {item["metadata"]["name"]: item["spec"]["nodeName"] for item in items}


@dataclass(frozen=True)
class BenchProgress:
    """Tells whoever watches what is done now, and what has been done."""

    now: Callable[[str], None]
    done: Callable[[str], None]


@contextmanager
def step(say: BenchProgress, what: str) -> Iterator[None]:
    """Show a step while it lasts, and how long it took when it is over."""
    started = time.monotonic()
    say.now(what)
    yield
    say.done(f"{what}: {time.monotonic() - started:.1f} s")


def terminate(ground: StormTwin, members: Sequence[Member]) -> dict[str, str]:
    """Terminate instances through their groups; return what the groups announce, by instance."""
    for member in members:
        ground.aws("autoscaling").terminate_instance_in_auto_scaling_group(
            InstanceId=member.id, ShouldDecrementDesiredCapacity=True
        )
    found: dict[str, str] = {}

    def all_announced() -> bool:
        for body in ground.receive_all("announced"):
            found[json.loads(body)["detail"]["EC2InstanceId"]] = body
        return {m.id for m in members} <= found.keys()

    until(all_announced, "every termination is announced")
    return found
