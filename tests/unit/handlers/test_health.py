"""λ health: one answer under KIP-1017's contract, and every answer about anybody's cluster true.

Others' pods and pod sets are as the API server lists them, their Kafka speaks real protocol bytes.
"""

import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from core.availability.operator import KafkaConditions
from core.examination import Expected, Seen, parts, roles_wanted
from core.ground.constants import CLUSTER_HEALTH
from core.ground.errors import StillwaterError
from core.ground.fields import Unknown
from core.health.connect import RestResponse
from core.health.node import Metric, parse
from core.health.pods import PodSeen
from core.health.verdict import ClusterHealth, Health, cluster_health
from core.views import ClusterView
from handlers import examiner as handlers_examiner
from handlers.adapters import claims, metrics
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.pods import Scrapes, pod_seen
from handlers.examiner import Examiner
from handlers.store.documents import Freezes
from tests.every_case import every_case
from tests.fake_kafka import ALL, DESCRIBE, DESCRIBE_CONFIGS, FakeKafka, FakePartition
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.in_memory import MemoryLedger, MemoryRecords
from tests.unit.kafka_in_memory import NOW_MS, answering, three_brokers

NOW = 10_000.0
ROLES = {**dict.fromkeys((0, 1, 2), "controller"), **dict.fromkeys((10, 20, 30), "broker")}
# What real nodes of Kafka 4.2.0 told.
DATA = Path(__file__).parents[2] / "data" / "exporters"
ERRORS = (Metric.METADATA_LOAD_ERRORS, Metric.METADATA_APPLY_ERRORS, Metric.METADATA_ERRORS)
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


def test_what_is_wrong_is_503(examiner: Examiner) -> None:
    for changes in ({"kafka": [Kafka(healthy_kafka(out=20))]}, {"exporters": Exporters(errors=1)}):
        answer = replace(examiner, **changes).answer(NOW)
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


A_DAY_LATER = 1_795_219_200.0  # a day after the pods were made
Item = dict[str, Any]


def pod(name: str, pool: str, *roles: str) -> Item:
    labels = {
        "strimzi.io/cluster": "orders",
        "strimzi.io/kind": "Kafka",
        "strimzi.io/pool-name": pool,
        **{f"strimzi.io/{r}-role": str(r in roles).lower() for r in ("broker", "controller")},
    }
    kinds = ("PodScheduled", "ContainersReady", "Ready")
    running = {"running": {"startedAt": "2026-11-20T00:00:10Z"}}
    return {
        "metadata": {"name": name, "labels": labels, "creationTimestamp": "2026-11-20T00:00:00Z"},
        "spec": {"nodeName": f"node-of-{name}"},
        "status": {
            "phase": "Running",
            "conditions": [{"type": kind, "status": "True"} for kind in kinds],
            "containerStatuses": [{"name": "kafka", "restartCount": 0, "state": running}],
        },
    }


def _apart() -> list[Item]:
    """Return brokers and controllers in pools of their own."""
    brokers = [pod(f"orders-mains-{n}", "mains", "broker") for n in (1, 2, 3)]
    return [*brokers, *(pod(f"orders-votes-{n}", "votes", "controller") for n in (10, 11, 12))]


@dataclass
class Foreign:
    """A Kafka somebody else runs; a case changes it."""

    pods: list[Item] = field(default_factory=_apart)
    kafka: FakeKafka = field(default_factory=three_brokers)
    sets: list[Item] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.describe()

    def describe(self) -> None:
        """Let the pod sets be those of the pods."""
        self.sets = [
            {"spec": {"pods": [{"metadata": deepcopy(each["metadata"])}]}} for each in self.pods
        ]

    def condition(self, kind: str, status: str, **more: str) -> None:
        (found,) = (c for c in self.pods[0]["status"]["conditions"] if c["type"] == kind)
        found |= {"status": status, **more}

    def container(self, **said: Any) -> None:
        """The first pod's own container is otherwise, and the pod is not Ready."""
        self.pods[0]["status"]["containerStatuses"][0] |= said
        self.condition("Ready", "False")

    def judged(self) -> ClusterHealth:
        kafka: Any
        try:
            with answering(self.kafka):
                kafka = KafkaAdmin(["a:1"]).read()
        except StillwaterError as error:
            kafka = Unknown(str(error))
        found = (pod_seen(each) for each in self.pods)
        seen = Seen(
            kafka=kafka,
            pods=tuple(each for each in found if each is not None),
            incidents=(),
            freezes=(),
            operator=KafkaConditions(ready=True, generation_observed=True),
            nodes=roles_wanted(self.sets),
        )
        return cluster_health(parts(seen, Expected(roles={}), A_DAY_LATER))


