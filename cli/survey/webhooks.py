"""Reads the webhooks that are asked about evictions and new pods, and whether anybody answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cli.survey.admission import LEASES, is_asked, steps_of, without
from cli.survey.listing import items, one
from cli.survey.objects import is_ready, name_of
from cli.survey.trust import lapsed_trust, trusted_until
from core.selectors import requirements
from core.survey.tool_facts import EvictionWebhook, PodWebhook
from infra.eks.api import Api, Object

BESIDE_THE_SERVER = re.compile(r"https://(127\.0\.0\.1|localhost|\[::1\])[:/]")
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def eviction_webhooks(api: Api, now: float) -> tuple[EvictionWebhook, ...]:
    return tuple(
        EvictionWebhook(
            name=name_of(item),
            mutating=kind == KINDS[0],
            fails_closed=webhook.get("failurePolicy", "Fail") == "Fail",
            unanswered=_silence_reason(api, webhook.get("clientConfig") or {}, now),
            general=not is_asked(webhook.get("rules"), "pods/eviction", "CREATE", by_name=True),
            leaves_out=_left_out(api, webhook),
        )
        for kind in KINDS
        for item in items(api, ADMISSION, kind)
        for webhook in item.get("webhooks") or ()
        if is_asked(webhook.get("rules"), "pods/eviction", "CREATE")
    )


def pod_webhooks(api: Api, now: float) -> tuple[PodWebhook, ...]:
    """Return webhooks without which a broker does not move: unanswered, outside, or till when."""
    return tuple(
        PodWebhook(
            name=f"{webhook['name']} of {item['metadata']['name']}",
            unanswered=why,
            outside=_outside(webhook),
            leaves_out=without(api, webhook),
            match_labels=(selector := webhook.get("objectSelector") or {}).get("matchLabels") or {},
            expressions=requirements(selector.get("matchExpressions")),
            conditional=bool(webhook.get("matchConditions")),
            of_pods=of_pods,
            pod_steps=pod_steps if alike else frozenset(),
            steps=_steps(api, webhook) if alike else frozenset(),
            trusted_until=until,
        )
        for kind in KINDS
        for item in items(api, ADMISSION, kind)
        for webhook in item.get("webhooks") or ()
        if webhook.get("failurePolicy", "Fail") == "Fail"
        # By its labels a webhook is asked of some objects alone, and of which is not known here.
        for alike in (not webhook.get("objectSelector"),)
        for of_pods in (is_asked(webhook.get("rules"), "pods", "CREATE"),)
        for pod_steps in (steps_of(webhook.get("rules"), of_pods=True),)
        if of_pods or (alike and (pod_steps or steps_of(webhook.get("rules"))))
        for until in (trusted_until(webhook.get("clientConfig") or {}),)
        if (why := _silence_reason(api, webhook.get("clientConfig") or {}, now))
        or _outside(webhook)
        or until
    )


def _steps(api: Api, webhook: Object) -> frozenset[str]:
    """Return what beside Kafka's pods waits for a webhook: leases are in a namespace of theirs."""
    found = steps_of(webhook.get("rules"))
    selector = webhook.get("namespaceSelector")
    leases = selector and LEASES in without(api, webhook)
    return steps_of(webhook.get("rules"), leases=False) if leases else found


def _outside(webhook: Object) -> str | None:
    """Return the address of who is asked outside the cluster; EKS's own stand beside the server."""
    url = str((webhook.get("clientConfig") or {}).get("url") or "")
    return None if not url or BESIDE_THE_SERVER.match(url) else url


def _left_out(api: Api, webhook: Object) -> frozenset[str] | None:
    """Return the namespaces that a webhook's selectors leave out; None: every one."""
    # An eviction has no labels that it could be chosen by.
    chosen = webhook.get("objectSelector") or {}
    if chosen.get("matchLabels") or any(
        each["operator"] in {"In", "Exists"} for each in chosen.get("matchExpressions") or ()
    ):
        return None
    return without(api, webhook)


def _silence_reason(api: Api, config: Object, now: float) -> str | None:
    """Return why nobody answers a webhook; None where somebody does, or nobody can tell."""
    service, lapsed = config.get("service"), lapsed_trust(config, now)
    if not service:
        return f"{config.get('url')}, {lapsed}" if lapsed else None
    where, name = service["namespace"], service["name"]
    found = one(api, f"/api/v1/namespaces/{where}/services/{name}")
    if found is None:
        return f"Service {where}/{name}, which does not exist"
    selector = (found.get("spec") or {}).get("selector") or {}
    if lapsed:
        return f"Service {where}/{name}, {lapsed}"
    # Without one its addresses are somebody's own.
    if not selector or any(is_ready(pod) for pod in _behind(api, where, selector)):
        return None
    return f"Service {where}/{name}, behind which no pod is ready"


def _behind(api: Api, namespace: str, selector: Mapping[str, str]) -> Iterator[Object]:
    written = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return items(api, "/api/v1", "pods", namespace, labelSelector=written)
