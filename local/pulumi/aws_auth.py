"""EKS access entries in the twin: rows of kube-system/aws-auth.

moto has no access entries. The real aws-iam-authenticator of the twin watches the ConfigMap that
EKS used before it had them, so an entry becomes a row there and RBAC decides as on EKS.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import yaml

from core.ground.errors import StillwaterError
from local.place import Place

PATH = "/api/v1/namespaces/kube-system/configmaps"
NAME = "aws-auth"
CONFLICT = 409
ATTEMPTS = 20
# What EKS itself grants a node; a program cannot set groups on such an entry.
NODE_TYPES = frozenset({"EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX"})
NODE_GROUPS = ("system:bootstrappers", "system:nodes")
NODE_NAME = "system:node:{{EC2PrivateDNSName}}"

Row = dict[str, Any]
_lock = threading.Lock()


def row(principal_arn: str, entry_type: str, groups: list[str], username: str | None) -> Row:
    """Return the row of one access entry."""
    key = "userarn" if ":user/" in principal_arn else "rolearn"
    if entry_type in NODE_TYPES:
        return {key: principal_arn, "username": NODE_NAME, "groups": list(NODE_GROUPS)}
    name = principal_arn.rsplit("/", 1)[-1]
    return {key: principal_arn, "username": username or name, "groups": sorted(groups)}


def _edit(place: Place, principal_arn: str, change: Callable[[list[Row]], list[Row]]) -> None:
    """Change the rows of one kind; another writer in between means reading again."""
    from local.kubernetes.client import Api, ApiError  # noqa: PLC0415 - most layers never need it
    from local.kubernetes.lookups import find  # noqa: PLC0415 - the same

    section = "mapUsers" if ":user/" in principal_arn else "mapRoles"
    api = Api.load_kubeconfig(place.path("kubeconfig"))
    for _ in range(ATTEMPTS):
        current = find(api, f"{PATH}/{NAME}")
        data = dict((current or {}).get("data") or {})
        rows = yaml.safe_load(data.get(section) or "[]") or []
        data[section] = yaml.safe_dump(change(rows), sort_keys=True)
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": "kube-system"},
            "data": data,
        }
        try:
            if current is None:
                api.post(PATH, body)
            else:
                body["metadata"] = current["metadata"]
                api.put(f"{PATH}/{NAME}", body)
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            continue
        return
    raise StillwaterError(
        f"The access entry of {principal_arn} could not be written: {NAME} changed "
        f"{ATTEMPTS} times in a row."
    )


def _others(rows: list[Row], principal_arn: str) -> list[Row]:
    return [r for r in rows if principal_arn not in (r.get("rolearn"), r.get("userarn"))]


def put(place: Place, entry: Row) -> None:
    """Write an entry's row, in the place of an earlier one of the same principal."""
    principal = str(entry.get("rolearn") or entry["userarn"])
    with _lock:
        _edit(place, principal, lambda rows: [*_others(rows, principal), entry])


def remove(place: Place, principal_arn: str) -> None:
    with _lock:
        _edit(place, principal_arn, lambda rows: _others(rows, principal_arn))