Change = Callable[[Foreign], object]


def of_kafka(change: Callable[[FakeKafka], object]) -> Change:
    return lambda foreign: change(foreign.kafka)


def combined(foreign: Foreign) -> None:
    foreign.pods = [pod(f"orders-both-{n}", "both", "broker", "controller") for n in (1, 2, 3)]
    foreign.kafka.voters = {1: NOW_MS - 400, 2: NOW_MS, 3: NOW_MS - 300}
    foreign.kafka.leader, foreign.kafka.observers = 2, {}
    foreign.describe()


def pending(foreign: Foreign) -> None:
    item = foreign.pods[0]
    del item["spec"]["nodeName"]
    item["status"] |= {"phase": "Pending", "containerStatuses": []}
    foreign.condition("PodScheduled", "False", message="0/6 nodes: volume node affinity conflict.")
    foreign.condition("Ready", "False")


def scaled_up(foreign: Foreign) -> None:
    """By the ids that strimzi.io/next-node-ids has named: far from the others."""
    wanted = pod("orders-mains-1000000", "mains", "broker")
    foreign.sets.append({"spec": {"pods": [{"metadata": wanted["metadata"]}]}})


def out(kafka: FakeKafka, broker: int = 1) -> None:
    """Fence a broker, and take it out of all ISRs."""
    kafka.brokers[broker] = True
    for rows in kafka.topics.values():
        for row in rows:
            row.isr = tuple(b for b in row.isr if b != broker)
            row.leader = row.isr[0]


def beside(kind: str, name: str, **status: Any) -> Change:
    """Somebody calls another resource of Strimzi's as the Kafka is called."""
    labels = {"strimzi.io/cluster": "orders", "strimzi.io/kind": kind}
    metadata = {"name": name, "labels": labels, "creationTimestamp": "2026-11-20T00:00:00Z"}
    item = {"metadata": metadata, "spec": {}, "status": {"phase": "Pending", **status}}
    return lambda foreign: foreign.pods.append(item)


def only_led(kafka: FakeKafka) -> None:
    for rows in kafka.topics.values():
        for row in rows:
            row.isr, row.leader = row.replicas[:1], row.replicas[0]


