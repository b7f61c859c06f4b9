"""λ health: one answer under KIP-1017's contract, whoever answers it and whoever does not."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from core.availability.operator import KafkaConditions
from core.examination import Expected, roles_wanted
from core.ground.constants import CLUSTER_HEALTH
from core.ground.errors import StillwaterError
from core.health.connect import RestResponse
from core.health.node import Metric, parse
from core.health.pods import PodSeen
from core.views import ClusterView
from handlers import examiner as handlers_examiner
from handlers.adapters import metrics
from handlers.adapters.pods import Scrapes
from handlers.examiner import Examiner
from handlers.store.documents import Freezes
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.in_memory import MemoryLedger, MemoryRecords

NOW = 10_000.0
ROLES = {**dict.fromkeys((0, 1, 2), "controller"), **dict.fromkeys((10, 20, 30), "broker")}
# What real nodes of Kafka 4.2.0 told.
DATA = Path(__file__).parents[2] / "data" / "exporters"
ERRORS = (
    Metric.METADATA_LOAD_ERRORS,
    Metric.METADATA_APPLY_ERRORS,
    Metric.METADATA_ERRORS,
)
WORKER = "orders-connect-connect-0"


@dataclass
class Kafka:
    """One bootstrap address."""

    view: ClusterView | None

    def read(self, about: Collection[int] | None = None) -> ClusterView:
        del about
        if self.view is None:
            raise StillwaterError("No Kafka broker could be reached.")
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


@dataclass
class Exporters:
    """The metrics of every pod but those that are silent."""

    silent: frozenset[str] | set[str] = frozenset()
    errors: int = 0

    def scrape(self, pods: Iterable[str]) -> Scrapes:
        (pod,) = pods
        node_id = int(pod.rpartition("-")[2])
        if pod in self.silent:
            return Scrapes(silent={node_id: f"Pod {pod}: connection refused."})
        role = ROLES[node_id]
        told = (DATA / f"{role}-strimzi-reporter.txt").read_text()
        for name in ERRORS:
            told = re.sub(rf"^(kafka_{name}) 0.0$", rf"\1 {self.errors}", told, flags=re.MULTILINE)
        return Scrapes(metrics={node_id: parse(told)})


def fine(path: str, seconds: float) -> RestResponse:
    body = '{"status":"healthy","message":""}'
    return RestResponse(
        path=path, seconds=0.1, status=200, content_type="application/json", body=body
    )


@pytest.fixture
def examiner() -> Examiner:
    return Examiner(
        cluster="orders",
        expected=Expected(roles=ROLES, workers=[WORKER]),
        kafka=[Kafka(healthy_kafka())],
        pods=Pods(),
        workers={WORKER: fine},
        exporters=Exporters(),
        exporting={n: f"orders-{n}" for n in ROLES},
        ledger=MemoryLedger(),
        freezes=Freezes(MemoryRecords(), "orders"),
        operator=lambda: KafkaConditions(ready=True, generation_observed=True),
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
    assert len(told["parts"]) == 25


def test_a_broker_that_is_out_is_503(examiner: Examiner) -> None:
    answer = replace(examiner, kafka=[Kafka(healthy_kafka(out=20))]).answer(NOW)
    assert (answer["statusCode"], body(answer)["status"]) == (503, "degraded")


def test_every_examination_is_a_metric_that_rises_with_what_is_wrong(
    examiner: Examiner, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[str, int]] = []
    monkeypatch.setattr(metrics, "count", lambda name, number: counted.append((name, number)))
    for view in (healthy_kafka(), healthy_kafka(out=20), None):
        replace(examiner, kafka=[Kafka(view)]).answer(NOW)
    assert counted == [(CLUSTER_HEALTH, 0), (CLUSTER_HEALTH, 1), (CLUSTER_HEALTH, 2)]


def test_an_address_that_answers_is_enough(examiner: Examiner) -> None:
    both = replace(examiner, kafka=[Kafka(None), Kafka(healthy_kafka())])
    assert both.answer(NOW)["statusCode"] == 200
    neither = replace(examiner, kafka=[Kafka(None), Kafka(None)]).answer(NOW)
    assert neither["statusCode"] == 500
    assert "No Kafka broker could be reached." in neither["body"]


def test_the_answer_comes_in_time_though_every_source_hangs(
    examiner: Examiner, never: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging:
        def __getattr__(self, _name: str) -> Any:
            return lambda *_arguments: never.wait(60)

    monkeypatch.setattr(handlers_examiner, "MARGIN_SECONDS", 0.1)
    monkeypatch.setattr(handlers_examiner, "STAGGER_SECONDS", 0.01)
    silent: Any = Hanging()
    hung = replace(
        examiner,
        kafka=[silent, silent],
        pods=silent,
        workers={WORKER: silent.fetch},
        exporters=silent,
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
        *(f"metrics of node {n}" for n in ROLES),
    }


def test_a_silent_exporter_leaves_its_node_unknown_and_all_serving(examiner: Examiner) -> None:
    mute = replace(examiner, exporters=Exporters(silent={"orders-20"}))
    answer = mute.answer(NOW)
    ailing = {part["name"]: part for part in body(answer)["parts"] if part["status"] != "healthy"}
    expected = {"20": "unknown", "of node 20": "unknown"}
    assert {name: part["status"] for name, part in ailing.items()} == expected
    assert "connection refused" in ailing["of node 20"]["reason"]
    assert answer["statusCode"] == 503


def test_metadata_errors_degrade(examiner: Examiner) -> None:
    troubled = replace(examiner, exporters=Exporters(errors=1))
    answer = troubled.answer(NOW)
    assert (answer["statusCode"], body(answer)["status"]) == (503, "degraded")


def test_a_cluster_without_described_nodes_is_judged_by_strimzis(examiner: Examiner) -> None:
    bare = replace(examiner, expected=Expected(roles={}), exporting={}, workers={})
    found = replace(bare, nodes=lambda: ROLES)
    assert (
        found.examine(NOW).verdict.reason
        == replace(bare, expected=Expected(roles=ROLES)).examine(NOW).verdict.reason
    )
    assert {p.name for p in found.examine(NOW).parts if p.kind == "broker"} == {"10", "20", "30"}


def test_nodes_that_nobody_names_are_unknown_and_say_why(examiner: Examiner) -> None:
    def silent() -> dict[int, str]:
        raise StillwaterError("the API server refuses strimzipodsets")

    bare = replace(examiner, expected=Expected(roles={}), exporting={}, workers={})
    for nodes, why in ((silent, "refuses strimzipodsets"), (dict, "Strimzi has no pod set")):
        parts = replace(bare, nodes=nodes).examine(NOW).parts
        (named,) = [part for part in parts if part.name == "nodes"]
        assert named.verdict.health.value == "unknown"
        assert why in named.verdict.reason


def test_a_pod_set_says_which_nodes_there_are_to_be_and_their_roles() -> None:
    def pod(name: str, **roles: str) -> dict[str, Any]:
        labels = {f"strimzi.io/{role}-role": value for role, value in roles.items()}
        labels["strimzi.io/pool-name"] = "any"
        return {"metadata": {"name": name, "labels": labels}}

    sets = [
        {"spec": {"pods": [pod("o-a-1", broker="true"), pod("o-a-2", broker="true")]}},
        {"spec": {"pods": [pod("o-q-0", controller="true", broker="false")]}},
        {"spec": {"pods": [pod("o-m-9", controller="true", broker="true")]}},
        {"spec": {"pods": [{"metadata": {"name": "o-connect-0", "labels": {}}}]}},
        {"spec": {}},
    ]
    assert roles_wanted(sets) == {1: "broker", 2: "broker", 0: "controller", 9: "combined"}
