"""λ health as a caller meets it on the shared cluster, and told of workers its spec has not."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich.console import Console

from cli import health as command
from core.health.verdict import PartKind
from tests.integration.cluster import Cluster
from tests.integration.retold import retell

# An examination's own bound, and what a cold start on a busy machine adds to it.
BOUND_SECONDS = 14.0
COLD_SECONDS = 20.0
ROLE = "stillwater-health"
NAMESPACE = "/apis/rbac.authorization.k8s.io/v1/namespaces"


def name_of(cluster: Cluster) -> str:
    return str(cluster.outputs["functions"]["health"])


def invoke(cluster: Cluster) -> tuple[int, Mapping[str, Any]]:
    """Return the status code and the body, as any caller in the account gets them."""
    answer = cluster.twin.aws("lambda").invoke(FunctionName=name_of(cluster))
    payload = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, payload
    return payload["statusCode"], json.loads(payload["body"])


def parts(body: Mapping[str, Any], kind: PartKind) -> dict[str, dict[str, Any]]:
    """Return the parts of one kind by name."""
    return {part["name"]: part for part in body["parts"] if part["kind"] == kind}


def show(status_code: int, body: Mapping[str, Any]) -> None:
    """Print the verdicts as the command does; pytest shows them with -rP, or where a test fails."""
    Console(width=160).print(command.page(command.Examined(status_code, body)))


def told_of_workers(cluster: Cluster, count: int) -> AbstractContextManager[None]:
    """Have λ health look at Connect workers, as if the spec had asked for them."""
    return retell(cluster, name_of(cluster), connect_workers=count, connect_startup_seconds=120)


@contextmanager
def allowed_to_ask(cluster: Cluster, pod: str, port: int) -> Iterator[None]:
    """Let λ health GET one port of one pod, as its role names those of workers."""
    path = f"{NAMESPACE}/{cluster.outputs['namespace']}/roles/{ROLE}"
    before = cluster.twin.api.get(path)["rules"]
    named = {
        "apiGroups": [""],
        "resources": ["pods/proxy"],
        "resourceNames": [f"{pod}:{port}"],
        "verbs": ["get"],
    }
    try:
        cluster.twin.api.merge(path, {"rules": [*before, named]})
        yield
    finally:
        cluster.twin.api.merge(path, {"rules": before})