CRASHES = {"name": "exporter", "restartCount": 9, "state": {"waiting": {"reason": "ErrImagePull"}}}
UNSCHEDULED = [{"type": "PodScheduled", "status": "False", "message": "no room"}]
WORLDS: Mapping[str, tuple[Change, str]] = {
    # Pods and pools.
    "whole => healthy": (lambda _: None, "All 17 parts are healthy."),
    "combined roles => healthy": (combined, "All 14 parts are healthy."),
    "a pod that no node takes => degraded": (pending, "is not scheduled: 0/6 nodes: volume node"),
    "a pod that is gone => degraded": (lambda f: f.pods.pop(0), "Kafka node 1 has no pod"),
    "all pods gone => unhealthy": (lambda f: f.pods.clear(), "has no pod"),
    "no pod sets => degraded": (lambda f: f.sets.clear(), "Strimzi has no pod set of it"),
    "a pool of ids of its own => degraded": (scaled_up, "Broker 1000000 is not registered."),
    "a pool whose name ends in numbers => degraded": (
        lambda f: (f.pods.append(pod("orders-2024-7-9", "2024-7", "broker")), f.describe()),
        "Broker 9 is not registered."),
    "a broker nobody described => healthy": (of_kafka(lambda k: k.brokers.update({7: False})),
        "All 18 parts are healthy."),
    "what is left of a broker that was removed => healthy": (
        of_kafka(lambda k: k.brokers.update({7: True})), "`kafka-cluster.sh unregister --id 7`"),
    "a pod that crashes => degraded": (
        lambda f: f.container(restartCount=9, state={"waiting": {"reason": "CrashLoopBackOff"}}),
        "Pod orders-mains-1 does not start after 9 restarts: CrashLoopBackOff."),
    "a pod whose exporter never starts => degraded": (
        lambda f: (f.pods[0]["status"]["containerStatuses"].append(CRASHES),
            f.condition("Ready", "False")),
        "Container exporter of pod orders-mains-1 does not start after 9 restarts: ErrImagePull."),
    "a pod that the kernel ended => degraded": (
        lambda f: f.container(state={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
        "is not Ready (OOMKilled)"),
    "a pod that was Ready until a minute ago => degraded": (
        lambda f: f.condition("Ready", "False", lastTransitionTime="2026-11-20T23:59:00Z"),
        "is not Ready, for 60 s."),
    "a pod whose node is silent => degraded": (
        lambda f: f.condition("Ready", "Unknown", lastTransitionTime="2026-11-20T23:00:00Z"),
        "is not Ready, for 3600 s."),
    "a pod that is told to stop => degraded": (
        lambda f: f.pods[0]["metadata"].update(deletionTimestamp="2026-11-20T23:59:00Z"),
        "is being stopped"),
    "one that the kubelet evicted, beside the next => healthy": (
        lambda f: f.pods.append(
            {**pod("orders-mains-1", "mains", "broker"), "status": {"phase": "Failed"}}),
        "All 17 parts"),
    "a pod without a status => degraded": (lambda f: f.pods[0].update(status={}), "is not Ready"),
    "a Connect of the same name => degraded": (
        beside("KafkaConnect", "orders-connect-0", conditions=UNSCHEDULED),
        "Pod orders-connect-0 is not scheduled: no room"),
    "a MirrorMaker of the same name => healthy": (beside("KafkaMirrorMaker2", "m-0"), "All 17"),
    "a bridge of the same name => healthy": (beside("KafkaBridge", "orders-bridge-1"), "All 17"),
    # Quorums of three and five, with votes that come and go.
    "a controller far behind => degraded": (
        of_kafka(lambda k: k.voters.update({12: NOW_MS - 60_000})), "and 12 lag behind"),
    "a controller whose vote was taken => degraded": (of_kafka(lambda k: k.voters.pop(12)),
        "Controller 12 is not a voter of the quorum that answers."),
    "two of five away => degraded": (of_kafka(lambda k: k.voters.update({13: -1, 14: -1})),
        "leads the quorum of 5, and 13, 14 lag behind"),
    "three of five away => unhealthy": (
        of_kafka(lambda k: k.voters.update({12: -1, 13: -1, 14: -1})),
        "no majority keeps up: 12, 13, 14 lag behind"),
    "a leader that gives its vote back => unknown": (of_kafka(lambda k: setattr(k, "leader", 99)),
        "led by controller 99, which it does not count"),
    "no quorum => unhealthy": (of_kafka(lambda k: setattr(k, "quorum_error", 6)),
        "The controllers have no quorum"),
    "metadata in ZooKeeper => unknown": (of_kafka(lambda k: k.too_old.add("DescribeQuorum")),
        "does not know DescribeQuorum: its metadata is in ZooKeeper, or"),
    "Kafka 3.7 => healthy": (
        of_kafka(lambda k: k.too_old.update({"ListConfigResources", "DescribeTopicPartitions"})),
        "All 17"),
    # An authorizer that denies single operations.
    "Describe denied => unknown": (of_kafka(lambda k: setattr(k, "cluster", ALL - {DESCRIBE})),
        "refuses DescribeQuorum"),
    "DescribeConfigs denied => unknown": (
        of_kafka(lambda k: setattr(k, "cluster", ALL - {DESCRIBE_CONFIGS})),
        "refuses ListConfigResources"),
    "a topic hidden => unknown": (of_kafka(lambda k: k.hidden.add("payments")), "hides topic"),
    "a topic's settings denied => unknown": (of_kafka(lambda k: k.without_configs.add("payments")),
        "DescribeConfigs on topic payments"),
    # Topics, disks, moves.
    "a broker out => degraded": (of_kafka(out), "Replicas are out of sync in 6 of 6 partitions"),
    "a broker out, and its pod pending => degraded": (lambda f: (pending(f), out(f.kafka)),
        "Broker 1 is fenced"),
    "two brokers out => unhealthy": (of_kafka(lambda k: (out(k), out(k, 2))),
        "Producers with acks=all are refused"),
    "one replica each in sync => unhealthy": (of_kafka(only_led), "Producers with acks=all"),
    "a minimum above the replicas => healthy": (of_kafka(lambda k: k.minimums.update(orders="4")),
        "All 6 partitions"),
    "a minimum of all replicas => healthy": (of_kafka(lambda k: k.minimums.update(orders="3")),
        "All 17"),
    "a topic of one replica => healthy": (
        of_kafka(
            lambda k: (k.topics.update(one=[FakePartition((1,), (1,), 1)]),
                k.minimums.update(one="1"))), "All 17"),
    "a topic whose one replica is away => unhealthy": (
        of_kafka(lambda k: k.topics.update(one=[FakePartition((1,), (1,), -1)])),
        "No broker leads 1 of 7 partitions: one-0."),
    "a partition that one more replica has whole => unhealthy": (
        of_kafka(lambda k: k.topics.update(one=[FakePartition((1, 2), (), -1, eligible=(2,))])),
        "Broker 2 still holds all of one-0 (ELR)"),
    "a leader by an unclean election => unknown": (
        of_kafka(lambda k: k.topics.update(one=[FakePartition((1, 2, 3), (1, 2), 3)])),
        "is led by broker 3, which is not in sync"),
    "a disk of several lost => unknown": (of_kafka(lambda k: k.failed.update({2: "/data-1"})),
        "Broker 2 cannot read log directory /data-1"),
    "partitions that move => healthy": (of_kafka(lambda k: k.moving.append(("orders", 0))), "All"),
    "a broker that answers nobody => unknown": (of_kafka(lambda k: k.silent.add(3)),
        "Broker 3 did not answer DescribeLogDirs"),
    "nobody answers => unknown": (of_kafka(lambda k: k.silent.update({1, 2, 3})),
        "No Kafka broker could be reached"),
    "a broker whose metadata is old => healthy": (
        of_kafka(lambda k: k.observers.update({1: NOW_MS - 9_000})), "All 17"),
    "no topics => healthy": (of_kafka(lambda k: k.topics.clear()), "All 17 parts"),
}  # fmt: skip


def worlds() -> Iterator[tuple[Change, Health, str]]:
    """Yield what happens to each world, how healthy it is then, and words that are said of it."""
    for row, (change, words) in WORLDS.items():
        yield change, Health(row.rpartition(" => ")[2]), words


@every_case(("change", "health", "words"), worlds(), ids=WORLDS)
def test_anothers_cluster_is_told_truly(change: Change, health: Health, words: str) -> None:
    foreign = Foreign()
    change(foreign)
    found = foreign.judged()
    said = [found.verdict.reason, *(p.verdict.reason for p in found.parts)]
    said += [note for part in found.parts for note in part.notes]
    assert (found.verdict.health, any(words in each for each in said)) == (health, True), said
    assert all(each.endswith((".", ".)")) and ".." not in each for each in said), said


def test_pod_sets_of_another_shape_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "pod_sets", lambda *_: [{"spec": None}])
    with pytest.raises(StillwaterError, match="in a shape that this release cannot read"):
        claims.wanted_roles(None, "kafka", "orders")
