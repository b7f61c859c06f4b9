"""Real Karpenter on a twin's API server: its controllers, before a cloud that makes Node objects.

Karpenter's kwok provider launches Nodes and no machines, so somebody has to say what a kubelet
says: that a node is Ready, that a pod runs, that it has stopped. `StandInKubelet` does, and makes
the pods anew that Strimzi's pod sets would. The definitions are the AWS provider's own chart's, the
NodePools what infra/ renders, on an instance type of the same name and zones.
"""

import contextlib
import datetime as dt
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from core.ground import naming
from local.kubernetes.client import Api, ApiError, has_condition
from local.processes import Child, Processes
from local.tools import chart_path, tool_path
from local.twin import Twin
from tests.integration.waiting import until

Json = dict[str, Any]
ACCOUNT = "system:serviceaccount:karpenter:karpenter"
NAME = "karpenter"
KWOK = "kwok://"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
NODES, LEASES = "/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
LOOK_SECONDS, HEARTBEAT_SECONDS = 0.2, 3.0
# How long a stand-in broker takes to stop.
STOP_SECONDS = 0.5


def definitions() -> Iterator[Json]:
    """Yield the definitions of Karpenter's kinds, as the AWS provider and kwok's ship them."""
    templates = chart_path("karpenter-crd") / "templates"
    for path in (*sorted(templates.glob("*.yaml")), *chart_path("karpenter-kwok-crd").iterdir()):
        # Helm's lines add annotations of the user's alone.
        lines = [line for line in path.read_text().splitlines() if "{{" not in line]
        yield yaml.safe_load("\n".join(lines))


def instance_types(name: str, architecture: str, zones: list[str]) -> list[Json]:
    """Return what kwok's cloud sells: one type, on demand, in each zone."""

    def is_(key: str, value: str) -> Json:
        return {"key": key, "operator": "In", "values": [value]}

    offerings = [
        {
            "Price": 1.0,
            "Available": True,
            "Requirements": [
                is_("karpenter.sh/capacity-type", "on-demand"),
                is_(naming.ZONE_LABEL, zone),
            ],
        }
        for zone in zones
    ]
    resources = {"cpu": "16", "memory": "128Gi", "ephemeral-storage": "20Gi", "pods": "110"}
    return [
        {
            "name": name,
            "offerings": offerings,
            "architecture": architecture,
            "operatingSystems": ["linux"],
            "resources": resources,
        }
    ]


@contextlib.contextmanager
def running(twin: Twin, directory: Path, types: list[Json]) -> Iterator[Child]:
    """Run Karpenter under its own account for as long as the block lasts; leave nothing of it."""
    api = twin.api
    kinds = define(api)
    sold = directory / "instance-types.json"
    sold.write_text(json.dumps(types))
    environment = {
        **os.environ,
        "KUBECONFIG": str(_kubeconfig(twin, directory)),
        "INSTANCE_TYPES_FILE_PATH": str(sold),
        "DISABLE_LEADER_ELECTION": "true",
        "SYSTEM_NAMESPACE": NAME,
        "METRICS_PORT": "0",
        "HEALTH_PROBE_PORT": "0",
        "LOG_LEVEL": "debug",
    }
    processes = Processes(directory / "pids", directory / "logs")
    try:
        binary = str(tool_path("karpenter-kwok"))
        yield processes.start("karpenter", [binary], environment=environment)
    finally:
        processes.close()
        _remove(api, kinds)


def define(api: Api) -> list[str]:
    """Have an API server know Karpenter's kinds; return the definitions' names."""
    made = list(definitions())
    names = [str(each["metadata"]["name"]) for each in made]
    for name, each in zip(names, made, strict=True):
        api.apply(f"{DEFINITIONS}/{name}", each, field_manager=NAME)
    until(
        lambda: all(
            has_condition(api.get(f"{DEFINITIONS}/{name}"), "Established") for name in names
        ),
        "Karpenter's kinds are established",
    )
    return names


