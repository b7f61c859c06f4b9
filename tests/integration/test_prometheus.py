"""A real Prometheus, asked as λ volumes asks it; no twin.

Kubelets with volumes and the EBS driver are what the twin has not: their series are written into
Prometheus's own storage by promtool, two days of room and an hour of load, so nothing is waited
for. The queries, its evaluation, its answers and its refusals are the real ones; the way there is a
plain one, in the place of the API server's proxy.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from core.errors import StillwaterError
from core.volumes import series
from handlers.adapters.prometheus import Prometheus
from handlers.adapters.volume_series import PrometheusVolumes
from local.tools import build
from local.tools.build import tool_path
from local.tools.catalogue import BINARIES
from tests.integration.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
GIB, MIB, HOUR, MINUTE = 1024**3, 1024**2, 3600, 60
BROKER, CONTROLLER, UNWATCHED = (
    f"data-0-orders-{pod}" for pod in ("broker-a-10", "controller-a-0", "broker-a-11")
)
# The second is scraped of all but what it writes.
VOLUME, HALF_SEEN = "vol-0a", "vol-0c"
USED_GIB = {BROKER: 60, CONTROLLER: 5}
# What a second of each counter adds to it.
RATES = {
    "exceeded_iops_seconds": 0.0,
    "exceeded_tp_seconds": 0.25,
    "ec2_exceeded_iops_seconds": 0.0,
    "ec2_exceeded_tp_seconds": 0.0,
    "read_ops": 100.0,
    "write_ops": 900.0,
    "read_bytes": 10.0 * MIB,
    "write_bytes": 90.0 * MIB,
}


def exposition(now: int) -> Iterator[str]:
    """Yield what kubelets and the EBS driver would have been scraped of, in OpenMetrics."""
    hours = range(now - 48 * HOUR, now - HOUR, HOUR)
    minutes = range(now - HOUR, now + 1, MINUTE)
    for name in ("capacity", "available"):
        metric = f"kubelet_volume_stats_{name}_bytes"
        yield f"# TYPE {metric} gauge"
        for cluster, more in (("prod", 0), ("other", 30)):
            for claim, used in USED_GIB.items():
                bytes_ = 99 * GIB if name == "capacity" else (99 - used - more) * GIB
                labels = f'cluster="{cluster}",namespace="kafka",persistentvolumeclaim="{claim}"'
                yield from (f"{metric}{{{labels}}} {bytes_} {at}" for at in (*hours, *minutes))
    for name, rate in RATES.items():
        metric = f"aws_ebs_csi_{name}"
        yield f"# TYPE {metric} counter"
        for volume in (VOLUME, HALF_SEEN):
            if (volume, name) == (HALF_SEEN, "write_bytes"):
                continue
            labels = f'cluster="prod",instance_id="i-1",volume_id="{volume}"'
            yield from (
                f"{metric}_total{{{labels}}} {rate * (at - minutes[0])} {at}" for at in minutes
            )
    yield "# EOF"


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
    build.build(BINARIES["prometheus"])
    home: Path = tmp_path_factory.mktemp("prometheus")
    (home / "scraped.om").write_text("\n".join(exposition(int(now))) + "\n")
    (home / "prometheus.yml").write_text("scrape_configs: []\n")
    blocks = ["tsdb", "create-blocks-from", "openmetrics", "scraped.om", "data"]
    made = subprocess.run(
        [tool_path("promtool"), *blocks], cwd=home, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    pid = os.getpid()
    # Beyond the addresses of twins, and no other worker's.
    listen = f"127.{251 + (pid >> 16) % 4}.{pid >> 8 & 255}.{pid & 255}:9090"
    flags = [f"--web.listen-address={listen}", "--storage.tsdb.path=data"]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [tool_path("prometheus"), "--config.file=prometheus.yml", *flags],
            cwd=home,
            stdout=log,
            stderr=log,
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
    assert series.whole(of)


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
