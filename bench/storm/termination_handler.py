"""The real node termination handler by itself, as its guide wires it: one queue, no dead letters.

It runs as the program its pod would run, with its pod's credentials where it looks for them, and is
started again when it dies, after the kubelet's own delays.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.storm.burst import REGION
from bench.storm.ground import StormTwin
from core.ground import naming
from local import environment
from local.environment import aws_environment
from local.kubernetes import control_plane
from local.kubernetes.mounts import with_private_mounts
from local.processes import Child
from local.tools import build

NAME = "node-termination-handler"
NAMESPACE = "kube-system"
# The kubelet's: ten seconds, doubled with each restart.
FIRST_RESTART_SECONDS = 10.0
DRAINED = "Node successfully cordoned and drained"
_ID = re.compile(r"(arn:\S+|\bi-[0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass
class RunningHandler:
    """The running handler and how often it had to be started again."""

    ground: StormTwin
    command: list[str]
    variables: dict[str, str]
    child: Child | None = None
    restarts: int = 0
    _restart_at: float | None = None
    _logs: list[Path] = field(default_factory=list)

    def look(self) -> None:
        """Start it, or start it again once it has been dead for as long as a kubelet waits."""
        if self.child is None:
            self._start()
        elif not self.child.alive:
            now = time.monotonic()
            if self._restart_at is None:
                self._restart_at = now + FIRST_RESTART_SECONDS * 2**self.restarts
            elif now >= self._restart_at:
                self.restarts += 1
                self._restart_at = None
                self._start()

    def _start(self) -> None:
        self.child = self.ground.twin.processes.start(
            f"{NAME}-{self.restarts}", self.command, environment=self.variables
        )
        self._logs.append(self.child.log)

    def drains(self) -> Counter[str]:
        """Return how often it drained each node, by its own word."""
        found: Counter[str] = Counter()
        for line in self._lines():
            if line.get("message") == DRAINED:
                found[str(line.get("node_name"))] += 1
        return found

    def warnings(self) -> Counter[str]:
        """Return its warnings and errors, by their message."""
        return Counter(
            _ID.sub("ID", str(line.get("message") or line.get("error")))
            for line in self._lines()
            if line.get("level") in ("warn", "error")
        )

    def _lines(self) -> Iterator[dict[str, object]]:
        for log in self._logs:
            for text in log.read_text(errors="replace").splitlines():
                try:
                    line = json.loads(text)
                except ValueError:
                    continue
                if isinstance(line, dict):
                    yield line


@contextmanager
def running(ground: StormTwin) -> Iterator[RunningHandler]:
    """Run the handler on the queue `alone` until the block ends."""
    place = ground.twin.place
    handler = RunningHandler(
        ground,
        with_private_mounts(_credentials(ground), [str(build.tool_path(NAME))]),
        {
            **environment.with_credentials(place),
            **aws_environment(place),
            "AWS_ENDPOINT": place.url("moto"),
            "KUBERNETES_SERVICE_HOST": place.host("apiserver"),
            "KUBERNETES_SERVICE_PORT": str(place.port("apiserver")),
            "NODE_NAME": "bench",
            "POD_NAME": NAME,
            "NAMESPACE": NAMESPACE,
            "AWS_REGION": REGION,
            "ENABLE_SQS_TERMINATION_DRAINING": "true",
            "QUEUE_URL": ground.queues["alone"],
            "CHECK_TAG_BEFORE_DRAINING": "true",
            "MANAGED_TAG": naming.managed_tag(ground.spec.prefix),
            "DELETE_SQS_MSG_IF_NODE_NOT_FOUND": "true",
            "POD_TERMINATION_GRACE_PERIOD": "-1",
            "NODE_TERMINATION_GRACE_PERIOD": str(ground.spec.timings.nth_drain_timeout_seconds),
            "DELETE_LOCAL_DATA": "true",
            "IGNORE_DAEMON_SETS": "true",
            "WORKERS": "10",
            "JSON_LOGGING": "true",
            "LOG_FORMAT_VERSION": "2",
        },
    )
    try:
        handler.look()
        yield handler
    finally:
        if handler.child is not None and handler.child.alive:
            # Asked to end, it would first wait for its drains.
            handler.child.popen.kill()
            handler.child.popen.wait(timeout=10)


def _credentials(ground: StormTwin) -> Path:
    """Write what a pod of its ServiceAccount is given; its rights are not what is measured."""
    api = ground.twin.api
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    api.post(accounts, {"metadata": {"name": NAME}})
    api.post(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": NAME},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
        },
    )
    issued = api.post(f"{accounts}/{NAME}/token", {"spec": {"expirationSeconds": 7200}})
    directory = ground.twin.place.path("nth-credentials")
    directory.mkdir()
    token = directory / "token"
    token.touch(mode=0o600)
    token.write_text(issued["status"]["token"])
    (directory / "namespace").write_text(NAMESPACE)
    (directory / "ca.crt").write_bytes(control_plane.ca_file(ground.twin.place).read_bytes())
    return directory
