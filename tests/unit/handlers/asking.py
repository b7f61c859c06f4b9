"""The eviction gate on a station: whoever asks, as the API server asks for them."""

from dataclasses import dataclass, field, replace
from typing import Any

from core.gate import GateAnswer, asked_in
from core.incidents.record import State
from handlers.eviction.gate import Gate
from handlers.incidents.observe import Sources
from tests.unit.handlers.fakes import NEW
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station

NAMESPACE = "kafka"
OPERATOR = "system:serviceaccount:kafka:strimzi-cluster-operator"
PERSON = "ada"


@dataclass
class Door:
    """The gate on a station."""

    station: Station = field(default_factory=Station)
    forgotten: int = 0

    def __post_init__(self) -> None:
        station = self.station
        cluster = station.cluster
        self.gate = Gate(
            sources=Sources(
                cluster, cluster, cluster, station.ledger, station.freezes, claims=cluster
            ),
            reception=station.reception,
            forget_readings=self.forget,
            policy=station.policy,
            namespace=NAMESPACE,
            cluster="orders",
            operators=frozenset({OPERATOR}),
            lease_seconds=900,
            reach=station.loop.effects.reach,
            clock=lambda: station.now,
        )

    def forget(self) -> None:
        self.forgotten += 1

    def ask(
        self,
        broker: int = 10,
        *,
        user: str = PERSON,
        delete: bool = False,
        dry_run: bool = False,
        patience: float = 8,
        grace_seconds: int | None = None,
    ) -> GateAnswer:
        pod = self.station.cluster.pods.get(broker)
        name = f"orders-broker-{broker}" if pod is None else pod.name
        request: dict[str, Any] = {
            "uid": "u-1",
            "operation": "DELETE" if delete else "CREATE",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "subResource": "" if delete else "eviction",
            "name": name,
            "namespace": NAMESPACE,
            "userInfo": {"username": user, "groups": ["system:authenticated"]},
            "dryRun": dry_run,
        }
        if grace_seconds is not None:
            given = {"gracePeriodSeconds": grace_seconds}
            request |= {"options": given} if delete else {"object": {"deleteOptions": given}}
        return self.gate.ask(asked_in({"request": request}), self.station.now + patience)

    def spare(self, instance_id: str = NEW, zone: str = "us-east-1a") -> None:
        self.station.cluster.join(instance_id, zone)

    def evicted(self, broker: int, to: str) -> None:
        """The pod leaves its node and is Ready on another, its volume with it."""
        self.station.cluster.attached.clear()
        self.station.cluster.place_pod(broker, to)

    def tick_until(self, state: State, most: int = 40) -> None:
        self.station.tick_until(state, most)


def lag(door: Door) -> None:
    view = healthy_kafka()
    behind = tuple(replace(p, isr=(10, 30)) for p in view.partitions)
    door.station.cluster.kafka = replace(view, partitions=behind)
