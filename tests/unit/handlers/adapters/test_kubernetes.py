from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
import urllib3

from core.errors import Conflict, StillwaterError
from core.observations import NodeView, PodView
from handlers.adapters import kubernetes
from handlers.adapters.kubernetes import EksNodes, eks_token


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")


def opened(token: str) -> Any:
    encoded = token.removeprefix("k8s-aws-v1.")
    return urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())


def test_a_token_is_a_presigned_call_to_sts_that_names_the_cluster() -> None:
    token = eks_token("local-orders", "us-east-1")
    assert token.startswith("k8s-aws-v1.")
    assert not token.endswith("=")
    url = opened(token)
    query = parse_qs(url.query)
    # STS itself, though every other client is pointed at AWS_ENDPOINT_URL.
    assert (url.scheme, url.netloc) == ("https", "sts.us-east-1.amazonaws.com")
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert query["X-Amz-Security-Token"] == ["session"]


def test_a_token_in_china_goes_to_its_own_sts() -> None:
    assert opened(eks_token("c", "cn-north-1")).netloc == "sts.cn-north-1.amazonaws.com.cn"


def test_without_credentials_there_is_no_token() -> None:
    class Bare(boto3.Session):
        def get_credentials(self) -> None:  # type: ignore[override]
            return None

    with pytest.raises(StillwaterError, match="give the function a role"):
        eks_token("c", "us-east-1", Bare())


class FakePool:
    """Answers paths with lists, page by page."""

    def __init__(self, pages: dict[str, list[dict[str, Any]]]) -> None:
        self.pages = pages
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.patched: list[tuple[str, Any]] = []
        self.status = 200

    def request(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None = None
    ) -> Any:
        assert headers["Authorization"].startswith("Bearer k8s-aws-v1.")
        parts = urlsplit(url)
        if parts.path not in self.pages:
            return SimpleNamespace(status=404, data=b"{}")
        if method == "PATCH":
            assert headers["Content-Type"] == "application/merge-patch+json"
            self.patched.append((parts.path, json.loads(body or b"")))
            return SimpleNamespace(status=self.status, data=b"{}")
        assert method == "GET"
        query = parse_qs(parts.query)
        self.asked.append((parts.path, query))
        page = int(query.get("continue", ["0"])[0])
        pages = self.pages[parts.path]
        more = {"continue": str(page + 1)} if page + 1 < len(pages) else {}
        answer = {"metadata": more, **pages[page]}
        return SimpleNamespace(status=self.status, data=json.dumps(answer).encode())


def reader(monkeypatch: pytest.MonkeyPatch, pages: dict[str, list[dict[str, Any]]]) -> Any:
    pool = FakePool(pages)
    monkeypatch.setattr(kubernetes.urllib3, "PoolManager", lambda **_: pool)
    monkeypatch.setattr(kubernetes, "trusting", lambda *_: None)
    nodes = EksNodes(
        endpoint="https://api:6443/",
        ca_pem="pem",
        eks_cluster="local-orders",
        region="us-east-1",
        namespace="kafka",
        kafka_cluster="orders",
    )
    return SimpleNamespace(nodes=nodes, pool=pool)


def node(name: str, instance: str, *, ready: str = "True", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {
                "topology.kubernetes.io/zone": "us-east-1a",
                "stillwater.dev/pool": "broker",
            },
        },
        "spec": {"providerID": f"aws:///us-east-1a/{instance}", **spec},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def csi_node(name: str, *drivers: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"drivers": [{"name": d} for d in drivers]}}


def test_nodes_come_with_their_driver_from_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(
        monkeypatch,
        {
            "/api/v1/nodes": [
                {"items": [node("a", "i-1")]},
                {"items": [node("b", "i-2", ready="Unknown", unschedulable=True)]},
                {"items": [{"metadata": {"name": "c"}, "spec": {}}]},
            ],
            "/apis/storage.k8s.io/v1/csinodes": [
                {"items": [csi_node("a", "ebs.csi.aws.com"), csi_node("b", "efs.csi.aws.com")]}
            ],
        },
    )
    where = {"zone": "us-east-1a", "pool": "broker"}
    assert fake.nodes.nodes() == (
        NodeView(
            name="a", instance_id="i-1", ready=True, schedulable=True, csi_ready=True, **where
        ),
        NodeView(
            name="b", instance_id="i-2", ready=False, schedulable=False, csi_ready=False, **where
        ),
        NodeView(
            name="c",
            instance_id=None,
            zone=None,
            pool=None,
            ready=False,
            schedulable=True,
            csi_ready=False,
        ),
    )


