"""The gate behind a real API server: its certificate, its denials as a drainer reads them, its yes.

Pods and webhook are real, on the shared twin; AWS, Kafka and the ledger are the unit tests' fakes,
so that a test says what they show.
"""

import base64
import datetime as dt
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import urllib3

from core.cluster.operated import operated_cluster
from core.gate import KNOWN, PATH
from handlers.adapters.kubernetes import kafka_pod_in
from handlers.eviction.certificate import WEBHOOKS, Keeper
from handlers.eviction.gate import Gate
from handlers.incidents.observe import Sources
from infra.gate import webhooks
from local.kubernetes.client import Api, ApiError
from local.twin import Twin
from tests.integration.administrator import Administrator, namespace
from tests.integration.gates import ServedGate, served
from tests.integration.waiting import until
from tests.unit.core.gate.test_asked import review
from tests.unit.handlers.fakes import FakeCluster
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.infra.programs import spec

pytestmark = pytest.mark.integration
NAMESPACE = "gate-kafka"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NAME = "stillwater-gate-test"
SECRETS = "/api/v1/namespaces/default/secrets"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}"
# Of its certificate: it still holds, and is to be renewed.
OLD = dt.timedelta(days=70)


class PodsOfTheServer(FakeCluster):
    """The fakes' cluster, with the one pod that is asked about read from the API server."""

    api: Api

    def kafka_pod(self, name: str) -> Any:
        found = Administrator(self.api).find(f"{PODS}/{name}")
        pod = None if found is None else kafka_pod_in(found)
        # Bound to no node there: the twin has none of these, and pods of missing nodes are removed.
        return None if pod is None else replace(pod, node_name=self.pods[pod.node_id].node_name)


@dataclass
class Behind:
    """A gate that an API server asks."""

    api: Api
    station: Station
    gate: ServedGate

    def evict(self, broker: int, **options: Any) -> None:
        name = self.station.cluster.pods[broker].name
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": NAMESPACE},
            **options,
        }
        self.api.post(f"{PODS}/{name}/eviction", body)

    def refused(self, broker: int) -> ApiError:
        with pytest.raises(ApiError) as refusal:
            self.evict(broker)
        return refusal.value

    def gone(self, broker: int) -> bool:
        name = self.station.cluster.pods[broker].name
        return Administrator(self.api).find(f"{PODS}/{name}") is None


def _pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {
                "strimzi.io/cluster": "orders",
                "strimzi.io/pool-name": "broker",
                "strimzi.io/broker-role": "true",
            },
        },
        "spec": {"schedulerName": "nobody", "containers": [{"name": "kafka", "image": "kafka"}]},
    }


WEBHOOK = {
    "name": "evictions.stillwater.dev",
    "clientConfig": {"service": {}},
    "rules": [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods/eviction"],
        }
    ],
    "matchConditions": [
        {"name": "kafkas", "expression": f"request.namespace == '{NAMESPACE}'"},
    ],
    "failurePolicy": "Fail",
    "sideEffects": "NoneOnDryRun",
    "timeoutSeconds": 10,
    "admissionReviewVersions": ["v1"],
}


@pytest.fixture
def behind(twin: Twin) -> Iterator[Behind]:
    """Three brokers' pods, a webhook of its own, and a gate that serves it."""
    station = Station()
    cluster = PodsOfTheServer(station.cluster.world)
    cluster.api = twin.api
    for spare, zone in (("i-0d", "us-east-1a"), ("i-0e", "us-east-1b")):
        cluster.add_instance(spare, zone)
        cluster.add_node(spare)
    station.cluster = cluster
    gate = Gate(
        sources=Sources(cluster, cluster, cluster, station.ledger, station.freezes),
        reception=station.reception,
        forget_readings=lambda: None,
        policy=POLICY,
        namespace=NAMESPACE,
        cluster="orders",
        operators=frozenset(),
        lease_seconds=30,
    )
    with namespace(twin.api, NAMESPACE):
        for pod in cluster.pods.values():
            twin.api.post(PODS, _pod(pod.name))
        with served(twin.api, gate, NAME, [WEBHOOK], dt.datetime.now(dt.UTC) - OLD) as ours:
            yield Behind(twin.api, station, ours)


def test_two_drainers_at_once_and_one_waits_and_is_told_for_whom(behind: Behind) -> None:
    cluster = behind.station.cluster
    # As a drainer reads a budget's refusal: 429, so it asks again; the sentence says for whom.
    lagging = healthy_kafka()
    cluster.kafka = replace(
        lagging, partitions=tuple(replace(p, isr=(10, 20)) for p in lagging.partitions)
    )
    refusal = behind.refused(10)
    assert refusal.status == 429
    assert "partition t-0 would keep 1 in-sync replicas (20) of 3" in str(refusal)
    assert not behind.gone(10)

    cluster.kafka = healthy_kafka()
    behind.evict(10, deleteOptions={"dryRun": ["All"]})
    assert behind.station.ledger.leases() == ()
    behind.evict(10)
    assert behind.gone(10)
    waiting = behind.refused(20)
    assert (waiting.status, "Incident i-0a takes a Kafka node out first" in str(waiting)) == (
        429,
        True,
    )


