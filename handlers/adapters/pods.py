"""The pods of a Kafka cluster and of its Connect workers: state, metrics, and a worker's own word.

Metrics and workers are asked through the API server's proxy, within a bound. A function may reach
the API server already, so nothing new is opened in the network: RBAC lets it `get` the proxy of
each pod by name and port, and of nothing else (ADR 0012). Pods are asked side by side, and one that
is frozen costs its own timeout and nobody else's.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from core.ground import naming
from core.ground.constants import CONNECT_REST_PORT
from core.ground.errors import StillwaterError
from core.ground.fields import epoch
from core.ground.naming import node_id_of_pod
from core.health import node
from core.health.connect import Failure, RestResponse, next_path
from core.health.node import NodeMetrics
from core.health.pods import PodSeen, is_hopeless
from handlers.adapters.calls import known_shape
from handlers.adapters.eks import EksApi

Json = dict[str, Any]
# How Strimzi calls the container in which Kafka runs, and the one of a Connect worker.
MAIN = ("kafka", "-connect")


class EksPods:
    """Reads them from an EKS cluster, in one list."""

    def __init__(self, api: EksApi, namespace: str, kafka_cluster: str) -> None:
        self._api, self._namespace, self._cluster = api, namespace, kafka_cluster

    @known_shape("The Kubernetes API")
    def pods(self) -> tuple[PodSeen, ...]:
        """Return the pods of Kafka's nodes and of Connect's workers."""
        both = f"{self._cluster},{naming.connect(self._cluster)}"
        items = self._api.list(
            f"/api/v1/namespaces/{quote(self._namespace)}/pods",
            labelSelector=f"{naming.CLUSTER_LABEL} in ({both})",
        )
        return tuple(pod for item in items if (pod := pod_seen(item)) is not None)


def pod_seen(item: Json) -> PodSeen | None:
    """Read a pod of a Kafka node or a Connect worker; any other, or one that is over, is None."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    status = item.get("status") or {}
    labels = metadata.get("labels") or {}
    kafka = naming.POOL_LABEL in labels
    if not (kafka or labels.get(naming.KIND_LABEL) == naming.CONNECT_KIND):
        return None
    if status.get("phase") in {"Succeeded", "Failed"}:
        return None
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    containers = status.get("containerStatuses") or ()
    container = _main(containers)
    state: Json = container.get("state") or {}
    created = epoch(metadata.get("creationTimestamp"))
    running = state.get("running")
    everybody = (*(status.get("initContainerStatuses") or ()), *containers)
    stuck = next((each for each in everybody if _is_stuck(each)), container)
    gates = [gate["conditionType"] for gate in spec.get("readinessGates") or ()]
    return PodSeen(
        name=metadata["name"],
        node_id=naming.node_id_of_pod(metadata["name"]) if kafka else None,
        created_at=created,
        node_name=spec.get("nodeName"),
        unscheduled=conditions.get("PodScheduled", {}).get("message") or "",
        ready=_holds(conditions, "Ready"),
        containers_ready=_holds(conditions, "ContainersReady"),
        gates={gate: _holds(conditions, gate) for gate in gates},
        started_at=None if running is None else _began(running, created),
        waiting=_reason(stuck),
        stuck=_is_stuck(stuck),
        beside="" if stuck is container else str(stuck.get("name") or ""),
        restarts=stuck.get("restartCount", 0),
        stopping="deletionTimestamp" in metadata,
        unready_since=_unready_since(conditions),
    )


def _main(containers: Sequence[Json]) -> Json:
    """Return Kafka's or Connect's own container: a mesh's proxy may stand before it."""
    by_name = (each for each in containers if str(each.get("name")).endswith(MAIN))
    return next(by_name, next(iter(containers), {}))


def _is_stuck(container: Json) -> bool:
    waiting = (container.get("state") or {}).get("waiting") or {}
    return is_hopeless(str(waiting.get("reason") or ""))


def _reason(container: Json) -> str:
    """Return why a container does not run, in the kubelet's word."""
    state = container.get("state") or {}
    return str((state.get("waiting") or state.get("terminated") or {}).get("reason") or "")


def _holds(conditions: Json, kind: str) -> bool:
    return bool(conditions.get(kind, {}).get("status") == "True")


def _unready_since(conditions: Json) -> float | None:
    ready = conditions.get("Ready", {})
    return None if ready.get("status") == "True" else epoch(ready.get("lastTransitionTime"))


def _began(running: Json, created: float | None) -> float:
    """Return when a process began; of one of which nothing says so, that it is not young."""
    began = epoch(running.get("startedAt"))
    return next((moment for moment in (began, created) if moment is not None), 0.0)


# An exporter that is asked for what is wanted answers in milliseconds, the JMX exporter with every
# bean in a second; a broker that takes longer is no better than one that does not answer.
SCRAPE_SECONDS = 3.0
AT_ONCE = 8
_WANTED = urlencode([("name[]", name) for name in node.wanted_names()])


