"""What λ volumes reads, by its source, and what Prometheus answers and refuses."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from kafka.protocol.admin import DescribeLogDirsResponse

from core.ground.errors import StillwaterError
from core.settings.prometheus import (
    PrometheusService,
    PrometheusWorkspace,
    parse_prometheus_address,
)
from core.volumes.sizing import Gp3, Performance
from handlers.adapters.claims import FIELD_MANAGER, EksClaims
from handlers.adapters.prometheus import Prometheus, Signed, ThroughApiServer, route
from handlers.adapters.volumes import CloudWatchLoads, FillView, PrometheusVolumes, _fills, load
from tests.fake_kafka import FakeKafka
from tests.unit.kafka_in_memory import FakeClient

GIB = 1024**3
POOL: dict[str, Any] = {
    "metadata": {
        "name": "broker-a",
        "resourceVersion": "7",
        "annotations": {"stillwater.dev/freeze-volumes": "audit"},
    },
    "spec": {
        "storage": {
            "type": "jbod",
            "volumes": [
                {
                    "id": 0,
                    "type": "persistent-claim",
                    "size": "100Gi",
                    "volumeAttributesClass": "gp3-3000-125",
                    "deleteClaim": False,
                },
                {"id": 1, "type": "persistent-claim", "size": "10Gi"},
            ],
        }
    },
}
CLAIM: dict[str, Any] = {
    "metadata": {"name": "data-0-orders-broker-a-10",
        "labels": {"strimzi.io/pool-name": "broker-a"}},
    "spec": {"volumeName": "pv-1", "volumeAttributesClassName": "gp3-6000-250",
        "resources": {"requests": {"storage": "150Gi"}}},
    "status": {"capacity": {"storage": "100Gi"}, "currentVolumeAttributesClassName": "gp3-3000-125",
        "modifyVolumeStatus": {"status": "Pending",
            "targetVolumeAttributesClassName": "gp3-6000-250"},
        "conditions": [{"type": "FileSystemResizePending", "status": "True", "message": "waiting"},
            {"type": "Resizing", "status": "True"}]},
}  # fmt: skip
VOLUME = {
    "metadata": {"name": "pv-1"},
    "spec": {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0a"}},
}


class FakeApi:
    """An API server of four lists and one Kafka that writes down what is applied."""

    def __init__(self, *warnings: dict[str, Any]) -> None:
        self.applied: list[tuple[str, dict[str, Any], str]] = []
        self._warnings = warnings

    def find(self, path: str) -> dict[str, Any]:
        assert path == "/apis/kafka.strimzi.io/v1/namespaces/kafka/kafkas/orders"
        return {"metadata": {"name": "orders"}, "status": {"conditions": list(self._warnings)}}

    def list(self, path: str, **_: str) -> Iterator[dict[str, Any]]:
        names = ("gp3-3000-125", "io2-fast", "gp3-6000-250")
        answers: Mapping[str, Any] = {
            "kafkanodepools": [POOL],
            "persistentvolumeclaims": [CLAIM],
            "persistentvolumes": [VOLUME],
            "volumeattributesclasses": [{"metadata": {"name": name}} for name in names],
        }
        yield from answers[path.rpartition("/")[2]]

    def apply(self, path: str, body: dict[str, Any], *, manager: str) -> dict[str, Any]:
        self.applied.append((path, body, manager))
        return body


def test_a_pool_whose_storage_strimzi_ignores_is_read_with_strimzis_sentence() -> None:
    def ignored(pool: str) -> tuple[str, str]:
        sentence = f"The desired storage in the KafkaNodePool resource kafka/{pool} is ignored."
        told = {"type": "Warning", "status": "True", "reason": "KafkaStorage", "message": sentence}
        (found,) = EksClaims(FakeApi(told), "kafka", "orders").pools()
        return found.ignored, sentence

    assert len(set(ignored("broker-a"))) == 1
    # Another pool's name begins alike.
    assert ignored("broker-ab")[0] == ""


def test_pools_and_claims_are_read_with_what_is_wrong_and_classes_that_are_ours() -> None:
    claims = EksClaims(FakeApi(), "kafka", "orders")
    assert claims.classes() == {Performance(), Performance(6000, 250)}
    (pool,) = claims.pools()
    assert pool.volumes == {0: Gp3(100, Performance())}
    assert (pool.version, pool.frozen) == ("7", "audit")
    (claim,) = claims.claims()
    assert (claim.pod, claim.number, claim.volume_id) == ("orders-broker-a-10", 0, "vol-0a")
    assert (claim.requested_gib, claim.given_gib) == (150, 100)
    assert [t.kind for t in claim.troubles] == ["class-missing", "file-system-pending"]


def test_a_pool_is_changed_in_the_version_it_was_read_and_keeps_the_rest() -> None:
    api = FakeApi()
    reader = EksClaims(api, "kafka", "orders")
    (pool,) = reader.pools()
    reader.ask(pool, {0: Gp3(150, Performance(6000, 250))})
    ((path, body, manager),) = api.applied
    assert path == "/apis/kafka.strimzi.io/v1/namespaces/kafka/kafkanodepools/broker-a"
    assert manager == FIELD_MANAGER
    assert body["metadata"] == {"name": "broker-a", "resourceVersion": "7"}
    first, second = body["spec"]["storage"]["volumes"]
    assert first == {
        **POOL["spec"]["storage"]["volumes"][0],
        "size": "150Gi",
        "volumeAttributesClass": "gp3-6000-250",
    }
    assert second == POOL["spec"]["storage"]["volumes"][1]


LOGS = [("t", [(0, 5, 0, False), (1, 7, 0, False)])]
DATA = "/var/lib/kafka/data-"


class Telling(FakeClient):
    """Broker 10, with two volumes that tell, one that failed and a directory elsewhere."""

    def __init__(self, error: int = 0) -> None:
        super().__init__(FakeKafka(topics={}, brokers={10: False}, voters={0: 0}, leader=0))
        self.error = error

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> Iterator[Any]:
        assert [broker for broker, _ in requests] == [10]
        directories = [
            (0, f"{DATA}0/kafka-log10", LOGS, 99 * GIB, 40 * GIB),
            (0, f"{DATA}1/kafka-log10", LOGS, -1, -1),
            (56, f"{DATA}2/kafka-log10", [], -1, -1),
            (0, "/var/lib/elsewhere", LOGS, -1, -1),
        ]
        told = [] if self.error else directories
        said = DescribeLogDirsResponse(throttle_time_ms=0, error_code=self.error, results=told)
        yield DescribeLogDirsResponse.decode(bytes(said.encode(version=4)), version=4)


def test_brokers_tell_how_full_their_directories_are() -> None:
    found = _fills(Telling())
    assert found == {(10, 0): FillView(12, 99 * GIB, 40 * GIB), (10, 1): FillView(12)}
    # The volume's own file system; what is missing from its total is used by itself.
    assert found[10, 0].used_bytes(100 * GIB) == 60 * GIB
    # A file system of another size is not the volume's.
    assert found[10, 0].used_bytes(10 * GIB) == 12
    assert found[10, 1].used_bytes(100 * GIB) == 12


def test_a_fill_that_kafka_withholds_names_the_right_instead_of_an_empty_disk() -> None:
    with pytest.raises(StillwaterError, match="grant the functions' user Describe on the cluster"):
        _fills(Telling(error=31))


def test_a_load_is_the_highest_minute_and_the_share_of_minutes_beyond_a_limit() -> None:
    minutes = [60.0 * n for n in range(20)]
    seen = load(
        {
            "read_ops": dict.fromkeys(minutes, 600.0),
            "write_ops": {**dict.fromkeys(minutes, 0.0), 60.0: 1200.0},
            "read_bytes": dict.fromkeys(minutes, 0.0),
            "write_bytes": dict.fromkeys(minutes, 6000.0),
            "iops_exceeded": dict.fromkeys(minutes[:3], 1.0) | dict.fromkeys(minutes[3:], 0.0),
            "rate_exceeded": dict.fromkeys(minutes[:5], 1.0) | dict.fromkeys(minutes[5:], 0.0),
        },
        {},
    )
    assert (seen.iops_p999, seen.bytes_per_s_p999) == (30.0, 100.0)
    assert seen.volume_exceeded_share == 0.25
    assert seen.instance_exceeded_share is None


class FakeCloudWatch:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.silent = False

    def get_metric_data(self, **query: Any) -> dict[str, Any]:
        self.asked.append(query)
        if self.silent:
            return {"MetricDataResults": []}
        results = [
            {"Id": each["Id"], "Timestamps": [datetime.fromtimestamp(60, UTC)], "Values": [1.0]}
            for each in query["MetricDataQueries"]
        ]
        if "NextToken" in query or len(results) < 2:
            return {"MetricDataResults": results[1:]}
        return {"MetricDataResults": results[:1], "NextToken": "more"}


def test_cloudwatch_is_asked_500_metrics_at_a_time_page_after_page() -> None:
    fake = FakeCloudWatch()
    loads = CloudWatchLoads("us-east-1", client=fake)
    found = loads.loads({f"vol-{n}": "i-0a" for n in range(100)}, 7200.0)
    assert [len(q["MetricDataQueries"]) for q in fake.asked] == [500, 500, 102, 102]
    assert len(found) == 100
    assert found["vol-0"].instance_exceeded_share is not None


def test_a_whole_answer_of_cloudwatch_serves_the_next_looks_at_the_same_volumes() -> None:
    fake = FakeCloudWatch()
    loads = CloudWatchLoads("us-east-1", client=fake)

    def asked(now: float, **volumes: str) -> bool:
        before = len(fake.asked)
        loads.loads(volumes, now)
        return len(fake.asked) > before

    assert [asked(at, a="i-0a") for at in (7200, 7500, 7800, 8100)] == [True, False, False, True]
    assert asked(8160, a="i-0b")  # on another machine
    assert asked(8170, a="i-0b", b="i-0c")
    fake.silent = True
    assert [asked(at, a="i-0a") for at in (9000, 9300)] == [True, True]  # one with gaps is not kept


NOW, GIB = 1_800_000_000.0, 1024**3
DATA_0 = "data-0-orders-broker-a-10"


class Said:
    """A route that answers by a function of the query, and remembers what it was asked."""

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self._answer = answer
        self.asked: list[tuple[str, dict[str, str], float]] = []

    def get(self, path: str, seconds: float) -> str:
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append((parts.path, query, seconds))
        answer = self._answer(query["query"])
        return answer if isinstance(answer, str) else json.dumps(answer)


def vector(*series: tuple[dict[str, str], str]) -> dict[str, Any]:
    result = [{"metric": labels, "value": [NOW, value]} for labels, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def matrix(labels: dict[str, str], *values: tuple[float, str]) -> dict[str, Any]:
    result = [{"metric": labels, "values": [list(each) for each in values]}]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def test_a_query_is_a_get_at_a_moment_within_a_bound() -> None:
    way = Said(lambda _: vector(({"a": "b"}, "1.5")))
    (series,) = Prometheus(way, seconds=3).instant("up", NOW)
    assert (series.labels, series.points) == ({"a": "b"}, {NOW: 1.5})
    query = {"query": "up", "timeout": "3s", "time": "1800000000.000"}
    assert way.asked == [("/api/v1/query", query, 3)]


def test_a_range_has_its_begin_end_and_step_and_no_value_that_is_none() -> None:
    way = Said(lambda _: matrix({}, (NOW - 60, "1"), (NOW, "2")))
    (series,) = Prometheus(way).query_range("up", NOW - 60, NOW, 60)
    assert series.points == {NOW - 60: 1.0, NOW: 2.0}
    assert way.asked[0][1]["step"] == "60"
    way = Said(lambda _: matrix({}, (NOW - 60, "NaN"), (NOW, "+Inf")))
    assert Prometheus(way).query_range("up", NOW - 60, NOW, 60) == ()


def test_a_range_of_too_many_values_is_refused_before_it_is_asked() -> None:
    way = Said(lambda _: vector())
    with pytest.raises(StillwaterError, match="make the step longer"):
        Prometheus(way).query_range("up", NOW - 1e6, NOW, 60)
    assert way.asked == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": "error", "error": "query timed out"}, "query timed out"),
        ("<html>log in</html>", "not from a Prometheus"),
        ({"status": "success"}, "not from a Prometheus"),
    ],
)
def test_what_is_no_answer_is_a_sentence(answer: Any, words: str) -> None:
    with pytest.raises(StillwaterError, match=words):
        Prometheus(Said(lambda _: answer)).instant("up", NOW)


def test_a_service_is_asked_through_the_api_servers_proxy() -> None:
    class Api:
        def text(self, path: str, seconds: float) -> str:
            return f"{path} within {seconds}"

    address = parse_prometheus_address("https://thanos.metrics.svc:10902/query")
    assert isinstance(address, PrometheusService)
    said = ThroughApiServer(Api(), address).get("/api/v1/query?query=up", 3)
    assert said == (
        "/api/v1/namespaces/metrics/services/https:thanos:10902/proxy/query/api/v1/query?query=up"
        " within 3"
    )


def test_a_workspace_is_asked_under_its_regions_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    address = parse_prometheus_address(
        "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-0a1b2c3d"
    )
    assert isinstance(address, PrometheusWorkspace)
    assert isinstance(route(address, None), Signed)
    way = Signed(address, boto3.Session("AKIDEXAMPLE", "secret", "token"))
    sent: dict[str, Any] = {}

    class Answer:
        status, data = 200, b"{}"

    def request(method: str, url: str, **options: Any) -> Answer:
        sent.update(method=method, url=url, **options)
        return Answer()

    monkeypatch.setattr(way._pool, "request", request)
    assert way.get("/api/v1/query?query=up%20%3E%200", 3) == "{}"
    expected = ("GET", f"{address.url}/api/v1/query?query=up%20%3E%200")
    assert (sent["method"], sent["url"]) == expected
    assert "/eu-west-1/aps/aws4_request" in sent["headers"]["Authorization"]
    assert "secret" not in str(sent["headers"])


def of_room(capacity: float | None, available: float | None) -> Said:
    def answer(query: str) -> Any:
        value = capacity if "capacity" in query else available
        labels = {"persistentvolumeclaim": DATA_0}
        return vector(*([] if value is None else [(labels, repr(value))]))

    return Said(answer)


def volumes(way: Said) -> PrometheusVolumes:
    return PrometheusVolumes(Prometheus(way), "kafka", "orders", {"cluster": "prod"})


def test_a_claims_fill_is_the_file_systems_or_unknown_and_named_and_never_empty() -> None:
    way = of_room(99.0 * GIB, 40.0 * GIB)
    told = volumes(way).fills([DATA_0], NOW)
    # What the file system keeps for itself is gone as well.
    assert told.found[DATA_0].used_bytes(100 * GIB) == 60 * GIB
    assert told.gaps == ()
    assert all('cluster="prod"' in query["query"] for _, query, _ in way.asked)
    told = volumes(of_room(99.0 * GIB, None)).fills([DATA_0], NOW)
    assert told.found == {}
    (gap,) = told.gaps
    assert gap.startswith(f"Prometheus has no kubelet_volume_stats_available_bytes of {DATA_0}; ")


def test_many_volumes_are_asked_in_queries_of_a_hundred() -> None:
    way = Said(lambda _: {"status": "success", "data": {"resultType": "matrix", "result": []}})
    volumes(way).loads([f"vol-{n}" for n in range(250)], NOW)
    assert len(way.asked) == 8 * 3
    assert max(len(query["query"]) for _, query, _ in way.asked) < 2000
