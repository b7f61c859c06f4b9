"""Real Connect workers in every state they can be in, each with its verdict.

One walk through the states, since each costs a worker its own 10 s; a test per state looks at what
was seen in it.
"""

import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console
from rich.table import Table

from core.health.connect import CONNECTOR_PATH, Failure
from core.health.verdict import Health
from tests.integration import connect_workers
from tests.integration.connect_workers import (
    ALONE,
    BROKER,
    CONTROLLER,
    OLDER,
    WORKER,
    Probed,
    Workers,
)
from tests.integration.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(600)]
PATIENCE_SECONDS = 180.0
Seen = Mapping[str, Probed]


def eventually(probe: Callable[[], Probed], holds: Callable[[Probed], bool], what: str) -> Probed:
    return until(lambda: probed if holds(probed := probe()) else None, what, PATIENCE_SECONDS)


def answered(status: int) -> Callable[[Probed], bool]:
    return lambda probed: probed.answers[-1].status == status


def walk(workers: Workers) -> dict[str, Probed]:
    """Lead the workers through their states; return what a probe saw in each.

    Whatever takes a worker's ten seconds has another worker's beside it.
    """
    seen = {}

    def worker() -> Probed:
        return workers.probe(WORKER)

    def older() -> Probed:
        # As one that had its time to start: by the older rule, starting and blocked look the same.
        return workers.probe(OLDER, startup_seconds=0.0)

    # Without a controller the broker answers, and no internal topic comes about.
    with workers.frozen(CONTROLLER):
        workers.start_worker(WORKER)
        workers.start_worker(ALONE)
        seen["just started"] = worker()
        seen["REST open"] = eventually(worker, answered(404), "the worker's port is open")
        workers.start_worker(OLDER)
        seen["starting"] = eventually(worker, answered(503), "the worker says that it starts")
    seen["healthy"] = eventually(worker, answered(200), "the worker is healthy")
    workers.start_connector()
    with ThreadPoolExecutor(3) as beside:
        with workers.frozen(ALONE):
            itself = beside.submit(workers.probe, ALONE, kafka_answers=True)
            with workers.herder_blocked():
                seen["herder blocked"] = eventually(worker, answered(500), "the herder is blocked")
            seen["frozen itself"] = itself.result()
        seen["herder free again"] = eventually(worker, answered(200), "the worker ticks again")
        seen["3.8"] = eventually(older, by_the_older_rule(404), "the worker of 3.8 is healthy")
        with workers.frozen(BROKER):
            blocked = beside.submit(
                eventually, older, by_the_older_rule(None), "the older herder is blocked"
            )
            silent = beside.submit(workers.kafka_answers)
            seen["Kafka frozen"] = eventually(worker, answered(500), "the herder is blocked")
            seen["Kafka frozen, standalone"] = workers.probe(ALONE, kafka_answers=silent.result())
            seen["Kafka frozen, standalone, nobody asked"] = workers.probe(ALONE)
            seen["Kafka frozen, 3.8"] = blocked.result()
        seen["Kafka thawed"] = eventually(worker, answered(200), "the worker is healthy again")
    workers.signal(WORKER, signal.SIGKILL)
    workers.children[WORKER].popen.wait(30)
    seen["stopped"] = worker()
    return seen


def by_the_older_rule(status: int | None) -> Callable[[Probed], bool]:
    """Return whether a probe went on to ask for a connector, with that answer; None: with none."""

    def asked(probed: Probed) -> bool:
        last = probed.answers[-1]
        return last.path == CONNECTOR_PATH and last.status == status

    return asked


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    with connect_workers.running(tmp_path_factory.mktemp("connect")) as workers:
        found = walk(workers)
    table = Table("situation", "answer", "after", "verdict", "reason", title="Connect workers")
    for situation, probed in found.items():
        last = probed.answers[-1]
        table.add_row(
            situation,
            str(last.status or last.failure),
            f"{last.seconds:.1f} s",
            probed.verdict.health.value,
            probed.verdict.reason,
        )
    Console(width=170).print(table)
    return found


@pytest.mark.parametrize(
    ("situation", "answer", "health", "words"),
    [
        ("just started", Failure.REFUSED, Health.STARTING, "refuses connections"),
        ("REST open", 404, Health.STARTING, "404 without JSON"),
        ("starting", 503, Health.STARTING, "Worker is still starting up"),
        ("healthy", 200, Health.HEALTHY, "answered 200 healthy"),
        ("herder blocked", 500, Health.UNHEALTHY, "unable to handle this request"),
        ("herder free again", 200, Health.HEALTHY, "answered 200 healthy"),
        ("Kafka frozen", 500, Health.UNHEALTHY, "unable to handle this request"),
        ("3.8", 404, Health.HEALTHY, "knows no /health (before Kafka 3.9)"),
        ("Kafka frozen, 3.8", Failure.TIMEOUT, Health.UNHEALTHY, "its tick thread is busy or"),
        ("Kafka frozen, standalone", 200, Health.UNHEALTHY, "Kafka does not answer"),
        ("Kafka frozen, standalone, nobody asked", 200, Health.UNKNOWN, "nobody asked Kafka"),
        ("frozen itself", Failure.TIMEOUT, Health.UNHEALTHY, "did not answer within 12 s"),
        ("Kafka thawed", 200, Health.HEALTHY, "answered 200 healthy"),
        ("stopped", Failure.REFUSED, Health.UNHEALTHY, "has stopped"),
    ],
)
def test_every_state_of_a_worker_has_its_verdict(
    seen: Seen, situation: str, answer: int | Failure, health: Health, words: str
) -> None:
    probed = seen[situation]
    last = probed.answers[-1]
    assert (last.status or last.failure, probed.verdict.health) == (answer, health)
    assert words in probed.verdict.reason


@pytest.mark.parametrize("situation", ["starting", "herder blocked", "Kafka frozen"])
def test_bad_news_comes_only_after_the_workers_own_ten_seconds(seen: Seen, situation: str) -> None:
    # What a probe with Strimzi's 5 s would never have heard.
    assert 9.5 < seen[situation].answers[-1].seconds < connect_workers.PROBE_SECONDS
