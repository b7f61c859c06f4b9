"""`stillwater grow` and `shrink`: which brokers are meant, and a rebalance followed to its end."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from rich.console import Console

from cli import grow
from cli.grow import Growth
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

    def get(self, path: str, **_query: object) -> dict[str, Any]:
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
        assert path.endswith(f"/kafkarebalances/{NAME}")
        self.made.clear()
        return {}

    def merge(self, path: str, body: Any) -> dict[str, Any]:
        assert path.endswith(f"/kafkarebalances/{NAME}")
        self.asked.append(body["metadata"]["annotations"]["strimzi.io/rebalance"])
        return {}


class Growing(Growth):
    """A growth during which a rotation runs as a test says."""

    rotations: Iterator[bool] = iter(())

    def is_rotating(self) -> bool:
        return next(self.rotations, False)


def ran(operator: Operator, *rotating: bool, plan_only: bool = False) -> str:
    described = spec(kafka={"rebalance": {"throttle_mib_per_s": 10}})
    growth = Growing(Cluster(described, None), operator, "kafka", "add-brokers", (11,), POOLS)
    Growing.rotations = iter(rotating)
    out = io.StringIO()
    options = {"plan_only": plan_only, "yes": True, "sleep": lambda _seconds: None}
    grow.run(growth, Console(file=out, width=200), **options)
    return out.getvalue()


def test_a_proposal_is_made_shown_approved_and_followed() -> None:
    operator = Operator("PendingProposal", "ProposalReady", "ProposalReady", "Rebalancing", "Ready")
    told = ran(operator)
    assert operator.asked == ["approve"]
    (made,) = operator.sent
    # The next growth with these brokers finds nothing of this one.
    assert operator.made == []
    assert made["metadata"]["labels"] == {"strimzi.io/cluster": "orders"}
    assert made["spec"] == {
        "mode": "add-brokers",
        "brokers": [11],
        "replicationThrottle": 10 * 1024**2,
    }
    assert "9 replicas with 50.0 GiB move onto brokers 11." in told
    assert "Afterwards broker 11 has the fullest disks, 50%." in told
    assert told.rstrip().endswith("The new brokers have their share.")


def test_a_plan_moves_nothing() -> None:
    operator = Operator("ProposalReady")
    assert "9 replicas" in ran(operator, plan_only=True)
    assert operator.asked == []


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


def test_a_cluster_that_exists_without_cruise_control_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = DescribedKafka(
        "shop.yaml", "shop-orders", "orders", "us-east-1", Timings(), "shop", "shop-kafka"
    )
    session = boto3.Session("test", "test", region_name="us-east-1")
    monkeypatch.setattr(Cluster, "named", lambda _environment: Cluster(known, session))
    monkeypatch.setattr(grow, "eks_api", lambda *_given: Bare())
    with pytest.raises(InvalidInput, match=r"set spec\.cruiseControl in the Kafka resource"):
        Growth.named("shop.yaml", "remove-brokers", ())


@pytest.mark.parametrize(
    ("mode", "brokers", "chosen"),
    [
        ("add-brokers", (), (11,)),
        ("add-brokers", (20, 11), (11, 20)),
        ("remove-brokers", (), (11,)),
        ("remove-brokers", (10, 11), (10, 11)),
    ],
)
def test_without_a_name_each_pools_last_broker_is_meant(
    mode: grow.Mode, brokers: tuple[int, ...], chosen: tuple[int, ...]
) -> None:
    assert grow.chosen(POOLS, mode, brokers) == chosen


@pytest.mark.parametrize(
    ("pools", "brokers", "sentence"),
    [
        (POOLS[1:], (), "Each node pool has one broker"),
        (POOLS, (12,), "Kafka has no broker 12: name some of 10, 11, 20"),
        (POOLS, (10,), r"Strimzi removes the highest ids of node pool broker-a: \[11\]"),
    ],
)
def test_a_broker_that_cannot_go_is_a_sentence(
    pools: list[Any], brokers: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        grow.chosen(pools, "remove-brokers", brokers)
