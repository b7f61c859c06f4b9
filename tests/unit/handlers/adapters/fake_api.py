"""A Kubernetes API for the adapter's tests: answers with lists, remembers what is written."""

import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from handlers.adapters import eks
from handlers.adapters.eks import EksApi
from handlers.adapters.kubernetes import EksNodes


class FakePool:
    """Answers paths with lists, page by page."""

    def __init__(self, pages: dict[str, list[dict[str, Any]]]) -> None:
        self.pages = pages
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.patched: list[tuple[str, Any]] = []
        self.deleted: list[tuple[str, str]] = []
        self.status = 200
        self.posted: list[tuple[str, Any]] = []
        # What a request that is posted is answered with.
        self.said: tuple[int, Any] = (201, {})

    def request(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None = None
    ) -> Any:
        assert headers["Authorization"].startswith("Bearer k8s-aws-v1.")
        parts = urlsplit(url)
        if method == "DELETE":
            uid = json.loads(body or b"")["preconditions"]["uid"]
            self.deleted.append((parts.path, uid))
            return SimpleNamespace(status=self.status, data=b"{}")
        if method == "POST":
            self.posted.append((parts.path, json.loads(body or b"")))
            return SimpleNamespace(status=self.said[0], data=json.dumps(self.said[1]).encode())
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
    monkeypatch.setattr(eks.urllib3, "PoolManager", lambda **_: pool)
    monkeypatch.setattr(eks, "trusting", lambda *_: None)
    return SimpleNamespace(nodes=EksNodes(api(), "kafka", "orders"), pool=pool)


def api() -> EksApi:
    return EksApi(
        endpoint="https://api:6443/", ca_pem="pem", eks_cluster="local-orders", region="us-east-1"
    )


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


def attachment(name: str, node_name: str, attacher: str = "ebs.csi.aws.com") -> dict[str, Any]:
    source = {"persistentVolumeName": f"pv-{name}"}
    spec = {"attacher": attacher, "nodeName": node_name, "source": source}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}
