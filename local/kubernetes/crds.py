"""The custom resources that the twin's API server must know: Strimzi's, and those of snapshots.

Both files are the twin's own. Set STILLWATER_CRDS to a folder with Strimzi's real ones
(install/cluster-operator of a release) and the twin loads those instead. Snapshots' kinds are what
the EKS add-on `snapshot-controller` brings; no controller acts on them, the twin takes snapshots in
EC2.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from core.ground.errors import InvalidInput
from local.kubernetes.client import Api

FOLDER_VARIABLE = "STILLWATER_CRDS"
GROUP, VERSION = "kafka.strimzi.io", "v1"
FIELD_MANAGER = "stillwater-twin"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HERE = Path(__file__).parent


def strimzi_definitions() -> list[dict[str, Any]]:
    """Return the twin's own definitions of Strimzi's kinds."""
    return list(_read(_HERE / "strimzi_crds.yaml"))


def snapshot_definitions() -> list[dict[str, Any]]:
    """Return the definitions of the snapshot kinds."""
    return list(_read(_HERE / "snapshot_crds.yaml"))


def real(folder: Path) -> list[dict[str, Any]]:
    """Return every CustomResourceDefinition in the YAML files of a folder."""
    files = sorted((*folder.glob("*.yaml"), *folder.glob("*.yml")))
    found = [definition for file in files for definition in _read(file)]
    if not found:
        problem = (
            f"{FOLDER_VARIABLE} is {folder}, which holds no YAML file with a "
            f"CustomResourceDefinition; unset it or name Strimzi's install folder."
        )
        raise InvalidInput([problem])
    return found


def install(api: Api) -> None:
    """Make Strimzi's definitions known; the API server serves them within a second."""
    named = os.environ.get(FOLDER_VARIABLE)
    for each in real(Path(named)) if named else strimzi_definitions():
        path = f"{DEFINITIONS}/{each['metadata']['name']}"
        api.apply(path, each, field_manager=FIELD_MANAGER)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    try:
        documents = list(yaml.safe_load_all(path.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidInput([f"{path} is not readable YAML: {error}."]) from error
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
            yield document
