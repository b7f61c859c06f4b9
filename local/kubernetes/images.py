"""Which program of this machine stands behind a container image.

An image the twin knows runs as the real thing: NTH's binary, Kafka's JVM. An image it does not know
(a chart's side car) sleeps, is called ready, and the journal says so.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.ground.errors import StillwaterError
from core.settings.codec import SETTINGS
from core.settings.prometheus import AUTHORITY_DIRECTORY, USER_DIRECTORY
from local.environment import aws_environment
from local.kafka.container import CONFIG_MOUNT, RACK_LABEL
from local.kubernetes import dns
from local.kubernetes.client import Object, administrator
from local.kubernetes.environment import (
    SERVICE_ACCOUNT_DIRECTORY,
    command_line,
    with_private_mounts,
)
from local.kubernetes.identity import pod_credentials
from local.place import PLACE_VARIABLE, Place, note_moved_ports

PROCESS_IMAGE = "stillwater/process"
MOUNTS_VARIABLE = "STILLWATER_MOUNTS"
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "JAVA_HOME", "STILLWATER_CACHE", "PYTHONPATH")
NEVER_ENDS = ["sleep", "infinity"]
# Variables by which NTH is told its ports. It listens on every address of the machine, so two
# twins, or NTH and anything else, would collide on the chart's 8080.
NTH_PORT_VARIABLES = ("PROBES_SERVER_PORT", "PROMETHEUS_SERVER_PORT")
# What the load balancer controller listens on, and which of its flags takes an address.
LBC_WEBHOOK_PORT, LBC_HEALTH_PORT, LBC_METRICS_PORT = 9443, 61779, 8080
LBC_CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - its chart's mount


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRequest:
    """A container that is about to start, with its environment resolved."""

    place: Place
    cluster: str
    pod: Object
    container: Object
    environment: Mapping[str, str]
    mounts: Mapping[str, Path]
    pod_ip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLaunch:
    """How a container runs on this machine."""

    argv: list[str]
    environment: Mapping[str, str]
    # Port in the spec -> port the process was told to use instead.
    moved_ports: Mapping[int, int] = field(default_factory=dict)
    # Port in the spec -> address of another process, which answers there for this one.
    answered_at: Mapping[int, str] = field(default_factory=dict)
    # False for a stand-in that answers no probe.
    probed: bool = True
    note: str = ""


def repository(image: str) -> str:
    """Return an image's name without its tag and digest: host:5000/a/b:v1 -> host:5000/a/b."""
    name = image.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return head + slash + tail.partition(":")[0]


def base_environment(place: Place, pod: Object) -> dict[str, str]:
    """Return what every container of the twin sees before its spec adds to it."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {
        **inherited,
        PLACE_VARIABLE: str(place.directory),
        "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"],
        "KUBERNETES_SERVICE_HOST": place.host("apiserver"),
        "KUBERNETES_SERVICE_PORT": str(place.port("apiserver")),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(place.port("apiserver")),
    }


def launch(request: ContainerRequest) -> ContainerLaunch:
    """Return how the container runs; raise MissingPrerequisite where this machine cannot run it."""
    name = repository(request.container["image"])
    for suffix, how in RUNNERS.items():
        if name == suffix or name.endswith("/" + suffix):
            if suffix in WITH_TOKEN and SERVICE_ACCOUNT_DIRECTORY not in request.mounts:
                return _asleep(
                    request,
                    f"The pod mounts no ServiceAccount token, without which {suffix} cannot run.",
                )
            return how(request)
    image = request.container["image"]
    return _asleep(request, f"The twin does not know the image {image}; it only sleeps.")


def _asleep(request: ContainerRequest, note: str) -> ContainerLaunch:
    return ContainerLaunch(
        argv=NEVER_ENDS, environment=request.environment, probed=False, note=note
    )


def _process(request: ContainerRequest) -> ContainerLaunch:
    """Run the spec's command as it is, with its mounts in STILLWATER_MOUNTS as JSON."""
    command, args = command_line(request.container, request.environment)
    mounts = {path: str(directory) for path, directory in request.mounts.items()}
    environment = {**request.environment, MOUNTS_VARIABLE: json.dumps(mounts)}
    return ContainerLaunch(argv=[*command, *args], environment=environment)


def _kafka(request: ContainerRequest) -> ContainerLaunch:
    """Run what formats the pod's volumes if need be and becomes the JVM.

    Raises StillwaterError when the pod mounts no configuration, or its node has no rack.
    """
    metadata, place = request.pod["metadata"], request.place
    real = {path.rstrip("/"): directory for path, directory in request.mounts.items()}
    if CONFIG_MOUNT not in real:
        raise StillwaterError(
            f"Container {request.container['name']} of pod {metadata['name']} mounts nothing at "
            f"{CONFIG_MOUNT}, where its server.config belongs. Only pods of the twin's Strimzi "
            f"stand-in can run Kafka here."
        )
    config = real.pop(CONFIG_MOUNT)
    argv = [
        *(sys.executable, "-m", "local.kafka.run"),
        *("--config", str(config)),
        *("--work", str(place.path("pods", metadata["uid"], "kafka"))),
        *("--address", place.socket_address(request.pod_ip)),
        *("--jars", str(place.path("kafka", "jars"))),
        *("--hosts", str(place.path("hosts"))),
        *_rack_of(request.pod, config, place),
        *(f"--mount={path}={directory}" for path, directory in sorted(real.items())),
    ]
    agent = {place.port("kafka-health"): place.host("kafka-health")}
    return ContainerLaunch(argv=argv, environment=request.environment, answered_at=agent)


