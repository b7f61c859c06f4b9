"""Reads proxies by which clients may come in, and autoscalers of pods, into core.survey's facts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cli.survey.listing import items, one
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


# Arguments that name a ConfigMap of ports: 9094 -> shop-kafka/orders-kafka-external:9094.
STREAMS = ("tcp-services-configmap", "configmap-tcp-services")
OWN_NAMESPACE = "$(POD_NAMESPACE)"


def ingress_controllers(api: Api, found: Iterable[Object]) -> tuple[IngressController, ...]:
    workloads = [*found]
    return tuple(
        IngressController(
            title=title_of(item),
            replicas=_pod_count(item),
            down=down(item),
            passes_tls=None if argument is None else flag(container, argument) == "true",
            streams=_streams(api, item, container),
        )
        for image, argument in CONTROLLERS.items()
        for item, container in running(workloads, re.compile(image))
    )


def _streams(api: Api, item: Object, container: Object) -> frozenset[tuple[str, str]]:
    """Return the Services that a controller sends TCP ports to, by the ConfigMap it names."""
    named = next((given for each in STREAMS if (given := flag(container, each))), "")
    where, _, name = named.replace(OWN_NAMESPACE, item["metadata"]["namespace"]).partition("/")
    found = one(api, f"/api/v1/namespaces/{where}/configmaps/{name}") if name else None
    ports = ((found or {}).get("data") or {}).values()
    return frozenset(
        (space, service)
        for each in ports
        for space, _, service in (str(each).partition(":")[0].partition("/"),)
        if service
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
