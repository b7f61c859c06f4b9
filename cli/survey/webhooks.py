"""Reads the webhooks that are asked about evictions and new pods, and whether anybody answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cli.survey.listing import items, labels, one
from cli.survey.pods import requirements
from core.survey.selectors import selects
from core.survey.tool_facts import EvictionWebhook, PodWebhook
from infra.eks.api import Api, Object

# The eviction of pods as a rule of a webhook names it.
EVICTIONS = {"pods/eviction", "pods/*"}
EVERYTHING = "*/*"
BESIDE_THE_SERVER = re.compile(r"https://(127\.0\.0\.1|localhost|\[::1\])[:/]")
# A new pod.
PODS = {"pods", "*", EVERYTHING}
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def eviction_webhooks(api: Api) -> tuple[EvictionWebhook, ...]:
    kind = "validatingwebhookconfigurations"
    return tuple(
        EvictionWebhook(
            name=str(item["metadata"]["name"]),
            fails_closed=webhook.get("failurePolicy", "Fail") == "Fail",
            unanswered=_silence_reason(api, webhook.get("clientConfig") or {}),
            general=not EVICTIONS & resources,
            leaves_out=_left_out(api, webhook),
        )
        for item in items(api, ADMISSION, kind)
        for webhook in item.get("webhooks") or ()
        if (resources := _asked_about(webhook)) & {*EVICTIONS, EVERYTHING}
    )


def pod_webhooks(api: Api) -> tuple[PodWebhook, ...]:
    """Return webhooks without which no pod is created, and which nobody here answers."""
    return tuple(
        PodWebhook(
            name=f"{webhook['name']} of {item['metadata']['name']}",
            unanswered=why,
            outside=_outside(webhook),
            leaves_out=_without(api, webhook),
            match_labels=(webhook.get("objectSelector") or {}).get("matchLabels") or {},
            expressions=requirements(webhook.get("objectSelector") or {}),
            conditional=bool(webhook.get("matchConditions")),
        )
        for kind in KINDS
        for item in items(api, ADMISSION, kind)
        for webhook in item.get("webhooks") or ()
        if PODS & _asked_about(webhook) and webhook.get("failurePolicy", "Fail") == "Fail"
        if (why := _silence_reason(api, webhook.get("clientConfig") or {})) or _outside(webhook)
    )


def _outside(webhook: Object) -> str | None:
    """Return the address of who is asked outside the cluster; EKS's own stand beside the server."""
    url = str((webhook.get("clientConfig") or {}).get("url") or "")
    return None if not url or BESIDE_THE_SERVER.match(url) else url


def _asked_about(webhook: Object) -> set[str]:
    """Return the resources of whose creation a webhook is asked."""
    return {
        str(resource)
        for rule in webhook.get("rules") or ()
        if {"CREATE", "*"} & set(rule.get("operations", ("*",)))
        # Pods are of the core group.
        if {"", "*"} & set(rule.get("apiGroups", ("*",)))
        for resource in rule.get("resources", ())
    }


def _left_out(api: Api, webhook: Object) -> frozenset[str] | None:
    """Return the namespaces that a webhook's selectors leave out; None: every one."""
    # An eviction has no labels that it could be chosen by.
    chosen = webhook.get("objectSelector") or {}
    if chosen.get("matchLabels") or any(
        each["operator"] in {"In", "Exists"} for each in chosen.get("matchExpressions") or ()
    ):
        return None
    return _without(api, webhook)


def _without(api: Api, webhook: Object) -> frozenset[str]:
    """Return the namespaces that a webhook's selector leaves out."""
    selector = webhook.get("namespaceSelector") or {}
    if not selector:
        return frozenset()
    return frozenset(
        str(item["metadata"]["name"])
        for item in items(api, "/api/v1", "namespaces")
        if not selects(
            selector.get("matchLabels") or {}, requirements(selector), _named_labels(item)
        )
    )


def _named_labels(namespace: Object) -> dict[str, str]:
    """Return a namespace's labels, the one that the API server adds among them."""
    return {"kubernetes.io/metadata.name": namespace["metadata"]["name"], **labels(namespace)}


def _silence_reason(api: Api, config: Object) -> str | None:
    """Return why nobody answers a webhook; None where somebody does, or nobody can tell."""
    service = config.get("service")
    if not service:
        return None
    where, name = service["namespace"], service["name"]
    found = one(api, f"/api/v1/namespaces/{where}/services/{name}")
    if found is None:
        return f"Service {where}/{name}, which does not exist"
    selector = (found.get("spec") or {}).get("selector") or {}
    # Without one its addresses are somebody's own.
    if not selector or any(_is_ready(pod) for pod in _behind(api, where, selector)):
        return None
    return f"Service {where}/{name}, behind which no pod is ready"


def _behind(api: Api, namespace: str, selector: Mapping[str, str]) -> Iterator[Object]:
    written = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return items(api, "/api/v1", "pods", namespace, labelSelector=written)


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