@pytest.mark.parametrize("path", [PATH, f"{PATH}/guessed"])
def test_a_pod_that_asks_as_if_it_were_the_api_server_gets_nothing(
    behind: Behind, path: str
) -> None:
    """An invented user, an invented request, and a broker's own name: no incident and no lease."""
    names = [pod.name for pod in behind.station.cluster.pods.values()]
    trusted = base64.b64decode(behind.api.get(SECRET)["data"]["ca.crt"]).decode()
    trusting = ssl.create_default_context(cadata=trusted)
    with urllib3.PoolManager(ssl_context=trusting, retries=False) as http:
        for number in range(20):
            invented = review(
                name=names[number % len(names)],
                namespace=NAMESPACE,
                userInfo={"username": "invented"},
            )
            url = f"https://127.0.0.1:{behind.gate.server.config.port}{path}"
            answer = http.request("POST", url, json=invented)
            assert answer.status == 404
    assert behind.station.ledger.open_incidents() == ()
    assert behind.station.ledger.leases() == ()
    assert behind.station.cluster.desired_calls == []
    # The API server itself is admitted, meanwhile.
    behind.evict(10)
    assert behind.gone(10)


def test_the_api_server_takes_the_webhooks_as_they_are_rendered(twin: Twin) -> None:
    cluster = operated_cluster(spec(eviction_gate={"image": "gate:1"}))
    rendered = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "rendered"},
        "webhooks": webhooks(cluster, "kube-system", ["system:serviceaccount:ops:operator"]),
    }
    made = twin.api.post(WEBHOOKS, rendered, fieldValidation="Strict")
    assert len(made["webhooks"]) == 3
    secret = f"{SECRETS}/rendered"
    twin.api.post(SECRETS, {"metadata": {"name": "rendered"}, "type": "Opaque"})
    try:
        # The stack has written no path; the gate adds its own to each.
        keeper = Keeper(
            Administrator(twin.api), secret_path=secret, webhook="rendered", hosts=["gate.svc"]
        )
        keeper.context(dt.datetime.now(dt.UTC))
        asked = [e["clientConfig"] for e in twin.api.get(f"{WEBHOOKS}/rendered")["webhooks"]]
        assert all(e["caBundle"] and e["service"]["name"] for e in asked)
        (path,) = {e["service"]["path"] for e in asked}
        assert keeper.admits(path.removeprefix(f"{PATH}/"))
    finally:
        twin.api.delete(f"{WEBHOOKS}/rendered")
        twin.api.delete(secret)


def test_a_renewed_certificate_is_trusted_before_it_is_shown(behind: Behind) -> None:
    context = behind.gate.server.config.ssl
    assert context is not None
    cluster = behind.station.cluster
    cluster.kafka = None
    before = behind.api.get(SECRET)["data"]
    for _ in range(2):
        behind.gate.keeper.refresh(context, dt.datetime.now(dt.UTC))
        until(
            lambda: "No Kafka broker could be reached" in str(behind.refused(10)), "it is trusted"
        )
    shown = ssl.get_server_certificate(("127.0.0.1", behind.gate.server.config.port))
    stored = base64.b64decode(behind.api.get(SECRET)["data"]["tls.crt"]).decode()
    assert shown == stored
    assert stored != base64.b64decode(before["tls.crt"]).decode()


def test_what_only_looks_like_kafkas_is_not_asked_about_once_the_pools_are_known(
    behind: Behind,
) -> None:
    names = [pod.name for pod in behind.station.cluster.pods.values()]
    keeper = Keeper(
        behind.gate.objects,
        secret_path=SECRET,
        webhook=NAME,
        hosts=["127.0.0.1"],
        pods=lambda: names,
    )
    context = behind.gate.server.config.ssl
    assert context is not None
    keeper.refresh(context, dt.datetime.now(dt.UTC))
    (webhook,) = behind.api.get(f"{WEBHOOKS}/{NAME}")["webhooks"]
    assert [each["name"] for each in webhook["matchConditions"]] == ["kafkas", KNOWN]
    web = _pod("orders-web-0")
    web["metadata"]["labels"] = {"app": "web"}
    behind.api.post(PODS, web)
    behind.gate.server.should_exit = True

    def away() -> bool:
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", behind.gate.server.config.port)) != 0

    until(away, "nobody answers")
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "orders-web-0", "namespace": NAMESPACE},
    }
    # The API server takes a moment to ask by the new condition.
    until(lambda: _evicted(behind.api, eviction), "it leaves without an answer")
    assert "evictions.stillwater.dev" in str(behind.refused(10))


def _evicted(api: Api, eviction: dict[str, Any]) -> bool:
    try:
        api.post(f"{PODS}/{eviction['metadata']['name']}/eviction", eviction)
    except ApiError as error:
        return error.status == 404
    return True
