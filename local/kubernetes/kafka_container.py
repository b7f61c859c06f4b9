"""Runs a container of Strimzi's image on the twin: which command stands for broker and worker."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.ground.errors import StillwaterError
from local.kafka.container import CONFIG_MOUNT, RACK_LABEL
from local.kubernetes.client import Api
from local.place import Place


def command(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    environment: Mapping[str, str],  # noqa: ARG001  # every image's command is asked with the same
    mounts: Mapping[str, Path],
    pod_ip: str,
    place: Place,
) -> list[str]:
    """Return the command that formats the pod's volumes if need be and becomes the JVM.

    Raises StillwaterError when the pod mounts no configuration, or its node has no rack.
    """
    real = {path.rstrip("/"): directory for path, directory in mounts.items()}
    if CONFIG_MOUNT not in real:
        raise StillwaterError(
            f"Container {container['name']} of pod {pod['metadata']['name']} mounts nothing at "
            f"{CONFIG_MOUNT}, where its server.config belongs; only pods of the twin's Strimzi "
            f"stand-in can run Kafka here."
        )
    config = real.pop(CONFIG_MOUNT)
    return [
        *(sys.executable, "-m", "local.kafka.run"),
        *("--config", str(config)),
        *("--work", str(place.path("pods", pod["metadata"]["uid"], "kafka"))),
        *("--address", place.socket_address(pod_ip)),
        *("--jars", str(place.path("kafka", "jars"))),
        *("--hosts", str(place.path("hosts"))),
        *_rack_of(pod, config, place),
        *(f"--mount={path}={directory}" for path, directory in sorted(real.items())),
    ]


def _rack_of(pod: Mapping[str, Any], config: Path, place: Place) -> list[str]:
    """Return the option for the pod's rack, as Strimzi's init container finds it: on its node."""
    wanted = config / RACK_LABEL
    if not wanted.exists():
        return []
    label, node = wanted.read_text().strip(), pod["spec"]["nodeName"]
    api = Api.load_kubeconfig(place.path("kubeconfig"))
    rack = (api.get(f"/api/v1/nodes/{node}")["metadata"].get("labels") or {}).get(label)
    if not rack:
        raise StillwaterError(
            f"Node {node} carries no label {label}, so pod {pod['metadata']['name']} has no rack; "
            f"label the node, or take the rack out of the pod's resource."
        )
    return ["--rack", str(rack)]