def pod(name: str, *, phase: str = "Running", **changes: Any) -> dict[str, Any]:
    labels = {
        "strimzi.io/pool-name": "broker-a",
        "strimzi.io/broker-role": "true",
        "strimzi.io/controller-role": "false",
        **changes.pop("labels", {}),
    }
    return {
        "metadata": {"name": name, "labels": labels, **changes},
        "spec": {"nodeName": "a"},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def test_kafka_pods_are_those_of_a_node_pool_that_still_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operator = pod("orders-entity-operator-1")
    del operator["metadata"]["labels"]["strimzi.io/pool-name"]
    items = [
        pod("orders-broker-a-10"),
        pod("orders-broker-a-11", deletionTimestamp="2026-11-20T10:00:00Z"),
        pod("orders-both-a-20", labels={"strimzi.io/controller-role": "true"}),
        pod("orders-broker-a-12", phase="Failed"),
        operator,
    ]
    path = "/api/v1/namespaces/kafka/pods"
    fake = reader(monkeypatch, {path: [{"items": items}]})

    def seen(name: str, role: str, *, ready: bool) -> PodView:
        node_id = int(name[-2:])
        return PodView(
            name=name,
            node_id=node_id,
            role=role,
            node_name="a",
            ready=ready,
            stopping=not ready,
        )

    assert fake.nodes.kafka_pods() == (
        seen("orders-broker-a-10", "broker", ready=True),
        seen("orders-broker-a-11", "broker", ready=False),
        seen("orders-both-a-20", "combined", ready=True),
    )
    assert fake.pool.asked[0][1]["labelSelector"] == ["strimzi.io/cluster=orders"]


def attachment(volume: str, node_name: str, attacher: str = "ebs.csi.aws.com") -> dict[str, Any]:
    return {
        "metadata": {"name": f"csi-{volume}"},
        "spec": {
            "attacher": attacher,
            "nodeName": node_name,
            "source": {"persistentVolumeName": volume},
        },
    }


def test_attachments_are_ebs_volumes_by_node(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        attachment("pvc-1", "a"),
        attachment("pvc-2", "a"),
        attachment("pvc-3", "b"),
        attachment("efs", "b", "efs.csi.aws.com"),
    ]
    fake = reader(monkeypatch, {"/apis/storage.k8s.io/v1/volumeattachments": [{"items": items}]})
    assert fake.nodes.attachments() == {"a": ("pvc-1", "pvc-2"), "b": ("pvc-3",)}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_kafkas_authorities_are_the_present_one_and_those_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = "/api/v1/namespaces/kafka/secrets/orders-cluster-ca-cert"
    data = {
        "ca.crt": encoded("new"),
        "ca-2026-01-01T00-00-00Z.crt": encoded("old"),
        "ca.p12": encoded("a store"),
        "ca.password": encoded("its key"),
    }
    fake = reader(monkeypatch, {path: [{"data": data}, {}]})
    assert fake.nodes.kafka_authorities() == "old\nnew"
    fake.pool.pages[path] = [{"data": {"ca.p12": "x"}}]
    with pytest.raises(StillwaterError, match="Secret orders-cluster-ca-cert in"):
        fake.nodes.kafka_authorities()


def test_a_certificate_nobody_can_read_is_one_sentence() -> None:
    nodes = EksNodes(
        endpoint="https://api:6443/",
        ca_pem="pem",
        eks_cluster="local-orders",
        region="us-east-1",
        namespace="kafka",
        kafka_cluster="orders",
    )
    with pytest.raises(StillwaterError, match=r"The Kubernetes API's certificate authority is no"):
        nodes.nodes()


def test_a_refusal_says_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {"/apis/storage.k8s.io/v1/volumeattachments": [{"items": None}]})
    assert fake.nodes.attachments() == {}
    fake.pool.status = 403
    with pytest.raises(StillwaterError, match="answered 403 to GET /apis/storage"):
        fake.nodes.attachments()


