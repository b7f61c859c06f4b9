"""Connect workers as the twin's operator renders them; names as its clients will look them up."""

from __future__ import annotations

import copy
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from core.cluster import Connect
from core.ground.errors import InvalidInput
from infra.kafka.connect import connect_spec
from local.kafka.run import in_place, settings
from local.kubernetes import dns, strimzi_connect
from local.kubernetes.client import ApiError
from local.kubernetes.strimzi_connect import config_map, pod, read, surroundings
from local.kubernetes.strimzi_resources import REVISION
from local.kubernetes.strimzi_roller import reasons_to_restart
from tests.unit.infra.programs import spec

if TYPE_CHECKING:
    from local.kubernetes.client import Api
    from local.kubernetes.strimzi_objects import OperatorObjects

ANONYMOUS = {"tls": False, "authentication": "none", "anonymous_clients": True}
PLAIN = {"internal_listener": ANONYMOUS}


def resource(**changed: Any) -> dict[str, Any]:
    described = spec(kafka=PLAIN)
    rendered = connect_spec(described, Connect(replicas=2))
    metadata = {"name": "orders-connect", "namespace": "kafka", "uid": "uid-1"}
    return {"metadata": metadata, "spec": {**rendered, **changed}}


def configured(connect: dict[str, Any]) -> dict[str, str]:
    workers = read(connect)
    return settings(config_map(workers, workers.pods[0])["data"]["connect.properties"])


def worker(connect: dict[str, Any]) -> dict[str, Any]:
    workers = read(connect)
    name = workers.pods[0]
    return pod(workers, name, config_map(workers, name))


def test_a_worker_reads_from_the_replica_in_its_nodes_zone() -> None:
    config = configured(resource())
    assert config["consumer.client.rack"] == "${STRIMZI_RACK_ID}"
    text = in_place("consumer.client.rack=${STRIMZI_RACK_ID}\n", "127.0.0.9", "us-east-1b")
    assert settings(text)["consumer.client.rack"] == "us-east-1b"
    assert "consumer.client.rack" not in configured(resource(rack=None))


def test_a_probe_that_the_resource_does_not_time_has_strimzis_own_timings() -> None:
    (container,) = worker(resource(readinessProbe=None))["spec"]["containers"]
    assert container["readinessProbe"]["initialDelaySeconds"] == 60
    assert container["readinessProbe"]["timeoutSeconds"] == 5


def test_its_services_and_budget_find_its_pods_and_leave_one_standing() -> None:
    workers = read(resource())
    by_kind: dict[tuple[str, str], Any] = {
        (item["kind"], item["metadata"]["name"]): item["spec"]
        for item in surroundings(workers)
        if "spec" in item
    }
    labels = worker(resource())["metadata"]["labels"].items()
    api = by_kind["Service", "orders-connect-connect-api"]
    assert api["selector"].items() <= labels
    headless = by_kind["Service", "orders-connect-connect"]
    assert (headless["clusterIP"], headless["publishNotReadyAddresses"]) == ("None", True)
    budget = by_kind["PodDisruptionBudget", "orders-connect-connect"]
    assert budget["minAvailable"] == 1
    assert budget["selector"]["matchLabels"].items() <= labels


def test_a_changed_setting_is_another_revision() -> None:
    changed = copy.deepcopy(resource())
    changed["spec"]["config"]["offset.flush.interval.ms"] = 5
    first, other = worker(resource()), worker(changed)
    annotations = [p["metadata"]["annotations"][REVISION] for p in (first, other)]
    assert annotations[0] != annotations[1]


def test_what_it_cannot_run_is_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="authentication is custom"):
        read(resource(authentication={"type": "custom"}))


def test_workers_and_their_connectors_show_the_certificate_of_their_user() -> None:
    metadata = {"name": "c", "namespace": "kafka", "uid": "u"}
    workers = read({"metadata": metadata, "spec": connect_spec(spec(), Connect())})
    config = settings(config_map(workers, "c-connect-0")["data"]["connect.properties"])
    for prefix in ("", "producer.", "consumer.", "admin."):
        assert config[f"{prefix}security.protocol"] == "SSL"
        assert config[f"{prefix}ssl.keystore.location"] == "/opt/kafka/connect-certs.pem"
    rendered = pod(workers, "c-connect-0", {"data": {}})
    volumes = {v["name"]: v.get("secret") for v in rendered["spec"]["volumes"]}
    assert volumes["cluster-ca-certs"] == {"secretName": "orders-cluster-ca-cert"}
    # The user's Secret also holds its authority, which is no part of what it shows.
    shown = volumes["connect-certs"]
    assert [item["key"] for item in shown["items"]] == ["user.crt", "user.key"]
    renewed = pod(workers, "c-connect-0", {"data": {}}, "another digest")
    assert reasons_to_restart(renewed, rendered)


def test_a_workers_password_stands_in_no_config_map() -> None:
    told = resource(
        authentication={
            "type": "scram-sha-512",
            "username": "workers",
            "passwordSecret": {"secretName": "workers", "password": "password"},
        }
    )
    config = settings(config_map(read(told), "c-connect-0")["data"]["connect.properties"])
    assert config["security.protocol"] == "SASL_PLAINTEXT"
    assert "${directory:/opt/kafka/connect-certs:password}" in config["sasl.jaas.config"]


def test_workers_whose_user_is_still_being_made_are_looked_at_again_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody tells the operator of a Secret: it would come to it with the next full round."""
    waiting = resource()
    waiting["spec"] |= {"tls": {"trustedCertificates": [{"secretName": "authority"}]}}

    class Watched:
        def __init__(self, _api: object, path: str, *_: object, **__: object) -> None:
            self.objects = {"one": waiting} if path.endswith("kafkaconnects") else {}

    class Holding:
        said = ""

        def get(self, path: str) -> dict[str, Any]:
            raise ApiError(404, "NotFound", path)

        def report(self, _item: object, _path: str, condition: dict[str, str]) -> None:
            self.said = condition["message"]

    monkeypatch.setattr(strimzi_connect, "Informer", Watched)
    api = Holding()
    connects = strimzi_connect.Connects(
        cast("Api", api), cast("OperatorObjects", api), lambda *_: None
    )
    assert connects.reconcile_all()
    assert api.said == "Waiting for Secret authority."


# Names

HOSTS = "127.0.0.1 localhost\n127.44.1.5 a.kafka.svc b.kafka.svc\n127.44.1.6 a.kafka.svc\n"


def test_only_names_of_the_cluster_are_answered_from_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_args, **_named: asked.append(host))
    dns.install(tmp_path / "hosts")
    look_up: Any = socket.getaddrinfo
    look_up("a.kafka.svc", 9091)
    (tmp_path / "hosts").write_text(HOSTS)
    look_up("a.kafka.svc", 9091)
    look_up("example.org", 443)
    assert asked == ["a.kafka.svc", "127.44.1.5", "example.org"]
