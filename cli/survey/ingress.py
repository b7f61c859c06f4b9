"""Reads proxies by which clients may come in, and autoscalers of pods, into core.survey's facts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cli.survey.listing import items
from cli.survey.objects import title_of
from cli.survey.tools import down, flag, running
from core.survey.tool_facts import IngressController, SizeScaler
from infra.eks.api import Api, Object

# By image; of those that hand TLS on only if they are told to, the argument that tells them.
CONTROLLERS = {
    r"(^|/)ingress-nginx/controller|nginx-ingress-controller": "enable-ssl-passthrough",
    r"(^|/)nginx(-plus)?-ingress([:@]|$)": "enable-tls-passthrough",
    r"haproxytech/kubernetes-ingress|haproxy-ingress([:@]|$)": None,
    r"(^|/)traefik([:@]|$)": None,
    r"(^|/)kong([:@]|$)|kong/kong-gateway": None,
    r"(^|/)projectcontour/contour": None,
}


def ingress_controllers(found: Iterable[Object]) -> tuple[IngressController, ...]:
    workloads = [*found]
    return tuple(
        IngressController(
            title=title_of(item),
            replicas=_pod_count(item),
            down=down(item),
            passes_tls=None if argument is None else flag(container, argument) == "true",
        )
        for image, argument in CONTROLLERS.items()
        for item, container in running(workloads, re.compile(image))
    )


def _pod_count(item: Object) -> int:
    """Return how many pods a workload has; a DaemonSet has one per node."""
    status, spec = item.get("status") or {}, item["spec"]
    return int(status.get("desiredNumberScheduled", spec.get("replicas", 1)))


def size_scalers(api: Api, namespace: str | None) -> tuple[SizeScaler, ...]:
    """Return autoscalers of pods with their targets: KEDA's make such ones too."""
    return tuple(
        SizeScaler(
            title=f"HorizontalPodAutoscaler {title_of(item)}",
            namespace=str(item["metadata"]["namespace"]),
            kind=str(item["spec"]["scaleTargetRef"]["kind"]),
            target=str(item["spec"]["scaleTargetRef"]["name"]),
            least=int(item["spec"].get("minReplicas", 1)),
            most=int(item["spec"]["maxReplicas"]),
        )
        for item in items(api, "/apis/autoscaling/v2", "horizontalpodautoscalers", namespace)
    )
