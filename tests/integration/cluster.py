"""The shared Kafka cluster as tests use it: read it, wait until it is whole, put it under load."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka.admin import KafkaAdminClient
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError
from rich.console import Console

from core.ground import naming
from core.ground.errors import StillwaterError
from core.incidents.record import Incident
from core.views import ClusterView
from handlers.adapters.kafka import Access, KafkaAdmin
from handlers.store.ledger import Ledger, rounds
from local import environment, journal
from local.commands.layers import Provisioned, TwinLayers
from local.demo import load, narration, result
from local.demo import rotation as demo
from local.demo import spec as demo_spec
from local.demo.clients import ADMINISTRATOR, access
from local.kubernetes.client import find
from local.kubernetes.strimzi_authorities import data_of
from local.twin import Twin
from tests.integration.waiting import PATIENCE_SECONDS, until

T = TypeVar("T")
BROKERS = frozenset({10, 20, 30})
CONTROLLERS = frozenset({0, 1, 2})
WHOLE_SECONDS = 120.0


@dataclass
class Load:
    """The demo's producer, consumer and ISR watcher; `finish` returns what they count."""

    cluster: Cluster
    summary: Mapping[str, Any] = field(default_factory=dict)

    def finish(self) -> Mapping[str, Any]:
        """Stop producing, read everything back and return the verdict."""
        (client,) = [c for c in self.cluster.twin.processes.children if c.name == "load"]
        client.popen.terminate()
        self.summary = result.summary(self.cluster.twin)
        self.cluster.twin.processes.stop(client, grace_seconds=20)
        return self.summary