def test_a_silent_api_server_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {})

    def refuse(*arguments: Any, **named: Any) -> None:
        raise urllib3.exceptions.ProtocolError("Connection aborted.")

    monkeypatch.setattr(fake.pool, "request", refuse)
    with pytest.raises(StillwaterError, match="did not answer GET /apis/storage"):
        fake.nodes.attachments()


NODE_PATH = "/api/v1/nodes/a"
OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}
DEDICATED = {"key": "dedicated", "value": "kafka", "effect": "NoSchedule"}


def read_node(*taints: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    found = node("a", "i-1", taints=list(taints))
    found["metadata"]["resourceVersion"] = "7"
    return {NODE_PATH: [found]}


def test_the_taint_is_added_to_those_a_node_has_in_the_version_it_was_read_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = reader(monkeypatch, read_node(DEDICATED))
    fake.nodes.set_out_of_service("a", "i-1", tainted=True)
    ((path, body),) = fake.pool.patched
    assert path == NODE_PATH
    assert body == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"taints": [DEDICATED, OUT_OF_SERVICE]},
    }


def test_taking_the_taint_off_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, read_node(OUT_OF_SERVICE, DEDICATED))
    fake.nodes.set_out_of_service("a", "i-1", tainted=False)
    assert fake.pool.patched[0][1]["spec"]["taints"] == [DEDICATED]


@pytest.mark.parametrize(
    ("taints", "tainted", "instance_id"),
    [
        pytest.param((OUT_OF_SERVICE,), True, "i-1", id="tainted already"),
        pytest.param((), False, "i-1", id="not tainted"),
        pytest.param((), True, "i-9", id="another instance has the name by now"),
    ],
)
def test_a_node_that_needs_no_change_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
    taints: tuple[dict[str, str], ...],
    tainted: bool,
    instance_id: str,
) -> None:
    fake = reader(monkeypatch, read_node(*taints))
    fake.nodes.set_out_of_service("a", instance_id, tainted=tainted)
    assert fake.pool.patched == []


def test_a_node_that_is_gone_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {})
    fake.nodes.set_out_of_service("a", "i-1", tainted=True)
    fake.nodes.mark_spare("a", None)


def test_a_node_changed_meanwhile_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, read_node())
    fake.pool.status = 409
    with pytest.raises(Conflict, match="changed by somebody else"):
        fake.nodes.mark_spare("a", "i-0a")


def test_a_spare_says_for_whom_it_is_kept_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, read_node())
    fake.nodes.mark_spare("a", "i-0a")
    fake.nodes.mark_spare("a", None)
    disabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
    assert [body["metadata"]["annotations"] for _, body in fake.pool.patched] == [
        {disabled: "true", "stillwater.dev/spare-for": "i-0a"},
        {disabled: None, "stillwater.dev/spare-for": None},
    ]


def budget(selector: dict[str, Any], allowed: int = 0) -> dict[str, Any]:
    return {
        "metadata": {"name": "orders-kafka"},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.mark.parametrize(
    ("selector", "covered"),
    [
        ({"matchLabels": {"strimzi.io/cluster": "orders"}}, True),
        ({"matchLabels": {"strimzi.io/cluster": "another"}}, False),
        ({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
        (
            {
                "matchExpressions": [
                    {"key": "strimzi.io/cluster", "operator": "In", "values": ["orders"]}
                ]
            },
            True,
        ),
        (
            {
                "matchExpressions": [
                    {"key": "strimzi.io/cluster", "operator": "NotIn", "values": ["orders"]}
                ]
            },
            False,
        ),
        ({}, True),
    ],
)
def test_a_budget_is_known_with_the_pods_it_speaks_for(
    monkeypatch: pytest.MonkeyPatch, selector: dict[str, Any], covered: bool
) -> None:
    namespace = "/namespaces/kafka"
    pod = {"metadata": {"name": "orders-broker-a-10", "labels": {"strimzi.io/cluster": "orders"}}}
    fake = reader(
        monkeypatch,
        {
            f"/apis/policy/v1{namespace}/poddisruptionbudgets": [{"items": [budget(selector)]}],
            "/api/v1/namespaces/kafka/pods": [{"items": [pod]}],
        },
    )
    (found,) = fake.nodes.budgets()
    assert (found.name, found.disruptions_allowed) == ("orders-kafka", 0)
    assert ("orders-broker-a-10" in found.pods) is covered
