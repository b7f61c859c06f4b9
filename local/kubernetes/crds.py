"""The custom resources that the twin's API server must know: Strimzi's, and those of snapshots.

Both files are the twin's own. Snapshots' kinds are what the EKS add-on `snapshot-controller`
brings; no controller acts on them, the twin takes snapshots in EC2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from local.kubernetes.client import Api

GROUP, VERSION = "kafka.strimzi.io", "v1"
FIELD_MANAGER = "stillwater-twin"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def strimzi_definitions() -> list[dict[str, Any]]:
    """Return the definitions of Strimzi's kinds."""
    return _read("strimzi_crds.yaml")


def snapshot_definitions() -> list[dict[str, Any]]:
    """Return the definitions of the snapshot kinds."""
    return _read("snapshot_crds.yaml")


def install(api: Api) -> None:
    """Make Strimzi's definitions known; the API server serves them within a second."""
    for each in strimzi_definitions():
        path = f"{DEFINITIONS}/{each['metadata']['name']}"
        api.apply(path, each, field_manager=FIELD_MANAGER)


def _read(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(Path(__file__).with_name(name).read_text()))
