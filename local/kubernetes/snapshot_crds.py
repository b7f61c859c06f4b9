"""The snapshot kinds, as the EKS add-on `snapshot-controller` brings them.

These definitions are the twin's own: they name the kinds and check what a class must have, where
the real ones describe every field. No controller acts on them; the twin takes snapshots in EC2.
"""

from __future__ import annotations

from typing import Any

from local.kubernetes.crds import definition, specified

GROUP, VERSION = "snapshot.storage.k8s.io", "v1"
# The API server asks it of every kind under k8s.io.
APPROVED = {
    "api-approved.kubernetes.io": "https://github.com/kubernetes-csi/external-snapshotter/pull/814"
}
# Kind -> plural, scope.
KINDS = {
    "VolumeSnapshot": ("volumesnapshots", "Namespaced"),
    "VolumeSnapshotClass": ("volumesnapshotclasses", "Cluster"),
    "VolumeSnapshotContent": ("volumesnapshotcontents", "Cluster"),
}
CLASS_SCHEMA: dict[str, Any] = {
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
    return [
        definition(
            f"{GROUP}/{VERSION}",
            kind,
            plural,
            CLASS_SCHEMA if kind.endswith("Class") else specified(),
            APPROVED,
            scope=scope,
        )
        for kind, (plural, scope) in KINDS.items()
    ]
