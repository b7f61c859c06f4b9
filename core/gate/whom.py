"""Names who may delete a pod of Kafka's without being asked, and why; everybody else is asked.

Evictions are always asked about: nobody on this list evicts. Sources: Kubernetes' own controllers
and their accounts (kubernetes.io/docs/reference/access-authn-authz/rbac, controller roles).
"""

from __future__ import annotations

from collections.abc import Mapping

from core.gate.asked import RemovalRequest, Wish

_SYSTEM = "system:serviceaccount:kube-system:"
NODE_CONTROLLERS = frozenset(
    {f"{_SYSTEM}{name}" for name in ("node-controller", "taint-eviction-controller")}
)
# Kubernetes' controllers under one name, where they are not given accounts of their own.
MANAGER = "system:kube-controller-manager"
CLEANERS: Mapping[str, str] = {
    f"{_SYSTEM}generic-garbage-collector": "its owner is gone, so the garbage collector follows",
    f"{_SYSTEM}pod-garbage-collector": "its node is gone or out of service",
    f"{_SYSTEM}namespace-controller": "its namespace is being deleted",
    MANAGER: "Kubernetes' own controllers clean up",
}


def reason_not_to_ask(
    asked: RemovalRequest,
    *,
    operators: frozenset[str],
    node_name: str | None,
    node_ready: bool | None,
) -> str | None:
    """Return why a deletion needs no answer of Kafka's; None: it does.

    `node_name` is the pod's own node, and `node_ready` whether that serves; None: not known.
    """
    if asked.wish is not Wish.DELETE_POD:
        return None
    user = asked.username
    if user in operators:
        return "Kafka's operator rolls its own pods by its own rules."
    if user in CLEANERS:
        return f"Pod {asked.name} is cleaned up: {CLEANERS[user]}."
    if node_name is not None and user == f"system:node:{node_name}":
        return f"The kubelet of {node_name} removes a pod that has ended."
    if user in NODE_CONTROLLERS and node_ready is False:
        # A taint on a machine that serves is somebody's drain by another name, and is asked.
        return f"{node_name} is not Ready: its pods have to start elsewhere."
    return None
