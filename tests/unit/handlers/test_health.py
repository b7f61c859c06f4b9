"""λ health: one answer under KIP-1017's contract, whoever answers it and whoever does not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from core.errors import StillwaterError
from core.health.connect import Answer
from core.health.examination import Expected
from core.health.pods import PodSeen
from core.rotation import ClusterView
from handlers import health
from handlers.freezes import LedgerFreezes
from handlers.health import Examiner, roles_in
from tests.unit.handlers.fakes import healthy_kafka
from tests.unit.handlers.memory_ledger import MemoryLedger
from tests.unit.handlers.memory_records import MemoryRecords

NOW = 10_000.0
ROLES = {**dict.fromkeys((0, 1, 2), "controller"), **dict.fromkeys((10, 20, 30), "broker")}
WORKER = "orders-connect-connect-0"


@dataclass
class Kafka:
    """One bootstrap address."""

    view: ClusterView | None

    def read(self) -> ClusterView:
        if self.view is None:
            raise StillwaterError("No Kafka broker could be asked.")
        return self.view

    def reorder(self, orders: object) -> None:
        raise AssertionError("health changes nothing")

    def elect(self, partitions: object) -> None:
        raise AssertionError("health changes nothing")


class Pods:
    def pods(self) -> tuple[PodSeen, ...]:
        names = {f"orders-{n}": n for n in ROLES} | {WORKER: None}
        return tuple(
            PodSeen(
                name=name,
                node_id=node_id,
                created_at=NOW - 900,
                node_name="ip-1",
                ready=True,
                containers_ready=True,
                started_at=NOW - 890,
            )
            for name, node_id in names.items()
        )


def fine(path: str, seconds: float) -> Answer:
    body = '{"status":"healthy","message":""}'
    return Answer(path=path, seconds=0.1, status=200, content_type="application/json", body=body)


@pytest.fixture
def examiner() -> Examiner:
    return Examiner(
        cluster="orders",
        expected=Expected(roles=ROLES, workers=[WORKER]),
        kafka=[Kafka(healthy_kafka())],
        pods=Pods(),
        workers={WORKER: fine},
        ledger=MemoryLedger(),
        freezes=LedgerFreezes(MemoryRecords(), "orders"),
        probe_seconds=12.0,
    )


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What a source that hangs waits for."""
    over = threading.Event()
    yield over
    over.set()


def body(answer: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(answer["body"]))


def test_a_whole_cluster_is_200_in_the_form_lambda_speaks_http(examiner: Examiner) -> None:
    answer = examiner.answer(NOW)
    assert answer["statusCode"] == 200
    assert answer["headers"]["content-type"] == "application/json"
    assert answer["headers"]["cache-control"] == "no-store"
    told = body(answer)
    assert (told["status"], told["cluster"], told["missing"]) == ("healthy", "orders", [])
    assert len(told["parts"]) == 18


def test_a_broker_that_is_out_is_503(examiner: Examiner) -> None:
    answer = replace(examiner, kafka=[Kafka(healthy_kafka(out=20))]).answer(NOW)
    assert (answer["statusCode"], body(answer)["status"]) == (503, "degraded")


def test_an_address_that_answers_is_enough(examiner: Examiner) -> None:
    both = replace(examiner, kafka=[Kafka(None), Kafka(healthy_kafka())])
    assert both.answer(NOW)["statusCode"] == 200
    neither = replace(examiner, kafka=[Kafka(None), Kafka(None)]).answer(NOW)
    assert neither["statusCode"] == 500
    assert "No Kafka broker could be asked." in neither["body"]


def test_the_answer_comes_in_time_though_every_source_hangs(
    examiner: Examiner, never: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging:
        def __getattr__(self, _name: str) -> Any:
            return lambda *_arguments: never.wait(60)

    monkeypatch.setattr(health, "MARGIN_SECONDS", 0.1)
    monkeypatch.setattr(health, "STAGGER_SECONDS", 0.01)
    silent: Any = Hanging()
    hung = replace(
        examiner,
        kafka=[silent, silent],
        pods=silent,
        workers={WORKER: silent.fetch},
        ledger=silent,
        freezes=silent,
        probe_seconds=0.1,
    )
    answer = hung.answer(NOW)
    told = body(answer)
    assert (answer["statusCode"], told["status"]) == (500, "unknown")
    assert told["seconds"] < 20
    assert set(told["missing"]) == {
        "Kafka's admin API",
        "the Kubernetes API",
        f"Connect's REST port of {WORKER}",
        "the ledger",
    }


def test_roles_are_read_as_infra_writes_them() -> None:
    assert roles_in("controller:0,1 broker:10") == {0: "controller", 1: "controller", 10: "broker"}
