"""A real Prometheus as a pod of the shared cluster, behind a Service that functions may ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from core.settings.prometheus import PrometheusService
from infra.functions import definition
from local.kubernetes.client import ApiError
from local.kubernetes.images import PROCESS_IMAGE
from tests.integration.cluster import Cluster

PATIENCE_SECONDS = 180.0
RBAC = "apis/rbac.authorization.k8s.io/v1"


@contextmanager
def serve_prometheus(
    cluster: Cluster, service: PrometheusService, command: Sequence[str]
) -> Iterator[None]:
    """Run a Prometheus in a namespace of its own, for the block; its Service selects the pod."""
    space = f"/api/v1/namespaces/{service.namespace}"
    labels = {"app.kubernetes.io/name": "prometheus"}
    _make(cluster, "/api/v1/namespaces", {"metadata": {"name": service.namespace}})
    try:
        # Without its service account no pod is admitted.
        account = f"{space}/serviceaccounts/default"
        cluster.until(lambda: _there(cluster, account), "the namespace is complete")
        _make(cluster, f"{space}/pods", _pod(service, labels, command))
        ports = [{"name": "http-web", "port": service.port}]
        spec = {"selector": labels, "ports": ports}
        _make(cluster, f"{space}/services", {"metadata": {"name": service.name}, "spec": spec})
        cluster.until(
            lambda: _answers(cluster, service), "the Service leads to Prometheus", PATIENCE_SECONDS
        )
        yield
    finally:
        cluster.twin.api.delete(space)
        cluster.until(lambda: not _there(cluster, space), "the namespace is gone", PATIENCE_SECONDS)


@contextmanager
def allow_functions(cluster: Cluster, service: PrometheusService, users: str) -> Iterator[None]:
    """Allow a group of functions what infra.functions does where a spec names this Service."""
    role_name = f"stillwater-{users}"
    (rule,) = definition.may_get("services/proxy", [service.resource_name])
    metadata = {"name": role_name}
    role = {
        "metadata": metadata,
        "rules": [
            {
                "apiGroups": [rule.api_group],
                "resources": rule.resources,
                "resourceNames": rule.names,
                "verbs": rule.verbs,
            }
        ],
    }
    binding = {
        "metadata": metadata,
        "roleRef": {"apiGroup": definition.API_GROUP, "kind": "Role", "name": role_name},
        "subjects": [
            {"apiGroup": definition.API_GROUP, "kind": "Group", "name": f"stillwater:{users}"}
        ],
    }
    space = f"/{RBAC}/namespaces/{service.namespace}"
    _make(cluster, f"{space}/roles", role)
    _make(cluster, f"{space}/rolebindings", binding)
    try:
        yield
    finally:
        for kind in ("rolebindings", "roles"):
            cluster.twin.api.delete(f"{space}/{kind}/{role_name}")


def _pod(
    service: PrometheusService, labels: Mapping[str, str], command: Sequence[str]
) -> dict[str, Any]:
    # A pod that reports 10.N.x.y listens on 127.N.x.y (docs/twin.md).
    listen = f'exec "$0" "$@" --web.listen-address="127.${{POD_IP#10.}}:{service.port}"'
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {
        "name": "prometheus",
        "image": PROCESS_IMAGE,
        "command": ["sh", "-c", listen, *command],
        "env": [address],
        "ports": [{"containerPort": service.port}],
        "readinessProbe": {
            "httpGet": {"path": "/-/ready", "port": service.port},
            "periodSeconds": 1,
            "timeoutSeconds": 10,
            "failureThreshold": 60,
        },
    }
    return {
        "metadata": {"name": "prometheus-0", "labels": labels},
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
        },
    }


def _make(cluster: Cluster, path: str, body: Mapping[str, Any]) -> None:
    try:
        cluster.twin.api.post(path, body)
    except ApiError as error:
        if error.status != 409:  # a request whose answer was lost
            raise


def _there(cluster: Cluster, path: str) -> bool:
    try:
        cluster.twin.api.get(path)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True


def _answers(cluster: Cluster, service: PrometheusService) -> bool:
    proxy = f"/api/v1/namespaces/{service.namespace}/services/{service.resource_name}/proxy"
    try:
        return bool(cluster.twin.api.get(f"{proxy}/api/v1/query", query="1")["status"] == "success")
    except ApiError as error:
        if error.status in (404, 500, 502, 503):  # no pod of it is ready yet
            return False
        raise
