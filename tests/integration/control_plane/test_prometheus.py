"""A real Prometheus behind the real API server's proxy, asked as λ volumes asks it.

Kubelets with volumes and the EBS driver are what the twin has not: their series are written into
Prometheus's own storage by promtool, two days of room and an hour of load, so nothing is waited
for. Everything from the address in the ClusterSpec to the load of a volume is the real thing.
"""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from core import prometheus_address
from core.errors import StillwaterError
from core.volumes import series
from handlers.adapters.eks import EksApi
from handlers.adapters.prometheus import Prometheus, route
from handlers.adapters.volume_series import PrometheusVolumes
from local import environment
from local.kubernetes import control_plane
from local.kubernetes.client import ApiError
from local.tools import build
from local.tools.build import tool_path
from local.tools.catalogue import BINARIES
from tests.integration.waiting import until

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
GIB, MIB, HOUR, MINUTE = 1024**3, 1024**2, 3600, 60
NAMESPACE, SERVICE, PORT = "monitoring", "prometheus-operated", 9090
ADDRESS = f"http://{SERVICE}.{NAMESPACE}.svc:{PORT}"
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


@pytest.fixture(scope="module")
def listening(plane: Plane, now: float, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Prometheus with those series, on an address of the VPC; return the address."""
    build.build(BINARIES["prometheus"])
    home: Path = tmp_path_factory.mktemp("prometheus")
    (home / "scraped.om").write_text("\n".join(exposition(int(now))) + "\n")
    (home / "prometheus.yml").write_text("scrape_configs: []\n")
    blocks = ["tsdb", "create-blocks-from", "openmetrics", "scraped.om", "data"]
    made = subprocess.run(
        [tool_path("promtool"), *blocks], cwd=home, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    host = f"127.{plane.place.number}.250.209"
    flags = [f"--web.listen-address={host}:{PORT}", "--storage.tsdb.path=data"]
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
                with urllib.request.urlopen(f"http://{host}:{PORT}/-/ready", timeout=5) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        until(ready, "Prometheus is ready")
        yield f"10.{host.removeprefix('127.')}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def service(plane: Plane, listening: str) -> Iterator[None]:
    """The Service before it; its endpoint is written by hand, since no pod is behind it."""
    inside = f"/api/v1/namespaces/{NAMESPACE}/services"
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    behind = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": SERVICE, "labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": "IPv4",
        "ports": [{"port": PORT, "protocol": "TCP"}],
        "endpoints": [{"addresses": [listening], "conditions": {"ready": True}}],
    }
    made: list[tuple[str, dict[str, Any]]] = [
        ("/api/v1/namespaces", _named("Namespace", NAMESPACE)),
        (inside, {**_named("Service", SERVICE), "spec": {"ports": [{"port": PORT}]}}),
        (inside, {**_named("Service", "nobody"), "spec": {"ports": [{"port": PORT}]}}),
        (slices, behind),
    ]
    for path, body in made:
        try:
            plane.api.post(path, body)
        except ApiError as error:
            if error.status != 409:  # a request whose answer was lost
                raise
    yield
    for path, body in reversed(made[1:]):
        plane.api.delete(f"{path}/{body['metadata']['name']}")


def _named(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


@pytest.fixture
def api(plane: Plane, service: None, monkeypatch: pytest.MonkeyPatch) -> EksApi:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", plane.admin.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", plane.admin.secret_key)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", plane.place.url("moto"))
    return EksApi(
        endpoint=plane.place.url("apiserver", "https"),
        ca_pem=control_plane.ca_file(plane.place).read_text(),
        eks_cluster=plane.cluster,
        region=environment.REGION,
    )


@pytest.fixture
def prometheus(api: EksApi) -> Prometheus:
    # Two loaded cores may take longer than a function would wait.
    asked = Prometheus(route(prometheus_address.parse(ADDRESS), api), seconds=60)

    def answers() -> bool:
        try:
            return bool(asked.instant("vector(1)", time.time()))
        except StillwaterError:
            return False

    until(answers, "the API server knows what is behind the Service")
    return asked


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


def test_a_service_without_a_prometheus_is_a_sentence(api: EksApi, now: float) -> None:
    nobody = prometheus_address.parse(f"http://nobody.{NAMESPACE}.svc:{PORT}")
    with pytest.raises(StillwaterError, match="answered 503"):
        Prometheus(route(nobody, api), seconds=60).instant("up", now)
