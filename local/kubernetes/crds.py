"""The custom resources of Strimzi as far as the twin's API server must know them.

These definitions are the twin's own: they name Strimzi's kinds and accept any spec, where the real
ones check every field. Set STILLWATER_CRDS to a folder with the real ones (install/cluster-operator
of a Strimzi release) and the twin loads those instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from core.ground.errors import InvalidInput
from local.kubernetes.client import Api

FOLDER_VARIABLE = "STILLWATER_CRDS"
GROUP, VERSION = "kafka.strimzi.io", "v1"
KINDS = {
    "Kafka": "kafkas",
    "KafkaNodePool": "kafkanodepools",
    "KafkaConnect": "kafkaconnects",
    "KafkaTopic": "kafkatopics",
    "KafkaUser": "kafkausers",
}
# What the operator makes for itself; the stand-in makes none.
INTERNAL_GROUP = "core.strimzi.io"
FIELD_MANAGER = "stillwater-twin"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def own_definitions() -> list[dict[str, Any]]:
    """Return the twin's own definitions."""
    ours = [_definition(GROUP, kind, plural) for kind, plural in KINDS.items()]
    return [*ours, _definition(INTERNAL_GROUP, "StrimziPodSet", "strimzipodsets")]


def real(folder: Path) -> list[dict[str, Any]]:
    """Return every CustomResourceDefinition in the YAML files of a folder."""
    found = list(_read(folder))
    if not found:
        problem = (
            f"{FOLDER_VARIABLE} is {folder}, which holds no YAML file with a "
            f"CustomResourceDefinition; unset it or name Strimzi's install folder."
        )
        raise InvalidInput([problem])
    return found


def install(api: Api) -> None:
    """Make the definitions known; the API server serves them within a second."""
    named = os.environ.get(FOLDER_VARIABLE)
    for each in real(Path(named)) if named else own_definitions():
        path = f"{_DEFINITIONS}/{each['metadata']['name']}"
        api.apply(path, each, field_manager=FIELD_MANAGER)


def _read(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"))):
        try:
            documents = list(yaml.safe_load_all(path.read_text()))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InvalidInput([f"{path} is not readable YAML: {error}."]) from error
        for document in documents:
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                yield document


def _definition(group: str, kind: str, plural: str) -> dict[str, Any]:
    note = {"stillwater.dev/note": "The twin's own; Strimzi's checks every field."}
    return definition(f"{group}/{VERSION}", kind, plural, specified(), note)


def specified() -> dict[str, Any]:
    """Return the schema of a kind that has a spec and a status, of anything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "properties": {"spec": anything, "status": anything}}


def definition(
    api_version: str,
    kind: str,
    plural: str,
    schema: Mapping[str, Any],
    annotations: Mapping[str, str],
    *,
    scope: str = "Namespaced",
) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind in one version."""
    group, _, version = api_version.partition("/")
    served: dict[str, Any] = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if "status" in schema["properties"]:
        served["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": dict(annotations)},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
            },
            "versions": [served],
        },
    }