@dataclass(frozen=True, slots=True)
class Scrapes:
    """One round: what each Kafka node told, and why the others did not, as sentences."""

    metrics: Mapping[int, NodeMetrics] = field(default_factory=dict)
    silent: Mapping[int, str] = field(default_factory=dict)


class PodExporters:
    """Asks the exporters of an EKS cluster's pods; `api` should keep AT_ONCE connections."""

    def __init__(self, api: EksApi, namespace: str, seconds: float = SCRAPE_SECONDS) -> None:
        self._api, self._namespace, self._seconds = api, namespace, seconds

    def scrape(self, pods: Iterable[str]) -> Scrapes:
        """Ask every named Kafka pod once; never raises."""
        names = {node_id: pod for pod in pods if (node_id := node_id_of_pod(pod)) is not None}
        metrics: dict[int, NodeMetrics] = {}
        silent: dict[int, str] = {}
        with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="scrape") as workers:
            for node_id, told in zip(
                names, workers.map(self._metrics_of, names.values()), strict=True
            ):
                if isinstance(told, NodeMetrics):
                    metrics[node_id] = told
                else:
                    silent[node_id] = told
        return Scrapes(metrics, silent)

    def _metrics_of(self, pod: str) -> NodeMetrics | str:
        path = (
            f"/api/v1/namespaces/{quote(self._namespace)}/pods/"
            f"{quote(pod)}:{node.PORT}/proxy/metrics"
        )
        try:
            found = self._parsed(f"{path}?{_WANTED}")
            if not found.samples:  # an exporter that spells everything its own way
                found = self._parsed(path)
        except StillwaterError as error:
            return f"The metrics of pod {pod} could not be read: {error}"
        if not found.samples:
            return (
                f"The exporter of pod {pod} tells nothing of what is wanted; let its allow list "
                f"name it."
            )
        return found

    @known_shape("Its exporter")
    def _parsed(self, path: str) -> NodeMetrics:
        return node.parse(self._api.text(path, self._seconds))


CONNECT_SECONDS = 3.0
# A worker's answers are one line; whatever else listens there is not read to its end.
LARGEST_ANSWER_BYTES = 64 * 1024

Fetch = Callable[[str, float], RestResponse]


def ask(fetch: Fetch, seconds: float) -> tuple[RestResponse, ...]:
    """Return a worker's answers, as many as a verdict needs, within `seconds` in all."""
    until = time.monotonic() + seconds
    answers: list[RestResponse] = []
    while (path := next_path(answers)) is not None:
        # A second question follows only an answer that came at once.
        answers.append(fetch(path, max(until - time.monotonic(), 1.0)))
    return tuple(answers)


def through(api: EksApi, namespace: str, pod: str, port: int = CONNECT_REST_PORT) -> Fetch:
    """Return a way to ask a worker's pod through the API server."""
    proxy = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}:{port}/proxy"

    def fetch(path: str, seconds: float) -> RestResponse:
        return _relayed_answer(timed_answer(path, lambda: api.relay(f"{proxy}{path}", seconds)))

    return fetch


def timed_answer(path: str, request: Callable[[], urllib3.BaseHTTPResponse]) -> RestResponse:
    started = time.monotonic()

    def failed(failure: Failure, error: Exception) -> RestResponse:
        seconds = time.monotonic() - started
        return RestResponse(path=path, seconds=seconds, failure=failure, detail=str(error))

    try:
        response = request()
        with contextlib.closing(response):
            body = response.read(LARGEST_ANSWER_BYTES)
    except urllib3.exceptions.ReadTimeoutError as error:
        return failed(Failure.TIMEOUT, error)
    except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ProtocolError) as error:
        return failed(_why_unconnected(error), error)
    except (urllib3.exceptions.HTTPError, StillwaterError) as error:
        return failed(Failure.UNREACHABLE, error)
    return RestResponse(
        path=path,
        seconds=time.monotonic() - started,
        status=response.status,
        content_type=response.headers.get("content-type", ""),
        body=body.decode(errors="replace"),
    )


def _why_unconnected(error: Exception) -> Failure:
    """Tell a port where nobody listens, or no longer, from a host that cannot be reached."""
    cause = error.__cause__ or error.__context__
    return Failure.REFUSED if isinstance(cause, ConnectionError) else Failure.UNREACHABLE


def _relayed_answer(answer: RestResponse) -> RestResponse:
    """Tell the API server's own word, a Status object, from what the pod answered."""
    said = answer.document if answer.status is not None else None
    if said is None or said.get("kind") != "Status":
        return answer
    detail = str(said.get("message") or json.dumps(said))
    refused = "connection refused" in detail.lower()
    return RestResponse(
        path=answer.path,
        seconds=answer.seconds,
        failure=Failure.REFUSED if refused else Failure.UNREACHABLE,
        detail=f"The Kubernetes API answered {answer.status}: {detail}",
    )
