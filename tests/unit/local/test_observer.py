"""local.kafka.observer: what it remembers of a node's run, and what it reads of this machine."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from core.ground.errors import StillwaterError
from core.health.node import NEVER, NodeObservation, Recovery, Role
from core.health.rules import WELL
from core.views import ClusterView, PartitionView, VoterView
from local.kafka import observer
from local.kafka.observer import READING_KEPT_SECONDS, ObservedNode, Observer, _Reading

BROKER = replace(WELL[Role.BROKER], node_id=11, was_in_sync=False, now=100.0)
VIEW = ClusterView(
    brokers=frozenset({10, 11}),
    fenced=frozenset(),
    voters=(VoterView(0, 0.0), VoterView(1, None)),
    quorum_leader=0,
    partitions=(
        PartitionView("orders", 0, 10, (10, 11), (10,), 1),
        PartitionView("orders", 1, 10, (10, 11), (10, 11), 1),
        PartitionView("orders", 2, 10, (10,), (10,), 1),
    ),
)


@pytest.fixture
def watching() -> Iterator[Observer]:
    made = Observer()
    yield made
    made.close()


def read_at(watching: Observer, at: float, view: ClusterView | None = VIEW) -> None:
    watching._reading = _Reading(at, view)


def remembered(watching: Observer, observed: NodeObservation, pid: int = 7) -> NodeObservation:
    return watching._with_memory(observed, pid)


def test_what_the_leaders_miss_is_counted_over_the_replicas_a_broker_has(
    watching: Observer,
) -> None:
    read_at(watching, 99.0)
    assert watching._as_cluster_says(BROKER).not_in_sync == 1


def test_a_stale_reading_says_only_that_there_is_no_quorum(watching: Observer) -> None:
    read_at(watching, 99.0, replace(VIEW, stale=True))
    blank = replace(BROKER, fenced=None, not_in_sync=None, quorum_answers=None)
    assert watching._as_cluster_says(blank) == replace(blank, quorum_answers=False)


def test_a_voter_that_never_fetched_is_behind_for_ever(watching: Observer) -> None:
    read_at(watching, 99.0)
    found = watching._as_cluster_says(replace(WELL[Role.CONTROLLER], node_id=1))
    assert found.voter_lag_seconds == NEVER


def test_a_broker_was_in_sync_once_a_later_reading_showed_it(watching: Observer) -> None:
    read_at(watching, 99.0)
    assert not remembered(watching, BROKER).was_in_sync, "the reading is of the run before"
    read_at(watching, 101.0)
    assert remembered(watching, replace(BROKER, now=102.0)).was_in_sync
    behind = replace(BROKER, now=103.0, not_in_sync=3)
    assert remembered(watching, behind).was_in_sync, "it stays so when it falls behind"


def test_another_process_has_not_been_in_sync_yet(watching: Observer) -> None:
    remembered(watching, BROKER)
    read_at(watching, 101.0)
    assert remembered(watching, replace(BROKER, now=102.0)).was_in_sync
    assert not remembered(watching, replace(BROKER, now=103.0), pid=8).was_in_sync


def test_a_recovery_moves_when_less_is_left(watching: Observer) -> None:
    def at(now: float, left: int) -> float | None:
        recovering = replace(BROKER, now=now, broker_state=2, recovery={"/a": Recovery(left, 0)})
        return remembered(watching, recovering).recovery_moved_at

    assert [at(1.0, 9), at(2.0, 9), at(3.0, 8), at(9.0, 8)] == [1.0, 1.0, 3.0, 3.0]


def test_its_own_process_is_no_java_and_proc_can_be_read() -> None:
    assert all(str(os.getpid()) != str(pid) for pid, _ in observer.java_processes().values())
    assert all(0 < port < 65536 for _, port in observer.listening())


NODES = [
    *(ObservedNode(i, Role.BROKER, f"127.0.0.{i}", "") for i in (10, 11)),
    ObservedNode(0, Role.CONTROLLER, "127.0.0.1", ""),
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Whom the admin client was given, each time; nobody answers it."""
    found: list[list[str]] = []

    class Mute:
        def __init__(self, bootstrap: list[str], _access: None) -> None:
            found.append(bootstrap)

        def read(self) -> ClusterView:
            raise StillwaterError("No Kafka broker could be reached.")

    monkeypatch.setattr(observer, "KafkaAdmin", Mute)
    monkeypatch.setattr(observer, "now", lambda: 100.0)
    return found


@pytest.mark.parametrize(
    ("age", "kept"), [(READING_KEPT_SECONDS - 1, VIEW), (READING_KEPT_SECONDS + 1, None)]
)
def test_a_reading_that_fails_leaves_the_one_before_for_a_while(
    watching: Observer, asked: list[list[str]], age: float, kept: ClusterView | None
) -> None:
    read_at(watching, 100.0 - age)
    watching.ask_cluster(NODES)
    assert asked
    assert watching.view is kept


def test_a_broker_that_is_silent_is_asked_last(watching: Observer, asked: list[list[str]]) -> None:
    watching.ask_cluster(NODES)
    watching._silent = frozenset({10})
    watching.ask_cluster(NODES)
    assert asked == [["127.0.0.10:9091", "127.0.0.11:9091"], ["127.0.0.11:9091", "127.0.0.10:9091"]]