def _kubeconfig(twin: Twin, directory: Path) -> Path:
    """Make Karpenter's account, and write how it reaches the API server."""
    api = twin.api
    api.post("/api/v1/namespaces", {"metadata": {"name": NAME}})
    accounts = f"/api/v1/namespaces/{NAME}/serviceaccounts"
    api.post(accounts, {"metadata": {"name": NAME}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAME}
    binding = {"metadata": {"name": NAME}, "roleRef": role, "subjects": [subject]}
    api.post(BINDINGS, binding)
    asked = {"spec": {"expirationSeconds": 3600}}
    token = api.post(f"{accounts}/{NAME}/token", asked)["status"]["token"]
    config = yaml.safe_load(twin.place.path("kubeconfig").read_text())
    config["users"][0]["user"] = {"token": token}
    path = directory / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def _remove(api: Api, kinds: list[str]) -> None:
    """Take away what Karpenter made; it runs no more, so nobody sees to its finalizers."""
    for path in (POOLS, CLAIMS, CLASSES, NODES):
        for item in api.get(path)["items"]:
            if path == NODES and not item["spec"].get("providerID", "").startswith(KWOK):
                continue
            one = f"{path}/{item['metadata']['name']}"
            with contextlib.suppress(ApiError):
                api.merge(one, {"metadata": {"finalizers": None}})
                api.delete(one)
    for kind in kinds:
        api.delete(f"{DEFINITIONS}/{kind}")
    api.delete(f"{BINDINGS}/{NAME}")
    api.delete(f"/api/v1/namespaces/{NAME}")


@dataclass
class StandInKubelet:
    """What kubelets, a CSI driver and Strimzi's pod sets would say and do, for kwok's nodes."""

    api: Api
    namespace: str
    wanted: Mapping[str, Json]  # pods that there are to be, by name
    ready: bool = True  # False: what is launched from now on does not become Ready
    errors: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _beats: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, name="stand-in kubelet", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                mine = set()
                for node in self.api.get(NODES)["items"]:
                    if node["spec"].get("providerID", "").startswith(KWOK):
                        mine.add(node["metadata"]["name"])
                        self._node(node)
                self._pods(mine)
            except ApiError as error:
                self.errors.append(str(error))

    def _node(self, node: Json) -> None:
        name = node["metadata"]["name"]
        new = name not in self._beats
        if new and not self.ready:
            return
        if not new and time.monotonic() - self._beats[name] < HEARTBEAT_SECONDS:
            return
        self._beats[name] = time.monotonic()
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        lease = {"spec": {"holderIdentity": name, "renewTime": now, "leaseDurationSeconds": 40}}
        if not new:
            self.api.merge(f"{LEASES}/{name}", lease)
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        named = {"name": name, "ownerReferences": [owner]}
        self.api.post(LEASES, {"metadata": named, **lease})
        driver = {"name": naming.EBS_CSI_DRIVER, "nodeID": name, "topologyKeys": None}
        self.api.post(CSI_NODES, {"metadata": named, "spec": {"drivers": [driver]}})
        self._say(f"{NODES}/{name}", {"conditions": [_ready_condition("KubeletReady")]})

    def _pods(self, nodes: set[str]) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        found = {pod["metadata"]["name"]: pod for pod in self.api.get(path)["items"]}
        for name in self.wanted.keys() - found.keys():
            self.api.post(path, self.wanted[name])
        for name, pod in found.items():
            if pod["spec"].get("nodeName") not in nodes:
                continue
            told = pod["metadata"].get("deletionTimestamp")
            if told is not None and self._stopped(pod):
                self.api.delete(f"{path}/{name}", gracePeriodSeconds=0)
            elif told is None and pod["status"].get("phase") != "Running":
                status = {"phase": "Running", "conditions": [_ready_condition("Started")]}
                self._say(f"{path}/{name}", status)

    def _stopped(self, pod: Json) -> bool:
        uid = pod["metadata"]["uid"]
        return time.monotonic() - self._beats.setdefault(uid, time.monotonic()) >= STOP_SECONDS

    def _say(self, path: str, status: Json) -> None:
        self.api.strategic(f"{path}/status", {"status": status})


def _ready_condition(reason: str) -> Json:
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "Ready",
        "status": "True",
        "reason": reason,
        "lastTransitionTime": now,
        "lastHeartbeatTime": now,
    }
