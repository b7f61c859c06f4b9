"""Answers the probes of Kafka's pods with core.health's rules: `python -m local.kubernetes.health`.

`GET /v1/ready/<pod>` and `GET /v1/alive/<pod>`, with `?rules=proposal|shipped|strict`: 204 where
the probe passes, 503 with the reason where it does not, 404 for a pod it does not know yet.
Strimzi's agent has these paths within each pod; here one process looks at all of them. `GET
/v1/nodes` tells every verdict of every rule set.
"""

from __future__ import annotations

import json
import logging
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from core.ground import naming
from core.health.node import NodeObservation, Role
from core.health.rules import RuleSet, is_alive, is_ready, liveness, readiness
from local.kafka.observer import ObservedNode, Observer
from local.kubernetes import dns, strimzi_resources
from local.kubernetes.client import Api, Informer, Object, administrator
from local.kubernetes.strimzi_admin import OperatorAccess
from local.place import Place
from local.processes import stop_event

# While a node starts, stops or is in trouble, every second counts; the rest of the time it is CPU
# that Kafka's own nodes want. Asking the cluster takes a client of its own each time.
ROUND_SECONDS, STEADY_ROUND_SECONDS = 1.0, 2.0
CLUSTER_SECONDS, STEADY_CLUSTER_SECONDS = 1.0, 5.0
LOG = logging.getLogger("health")


def node_of(pod: Object, place: Place) -> ObservedNode | None:
    """Return the Kafka node in a pod; None before it has an address."""
    metadata, address = pod["metadata"], (pod.get("status") or {}).get("podIP")
    node_id = naming.node_id_of_pod(metadata["name"])
    if node_id is None or not address:
        return None
    roles = {r for r in ("controller", "broker") if _has_role(metadata["labels"], r)}
    role = Role.COMBINED if len(roles) == 2 else Role(roles.pop())
    return ObservedNode(node_id, role, place.socket_address(address), metadata["uid"])


def _has_role(labels: dict[str, str], role: str) -> bool:
    return labels.get(f"strimzi.io/{role}-role") == "true"


class Agent:
    """Looks at the Kafka pods of each cluster all the time, and answers from the last look."""

    def __init__(self, api: Api, place: Place) -> None:
        self._api, self._place = api, place
        self._pods = Informer(
            api,
            "/api/v1/pods",
            lambda _event, _pod: None,
            labelSelector=f"{strimzi_resources.KIND_LABEL}=Kafka",
        )
        self._observers: dict[tuple[str, str], Observer] = {}
        self._seen: dict[str, NodeObservation] = {}
        self._unsteady = threading.Event()

    def run(self, stop: threading.Event) -> None:
        self._pods.wait_synced(60)
        while not stop.wait(ROUND_SECONDS if self._unsteady.is_set() else STEADY_ROUND_SECONDS):
            try:
                self.look(stop)
            except Exception:
                LOG.exception("A look at Kafka's nodes failed.")
        self._pods.stop()

    def look(self, stop: threading.Event) -> None:
        """Observe every pod once."""
        seen: dict[str, NodeObservation] = {}
        for cluster, nodes in self._clusters().items():
            observer = self._observers.get(cluster)
            if observer is None:
                access = OperatorAccess(self._api, *cluster, by_address=True)
                observer = self._observers[cluster] = Observer(access)
                threading.Thread(
                    target=self._watch, args=(cluster, observer, stop), daemon=True
                ).start()
            by_id = {node.node_id: name for name, node in nodes.items()}
            for node_id, observed in observer.look(nodes.values()).items():
                seen[by_id[node_id]] = observed
        self._seen = seen
        if all(readiness(observed).healthy for observed in seen.values()):
            self._unsteady.clear()
        else:
            self._unsteady.set()

    def _watch(self, cluster: tuple[str, str], observer: Observer, stop: threading.Event) -> None:
        while not stop.wait(CLUSTER_SECONDS):
            nodes = self._clusters().get(cluster, {}).values()
            if nodes:
                observer.ask_cluster(nodes)
            # Woken by the first node that is not well.
            self._unsteady.wait(STEADY_CLUSTER_SECONDS - CLUSTER_SECONDS)

    def _clusters(self) -> dict[tuple[str, str], dict[str, ObservedNode]]:
        found: dict[tuple[str, str], dict[str, ObservedNode]] = {}
        for (namespace, name), pod in list(self._pods.objects.items()):
            cluster = pod["metadata"]["labels"].get(naming.CLUSTER_LABEL)
            node = node_of(pod, self._place)
            if cluster and node:
                found.setdefault((namespace, cluster), {})[name] = node
        return found

    def answer(self, path: str) -> tuple[HTTPStatus, str]:
        """Answer one request."""
        parts = urlsplit(path)
        rules = RuleSet(parse_qs(parts.query).get("rules", [RuleSet.STRICT.value])[0])
        if parts.path == "/v1/nodes":
            told = {pod: _verdicts(seen) for pod, seen in sorted(self._seen.items())}
            return HTTPStatus.OK, json.dumps(told)
        _, _, question, pod = parts.path.split("/", 3)
        observed = self._seen.get(pod)
        if observed is None:
            # A liveness that fails for not having been looked at yet would restart the unknown.
            unknown = question != "alive"
            return (HTTPStatus.NOT_FOUND if unknown else HTTPStatus.NO_CONTENT), "Not seen yet."
        if question == "alive":
            verdict = liveness(observed, rules)
            passes = is_alive(verdict)
        else:
            verdict = readiness(observed, rules)
            passes = is_ready(verdict)
        status = HTTPStatus.NO_CONTENT if passes else HTTPStatus.SERVICE_UNAVAILABLE
        return status, verdict.reason


def _verdicts(observed: NodeObservation) -> dict[str, Any]:
    return {
        rules.value: {
            "alive": is_alive(lives := liveness(observed, rules)),
            "ready": is_ready(serves := readiness(observed, rules)),
            "health": serves.health.value,
            "reasons": [lives.reason, serves.reason],
        }
        for rules in RuleSet
    }


def serve(agent: Agent, host: str, port: int) -> ThreadingHTTPServer:
    """Return the server of an agent, not started yet."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                status, told = agent.answer(self.path)
            except ValueError as error:
                status, told = HTTPStatus.BAD_REQUEST, str(error)
            body = b"" if status is HTTPStatus.NO_CONTENT else told.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes ask every second; the kubelet keeps what they were told."""

    return ThreadingHTTPServer((host, port), Handler)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("kafka").setLevel(logging.ERROR)
    place = Place.load()
    stop = stop_event()
    # Brokers advertise names of the cluster's DNS; without it nobody could be asked about them.
    dns.install(place.path(dns.FILE_NAME))
    agent = Agent(administrator(place), place)
    server = serve(agent, place.host("kafka-health"), place.port("kafka-health"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    agent.run(stop)
    server.shutdown()


if __name__ == "__main__":
    main()
