"""`grow` and `shrink`: which brokers are meant, and a rebalance as it goes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from rich.console import Console

from cli import grow
from cli.grow import Growth
from cli.provision import Asked
from cli.target import Cluster, DescribedKafka
from core.cluster.operation import Timings
from core.ground.errors import InvalidInput, StillwaterError
from infra.eks.api import Api, ApiError
from tests.unit.infra.programs import spec

NAME = "orders-grow-11"
POOLS = [
    {
        "metadata": {"name": f"broker-{zone}"},
        "spec": {"roles": ["broker"], "storage": {"volumes": [{"size": "100Gi"}]}},
        "status": {"nodeIds": nodes},
    }
    for zone, nodes in (("a", [10, 11]), ("b", [20]))
]


class Operator(Api):
    """An API server whose operator takes the states of a script, one at each look."""

    def __init__(self, *states: str) -> None:
        self.states: Iterator[str] = iter(states)
        self.made: list[Any] = []
        self.sent: list[Any] = []
        self.asked: list[str] = []
        self.nodes = 0

    def get(self, path: str, **_query: object) -> dict[str, Any]:
        if path.endswith("/kafkanodepools"):
            return {"items": POOLS}
        if path == "/api/v1/nodes":
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            labels = {"stillwater.dev/pool": "broker"}
            return {"items": [{"metadata": {"labels": labels}, "status": ready}] * self.nodes}
        if "/configmaps/" in path:
            return {"data": {"brokerLoad.json": '{"11": {"diskUsedMB": {"after": 51200}}}'}}
        if not self.made:
            raise ApiError(404, "NotFound", "there is none")
        status: dict[str, Any] = {
            "conditions": [{"type": next(self.states), "status": "True", "message": ""}],
            "optimizationResult": {
                "dataToMoveMB": 50 * 1024,
                "numReplicaMovements": 9,
                "afterBeforeLoadConfigMap": NAME,
            },
        }
        return {"metadata": {"name": NAME}, "spec": self.made[0]["spec"], "status": status}

    def post(self, path: str, body: Any, **_query: object) -> dict[str, Any]:
        assert path.endswith("/kafkarebalances")
        self.made.append(body)
        self.sent.append(body)
        return {}

    def delete(self, path: str, _body: Any = None, **_query: object) -> dict[str, Any]:
        assert "/kafkarebalances/orders-" in path
        self.made.clear()
        return {}

    def merge(self, path: str, body: Any) -> dict[str, Any]:
        assert "/kafkarebalances/orders-" in path
        self.asked.append(body["metadata"]["annotations"]["strimzi.io/rebalance"])
        return {}


class Growing(Growth):
    """A growth during which a rotation runs as a test says."""

    rotations: Iterator[bool] = iter(())

    def is_rotating(self) -> bool:
        return next(self.rotations, False)


def nothing(_given: object) -> None: ...


def ran(
    operator: Operator,
    *rotating: bool,
    plan_only: bool = False,
    mode: grow.Mode = "add-brokers",
    missing: tuple[int, ...] = (),
    automatic: bool = False,
    up: Callable[[Asked], None] = nothing,
    provisioner: str = "asg",
) -> str:
    rebalance = {"throttle_mib_per_s": 10, "automatic": automatic}
    described = spec(kafka={"rebalance": rebalance}, node_provisioner=provisioner)
    growth = Growing(Cluster(described, None), operator, "kafka", mode, (11,), missing)
    Growing.rotations = iter(rotating)
    out = io.StringIO()
    console = Console(file=out, width=200)
    grow.run(growth, console, up, plan_only=plan_only, yes=True, sleep=nothing)
    return out.getvalue()


def test_a_proposal_is_made_shown_approved_and_followed() -> None:
    states = ("PendingProposal", "ProposalReady", "ProposalReady", "Rebalancing", "Ready")
    operator = Operator(*states, "Ready", *states)
    told = ran(operator)
    assert operator.asked == ["approve"]
    (made,) = operator.sent
    assert ran(operator).endswith("The new brokers have their share.\n")
    assert operator.sent == [made, made]
    assert made["metadata"]["labels"] == {"strimzi.io/cluster": "orders"}
    expected = {"mode": "add-brokers", "brokers": [11], "replicationThrottle": 10 * 1024**2}
    assert made["spec"] == expected
    assert "9 replicas with 50.0 GiB move onto brokers 11." in told
    assert "Afterwards broker 11 has the fullest disks, 50%." in told
    assert told.rstrip().endswith("The new brokers have their share.")


def test_a_plan_moves_nothing() -> None:
    operator = Operator("ProposalReady")
    assert "9 replicas" in ran(operator, plan_only=True)
    assert operator.asked == []


def test_brokers_that_are_missing_come_after_their_nodes() -> None:
    operator, asked = Operator("ProposalReady", "ProposalReady", "Ready"), list[Asked]()

    def up(wanted: Asked) -> None:
        assert operator.sent == []
        # The whole comes up only when the nodes of three brokers are Ready.
        assert operator.nodes == (3 if asked else 0)
        asked.append(wanted)
        operator.nodes = 3

    told = ran(operator, missing=(11,), up=up)
    expected = [(("kafka",), ("nodes-*",)), (Asked().layers, ())]
    assert [(each.layers, each.scope.targets) for each in asked] == expected
    assert told.startswith("Brokers 11 are described, and Kafka does not have them.")
    assert len(operator.sent) == 1
    ran(Operator(), missing=(11,), plan_only=True)


def test_nodes_that_do_not_come_keep_the_brokers_away() -> None:
    operator, asked = Operator(), list[Asked]()
    with pytest.raises(StillwaterError, match="brokers 11 did not become Ready"):
        ran(operator, missing=(11,), up=asked.append)
    assert (len(asked), operator.sent) == (1, [])


def test_brokers_that_hold_nothing_are_taken_down_where_the_description_says_so() -> None:
    asked = list[Asked]()
    operator = Operator("ProposalReady", "ProposalReady", "Rebalancing", "Ready")
    told = ran(operator, mode="remove-brokers", up=asked.append)
    assert [each.layers for each in asked] == [Asked().layers]
    assert "Brokers 11 hold no partition, and may go." in told
    # The Cluster Autoscaler ends none of Kafka's (infra.charts.autoscaler).
    assert told.endswith("--instance-id ID --should-decrement-desired-capacity`.\n")
    told = ran(Operator(), mode="remove-brokers", up=asked.append, automatic=True)
    assert len(asked) == 2
    assert "Strimzi's operator moves the partitions of brokers 11 by itself." in told
    states = ("ProposalReady", "ProposalReady", "Ready")
    told = ran(Operator(*states), mode="remove-brokers", provisioner="karpenter")
    assert told.endswith("Karpenter ends their empty nodes after an hour.\n")


def test_a_rotation_stops_what_moves_and_it_is_proposed_again_afterwards() -> None:
    proposed = ("ProposalReady", "ProposalReady", "Rebalancing")
    operator = Operator(*proposed, "Stopped", "Stopped", *proposed, "Ready")
    told = ran(operator, False, False, False, True, True, False)
    assert operator.asked == ["approve", "stop", "refresh", "approve"]
    assert "It waits: a rotation runs." in told
    # The second proposal is shown, and agreed to, by itself.
    assert told.count("9 replicas with 50.0 GiB move") == 2


def test_a_rebalance_that_failed_is_a_sentence() -> None:
    with pytest.raises(StillwaterError, match=f"KafkaRebalance {NAME}: NotReady"):
        ran(Operator("NotReady"))


class Bare(Api):
    """A Kafka without Cruise Control."""

    def __init__(self) -> None: ...

    def get(self, path: str, **_query: object) -> dict[str, Any]:
        assert path == "/apis/kafka.strimzi.io/v1/namespaces/shop-kafka/kafkas/orders"
        return {"spec": {"kafka": {}}}


def test_a_cluster_without_cruise_control_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    known = DescribedKafka(
        "shop.yaml", "shop-orders", "orders", "us-east-1", Timings(), "shop", "shop-kafka"
    )
    session = boto3.Session("test", "test", region_name="us-east-1")
    monkeypatch.setattr(Cluster, "named", lambda _environment: Cluster(known, session))
    monkeypatch.setattr(grow, "eks_api", lambda *_given: Bare())
    with pytest.raises(InvalidInput, match=r"set spec\.cruiseControl in the Kafka resource"):
        Growth.named("shop.yaml", "remove-brokers", ())


@pytest.mark.parametrize(
    ("mode", "named", "described", "meant", "missing"),
    [
        ("add-brokers", [], {10, 11, 12, 20, 21}, [12, 21], [12, 21]),
        # They are there since a run that was cut short.
        ("add-brokers", [], {10, 11, 20}, [11], []),
        ("add-brokers", [20, 11], {10, 11, 20}, [11, 20], []),
        ("remove-brokers", [], {10, 20}, [11], []),
        ("remove-brokers", [10, 11], [], [10, 11], []),
    ],
)
def test_the_brokers_are_those_the_description_and_kafka_differ_by(
    mode: grow.Mode, named: Any, described: Any, meant: Any, missing: Any
) -> None:
    assert grow.chosen(POOLS, mode, named, frozenset(described)) == (meant, missing)


@pytest.mark.parametrize(
    ("mode", "described", "named", "sentence"),
    [
        ("add-brokers", {20}, (), "No broker is new: raise `nodes_per_zone` of their pool"),
        ("add-brokers", {20}, (10,), "Kafka has no broker 10: name some of 20"),
        # A second run after the end empties nobody else.
        ("remove-brokers", {20}, (), "No broker is to go: lower `nodes_per_zone` of their pool"),
        ("remove-brokers", {}, (), "No broker is to go"),
    ],
)
def test_a_run_with_nothing_to_do_is_a_sentence(
    mode: grow.Mode, described: Any, named: Any, sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        grow.chosen(POOLS[1:], mode, named, frozenset(described))


def test_strimzi_removes_the_highest_id_first() -> None:
    with pytest.raises(InvalidInput, match=r"the highest ids of node pool broker-a: \[11\]"):
        grow.chosen(POOLS, "remove-brokers", (10,), frozenset())
