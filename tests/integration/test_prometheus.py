"""A real Prometheus, asked as λ volumes asks it; no twin.

The queries, its evaluation, its answers and its refusals are the real ones; the way there is a
plain one. test_prometheus_service.py goes the way through the API server.
"""

import gzip
import json
import os
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import urllib3

from core.ground.errors import StillwaterError
from core.volumes import series
from core.volumes.series import Whose
from handlers.adapters.prometheus import Prometheus
from handlers.adapters.volumes import PrometheusVolumes
from handlers.volume.filing import Filing
from tests.integration.stored_series import GIB, MIB, RATES, Busy, Room, exposition, store
from tests.integration.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
BROKER, CONTROLLER, UNWATCHED = (
    f"data-0-orders-{pod}" for pod in ("broker-a-10", "controller-a-0", "broker-a-11")
)
# The second is scraped of all but what it writes.
VOLUME, HALF_SEEN = "vol-0a", "vol-0c"
ROOMS = [
    Room(claim=claim, used_gib=used + more, cluster=cluster)
    for cluster, more in (("prod", 0), ("other", 30))
    for claim, used in ((BROKER, 60), (CONTROLLER, 5))
]
LOADS = [
    Busy(volume_id=VOLUME),
    Busy(
        volume_id=HALF_SEEN,
        rates={name: rate for name, rate in RATES.items() if name != "write_bytes"},
    ),
]


@pytest.fixture(scope="module")
def now() -> float:
    return float(int(time.time()))


class Plain:
    """The way to a Prometheus that nothing stands before."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str, seconds: float) -> str:
        answer = urllib3.request("GET", f"{self._address}{path}", timeout=seconds, retries=False)
        if answer.status != 200:
            raise StillwaterError(f"answered {answer.status}: {answer.data.decode()}")
        return answer.data.decode()


@pytest.fixture(scope="module")
def listening(now: float, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Prometheus with those series, on an address of this process's own."""
    home: Path = tmp_path_factory.mktemp("prometheus")
    serve = store(home, exposition(int(now), ROOMS, LOADS))
    pid = os.getpid()
    # Beyond the addresses of twins, and no other worker's.
    listen = f"127.{251 + (pid >> 16) % 4}.{pid >> 8 & 255}.{pid & 255}:9090"
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [*serve, f"--web.listen-address={listen}"], stdout=log, stderr=log
        )
    try:

        def ready() -> bool:
            assert process.poll() is None, (home / "log").read_text()[-2000:]
            try:
                Plain(f"http://{listen}").get("/-/ready", 5)
            except (StillwaterError, urllib3.exceptions.HTTPError):
                return False
            return True

        until(ready, "Prometheus is ready")
        yield f"http://{listen}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def prometheus(listening: str) -> Prometheus:
    # Two loaded cores may take longer than a function would wait.
    return Prometheus(Plain(listening), seconds=60)


@pytest.fixture
def volumes(prometheus: Prometheus) -> PrometheusVolumes:
    return PrometheusVolumes(prometheus, "kafka", "orders", {"cluster": "prod"})


def test_the_fill_of_brokers_and_controllers_is_read_and_a_missing_one_is_named(
    volumes: PrometheusVolumes, now: float
) -> None:
    told = volumes.fills([BROKER, CONTROLLER, UNWATCHED], now)
    # The file system's own gibibyte counts as used.
    used = {claim: fill.used_bytes(100 * GIB) / GIB for claim, fill in told.found.items()}
    assert used == {BROKER: 61, CONTROLLER: 6}
    assert len(told.gaps) == 2
    assert all(UNWATCHED in gap and BROKER not in gap for gap in told.gaps)


def test_what_was_used_before_comes_by_the_hour(volumes: PrometheusVolumes, now: float) -> None:
    past = volumes.past([BROKER], now)
    assert set(past) == {BROKER}
    assert len(past[BROKER]) >= 24
    assert set(past[BROKER].values()) == {60.0 * GIB}


def test_the_load_of_a_volume_is_its_highest_minute_and_the_share_beyond_its_limits(
    volumes: PrometheusVolumes, now: float
) -> None:
    told = volumes.loads([VOLUME, HALF_SEEN], now)
    of = told.found[VOLUME]
    assert of.iops_p999 == pytest.approx(1000, rel=0.01)
    assert of.bytes_per_s_p999 == pytest.approx(100 * MIB, rel=0.01)
    assert of.volume_exceeded_share == pytest.approx(0.25, rel=0.05)
    assert of.instance_exceeded_share == 0.0
    assert series.is_whole(of)


def test_a_volume_that_is_half_scraped_has_an_unknown_load_not_half_of_one(
    volumes: PrometheusVolumes, now: float
) -> None:
    told = volumes.loads([VOLUME, HALF_SEEN], now)
    assert told.found[HALF_SEEN].bytes_per_s_p999 is None
    assert told.found[HALF_SEEN].iops_p999 == pytest.approx(1000, rel=0.01)
    (gap,) = told.gaps
    assert gap.startswith(f"Prometheus has no aws_ebs_csi_write_bytes_total of {HALF_SEEN}; ")


def test_what_prometheus_refuses_is_told_in_its_own_words(
    prometheus: Prometheus, now: float
) -> None:
    with pytest.raises(StillwaterError, match="parse error"):
        prometheus.instant("sum(", now)


class Folder:
    """A folder in memory."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def names_after(self, name: str) -> set[str]:
        return {each for each in self.content if each > name}

    def store(self, name: str, content: bytes) -> None:
        self.content[name] = content


def test_hours_are_filed_with_every_counter_as_it_stood(listening: str, now: float) -> None:
    folder, prometheus = Folder(), Prometheus(Plain(listening))
    whose = Whose("orders", "kafka", {"cluster": "prod"})
    # As it will be asked when the hour of the last sample is over and has settled.
    later = now + 2 * series.HOUR_SECONDS + series.SETTLED_SECONDS
    assert Filing(prometheus, folder, whose).turn(later, until=float("inf"))["left"] == 0
    found = {
        (each["metric"]["__name__"], each["metric"]["volume_id"], float(at)): float(value)
        for content in folder.content.values()
        for each in json.loads(gzip.decompress(content))["data"]["result"]
        for at, value in each["values"]
    }
    operations = series.OPERATIONS[1]
    moments = sorted(at for name, volume, at in found if (name, volume) == (operations, VOLUME))
    # A sample a minute, each once, though the hour of samples lies in two hours of files.
    assert len(moments) >= 60
    assert {b - a for a, b in pairwise(moments)} == {60.0}
    told = [found[operations, VOLUME, at] for at in moments]
    assert told == sorted(told)
    assert max(told) == RATES["write_ops"] * series.HOUR_SECONDS
    assert all(
        metric != "aws_ebs_csi_write_bytes_total" or v != HALF_SEEN for metric, v, _ in found
    )
