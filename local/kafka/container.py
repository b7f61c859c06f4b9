"""How the twin runs the `kafka` container of a Strimzi pod: which command stands for its image."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import StillwaterError
from local.place import Place

# Where the operator's pods mount the ConfigMap of their own node, and what it holds.
CONFIG_MOUNT = "/opt/kafka/custom-config"
SERVER_CONFIG = "server.config"
CLUSTER_ID = "cluster.id"
METADATA_VERSION = "metadata.version"
# Stands in server.config for the address the pod is given only when it starts.
POD_ADDRESS = "${POD_ADDRESS}"


def command(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    environment: Mapping[str, str],  # noqa: ARG001  # every image's command is asked with the same
    mounts: Mapping[str, Path],
    pod_ip: str,
    place: Place,
) -> list[str]:
    """Return the command that formats the pod's volumes if need be and becomes the JVM.

    Raises StillwaterError when the pod mounts no configuration.
    """
    real = {path.rstrip("/"): directory for path, directory in mounts.items()}
    if CONFIG_MOUNT not in real:
        raise StillwaterError(
            f"Container {container['name']} of pod {pod['metadata']['name']} mounts nothing at "
            f"{CONFIG_MOUNT}, where its server.config belongs; only pods of the twin's Strimzi "
            f"stand-in can run Kafka here."
        )
    return [
        *(sys.executable, "-m", "local.kafka.run"),
        *("--config", str(real.pop(CONFIG_MOUNT))),
        *("--work", str(place.path("pods", pod["metadata"]["uid"], "kafka"))),
        *("--address", place.socket_address(pod_ip)),
        *("--jars", str(place.path("kafka", "jars"))),
        *("--hosts", str(place.path("hosts"))),
        *(f"--mount={path}={directory}" for path, directory in sorted(real.items())),
    ]