@dataclass(frozen=True)
class Cluster:
    """One provisioned cluster on the session's twin."""

    twin: Twin
    layers: TwinLayers
    provisioned: Provisioned

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Return the stack outputs of all layers."""
        return {k: v for layer in self.provisioned.outputs.values() for k, v in layer.items()}

    @property
    def bootstrap(self) -> str:
        return str(self.outputs["bootstrap"])

    def access(self, user: str = ADMINISTRATOR) -> Access:
        """Return how one of the demo's users connects."""
        return access(self.twin.api, user)

    def secret(self, name: str) -> dict[str, str]:
        """Return what a Secret of Kafka's holds as text; nothing while it is not there."""
        return data_of(find(self.twin.api, self.secret_path(name)))

    def secret_path(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.outputs['namespace']}/secrets/{name}"

    @property
    def ledger(self) -> Ledger:
        return Ledger(
            str(self.outputs["ledger_table"]),
            demo_spec.CLUSTER,
            environment.REGION,
            client=self.twin.aws("dynamodb"),
        )

    def kafka(self) -> ClusterView | None:
        """Return one reading of Kafka, or None while nobody answers."""
        try:
            return KafkaAdmin(self.bootstrap.split(","), self.access()).read()
        except StillwaterError:
            return None

    def incident(self, instance_id: str) -> Incident | None:
        found = rounds(self.ledger, instance_id)
        return found[-1] if found else None

    def released(self, instance_id: str, seconds: float = demo.ROTATION_LIMIT_SECONDS) -> Incident:
        """Wait until an instance's incident is over and the instance has gone; return the first."""
        incident = self.until(
            lambda: (i := self.incident(instance_id)) and not i.open and i,
            f"the incident of {instance_id} is over",
            seconds,
        )
        self.until(
            lambda: self.facts("instance_terminated", instance=instance_id),
            f"{instance_id} is terminated",
        )
        return incident

    def facts(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """Return the journal's entries of one kind."""
        return [
            fact
            for fact in journal.read(self.twin.place)
            if fact["event"] == event and fields.items() <= fact.items()
        ]

    def until(
        self, look: Callable[[], T | bool | None], what: str, seconds: float = PATIENCE_SECONDS
    ) -> T:
        return until(look, what, seconds, self.twin.check_alive)  # type: ignore[return-value]

    def pods(self) -> dict[int, dict[str, Any]]:
        """Return Kafka's pods by node id."""
        ours = f"{naming.CLUSTER_LABEL}={demo_spec.CLUSTER},strimzi.io/kind=Kafka"
        listed = self.twin.api.get("/api/v1/pods", labelSelector=ours)["items"]
        found = {naming.node_id_of_pod(p["metadata"]["name"]): p for p in listed}
        return {id_: pod for id_, pod in found.items() if id_ is not None}

    def node_of(self, node_id: int) -> dict[str, Any]:
        """Return the Kubernetes node that a Kafka node's pod is on."""
        name = self.pods()[node_id]["spec"]["nodeName"]
        return self.twin.api.get(f"/api/v1/nodes/{name}")

    def zone_id(self, name: str) -> str:
        zones = self.twin.aws("ec2").describe_availability_zones(ZoneNames=[name])
        return str(zones["AvailabilityZones"][0]["ZoneId"])

    def announce(self, event: Mapping[str, Any]) -> None:
        """Put an event on the bus as its service would; a user may not, but the twin lets us."""
        entry = {
            "Source": event["source"],
            "DetailType": event["detail-type"],
            "Detail": json.dumps(event["detail"]),
            "Resources": event.get("resources", []),
        }
        answer = self.twin.aws("events").put_events(Entries=[entry])
        assert answer["FailedEntryCount"] == 0

    def settle(self) -> ClusterView:
        """Wait until everybody is up and in sync and nothing is being rotated."""
        return self.until(self._whole, "the cluster is whole", WHOLE_SECONDS)

    def _whole(self) -> ClusterView | None:
        view = self.kafka()
        if view is None or self.ledger.open_incidents() or not _in_sync(view):
            return None
        groups = self.twin.aws("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        states = [
            [instance["LifecycleState"] for instance in group["Instances"]]
            for group in groups
            if group["AutoScalingGroupName"] in self.outputs["auto_scaling_groups"].values()
        ]
        return view if states == [["InService"]] * len(BROKERS | CONTROLLERS) else None

    @contextlib.contextmanager
    def under_load(self, replicas: Mapping[int, Sequence[int]] | None = None) -> Iterator[Load]:
        """Produce and consume for the block, as the demo does, on a topic of its own life.

        Kafka places its partitions, unless `replicas` says on which brokers each of them is.
        """
        directory = self.twin.place.directory
        self._forget_load()
        if replicas is not None:
            least = {"min.insync.replicas": str(load.MIN_INSYNC_REPLICAS)}
            self.create_topic(load.TOPIC, assignments=replicas, configs=least)
        client = self.twin.start_program("load", "local.demo.load", self.bootstrap, str(directory))
        try:
            demo._wait_for_acks(self.twin, quiet_narrator())
            yield Load(self)
        finally:
            self.twin.processes.stop(client, grace_seconds=5)
            self._forget_load()

    def _forget_load(self) -> None:
        for name in ("samples.jsonl", "summary.json"):
            self.twin.place.path(name).unlink(missing_ok=True)
        self.delete_topic(load.TOPIC)

    @contextlib.contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """Kafka's administration, opened anew: an older client knows no broker that returned."""
        client = KafkaAdminClient(bootstrap_servers=self.bootstrap.split(","), **self.access()())
        try:
            yield client
        finally:
            client.close()

    def create_topic(self, name: str, **wanted: Any) -> None:
        """Create a topic; the client asks again when an answer is lost, though it was heard."""
        with self.admin() as kafka, contextlib.suppress(TopicAlreadyExistsError):
            kafka.create_topics({name: wanted})

    def delete_topic(self, name: str) -> None:
        """Delete a topic, if it is there."""
        with self.admin() as kafka, contextlib.suppress(UnknownTopicOrPartitionError):
            kafka.delete_topics([name])


def _in_sync(view: ClusterView) -> bool:
    return (
        view.brokers == BROKERS
        and not view.fenced
        and {voter.node_id for voter in view.voters} == CONTROLLERS
        and all(voter.caught_up for voter in view.voters)
        and all(set(p.isr) == set(p.replicas) for p in view.partitions)
    )


def quiet_narrator() -> narration.Narrator:
    """Return a narrator nobody hears."""
    return narration.Narrator(Console(file=io.StringIO()), time.time())