def _rack_of(pod: Object, config: Path, place: Place) -> list[str]:
    """Return the option for the pod's rack, as Strimzi's init container finds it: on its node."""
    wanted = config / RACK_LABEL
    if not wanted.exists():
        return []
    label, node = wanted.read_text().strip(), pod["spec"]["nodeName"]
    api = administrator(place)
    rack = (api.get(f"/api/v1/nodes/{node}")["metadata"].get("labels") or {}).get(label)
    if not rack:
        raise StillwaterError(
            f"Node {node} carries no label {label}, so pod {pod['metadata']['name']} has no rack; "
            f"label the node, or take the rack out of the pod's resource."
        )
    return ["--rack", str(rack)]


def _termination_handler(request: ContainerRequest) -> ContainerLaunch:
    """Run the real NTH with its pod's credentials in place and its ports moved out of the way."""
    variables = {**_aws_identity(request), "AWS_ENDPOINT": request.place.url("moto")}
    moved = {}
    for name in NTH_PORT_VARIABLES:
        if name in variables:
            free = _free_port()
            moved[int(variables[name])] = free
            variables[name] = str(free)
    _, args = command_line(request.container, variables)
    binary = request.place.path("bin", "node-termination-handler")
    return ContainerLaunch(
        argv=with_private_mounts(request.mounts[SERVICE_ACCOUNT_DIRECTORY], [str(binary), *args]),
        environment=variables,
        moved_ports=moved,
    )


def _load_balancer_controller(request: ContainerRequest) -> ContainerLaunch:
    """Run the real AWS Load Balancer Controller on its pod's address, but for its webhooks.

    Their server listens on every address of the machine, so it is given a free port.
    """
    _, args = command_line(request.container, request.environment)
    host, webhooks = request.place.socket_address(request.pod_ip), _free_port()
    note_moved_ports(request.place, request.pod_ip, {LBC_WEBHOOK_PORT: webhooks})
    argv = [
        str(request.place.path("bin", "aws-load-balancer-controller")),
        *args,
        # The last of two equal flags wins.
        f"--webhook-bind-port={webhooks}",
        f"--webhook-cert-dir={request.mounts[LBC_CERTIFICATES]}",
        f"--health-probe-bind-addr={host}:{LBC_HEALTH_PORT}",
        f"--metrics-bind-addr={host}:{LBC_METRICS_PORT}",
    ]
    return ContainerLaunch(
        argv=with_private_mounts(request.mounts[SERVICE_ACCOUNT_DIRECTORY], argv),
        environment=_aws_identity(request),
        moved_ports={LBC_WEBHOOK_PORT: webhooks},
    )


def _eviction_gate(request: ContainerRequest) -> ContainerLaunch:
    """Run this repository's gate as its pod; it listens on every address, so on a free port."""
    variables = _aws_identity(request)
    told = json.loads(variables[SETTINGS])
    free = _free_port()
    note_moved_ports(request.place, request.pod_ip, {told["port"]: free})
    variables[SETTINGS] = json.dumps({**told, "port": free})
    return ContainerLaunch(
        argv=[sys.executable, "-m", "stillwater.inside", "gate"],
        environment=variables,
        moved_ports={told["port"]: free},
    )


def _client_probe(request: ContainerRequest) -> ContainerLaunch:
    """Run this repository's probe as its pod, on the pod's address, with its Secrets in place."""
    told = json.loads(request.environment[SETTINGS])
    told |= {
        "host": request.place.socket_address(request.pod_ip),
        "authority_directory": str(request.mounts[AUTHORITY_DIRECTORY]),
        "user_directory": str(request.mounts.get(USER_DIRECTORY, USER_DIRECTORY)),
    }
    hosts = str(request.place.path(dns.FILE_NAME))
    return ContainerLaunch(
        argv=[sys.executable, "-m", "local.kubernetes.client_probe", hosts],
        environment={**request.environment, SETTINGS: json.dumps(told)},
    )


def _ours(request: ContainerRequest) -> ContainerLaunch:
    """Run the program of our own image that the pod names: its probe, else the eviction gate."""
    probing = request.container.get("command", ())[-1:] == ["probe"]
    return _client_probe(request) if probing else _eviction_gate(request)


def _aws_identity(request: ContainerRequest) -> dict[str, str]:
    """Return a container's environment with the twin's AWS and its pod's role in it."""
    metadata, spec = request.pod["metadata"], request.pod["spec"]
    account = spec.get("serviceAccountName") or "default"
    return {
        **request.environment,
        **aws_environment(request.place),
        **pod_credentials(request.place, request.cluster, metadata["namespace"], account),
    }


def _free_port() -> int:
    """Return a port no address of this machine listens on now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port


RUNNERS: Mapping[str, Callable[[ContainerRequest], ContainerLaunch]] = {
    PROCESS_IMAGE: _process,
    "strimzi/kafka": _kafka,
    "aws-node-termination-handler": _termination_handler,
    "aws-load-balancer-controller": _load_balancer_controller,
    "stillwater-gate": _ours,
}
# Those that speak to the API server as their pod's ServiceAccount.
WITH_TOKEN = {"aws-node-termination-handler", "aws-load-balancer-controller"}
