"""The snapshot kinds, as the EKS add-on `snapshot-controller` brings them.

These definitions are the twin's own: they name the kinds and check what a class must have, where
the real ones describe every field. No controller acts on them; the twin takes snapshots in EC2.
"""

from __future__ import annotations

from typing import Any

GROUP, VERSION = "snapshot.storage.k8s.io", "v1"
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# Kind -> plural, scope.
KINDS = {
    "VolumeSnapshot": ("volumesnapshots", "Namespaced"),
    "VolumeSnapshotClass": ("volumesnapshotclasses", "Cluster"),
    "VolumeSnapshotContent": ("volumesnapshotcontents", "Cluster"),
}
CLASS_SCHEMA = {
    "type": "object",
    "required": ["deletionPolicy", "driver"],
    "properties": {
        "deletionPolicy": {"type": "string", "enum": ["Delete", "Retain"]},
        "driver": {"type": "string"},
        "parameters": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def definitions() -> list[dict[str, Any]]:
    """Return the three CustomResourceDefinitions."""
    return [_definition(kind, plural, scope) for kind, (plural, scope) in KINDS.items()]


def _definition(kind: str, plural: str, scope: str) -> dict[str, Any]:
    specified = {"type": "object", "properties": {"spec": ANY, "status": ANY}}
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": CLASS_SCHEMA if kind.endswith("Class") else specified},
    }
    if not kind.endswith("Class"):
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            "annotations": {
                # The API server asks it of every kind under k8s.io.
                "api-approved.kubernetes.io": (
                    "https://github.com/kubernetes-csi/external-snapshotter/pull/814"
                )
            },
        },
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {
                "kind": kind,
                "plural": plural,
                "singular": kind.lower(),
                "listKind": f"{kind}List",
            },
            "versions": [version],
        },
    }
