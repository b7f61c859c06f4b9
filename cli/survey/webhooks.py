"""Reads who judges evictions and new pods, and which workloads may evict pods or delete nodes.

A program whose image is not known is known by what it may do. Accounts that may do anything are
left out: of those nothing can be told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cli.survey.kafka import lapsed_trust, trusted_until
from cli.survey.tools import (
    KNOWN,
    custom,
    is_ready,
    items,
    labels,
    name_of,
    one,
    status_of,
    title_of,
)
from core.ground.placement import is_selected, requirements
from core.model.workloads import AdmissionPolicy, EvictionWebhook, Evictor, PodWebhook
from infra.eks.api import Api, Object

GROUP = "admissionregistration.k8s.io"
# In which the kubelets say that they live.
LEASES = "kube-node-lease"
# Where the eviction gate runs.
GATES = "kube-system"
POD, NODE = "pods", "nodes"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a broker's move asks of the API server."""

    words: str
    resource: str
    operation: str
    group: str = ""
    # Whether it is about a pod of Kafka, or of Stillwater's, in its namespace.
    of_pod: bool = False


STEPS = (
    Step("a pod is given its node", "pods/binding", "CREATE", of_pod=True),
    Step("a pod is deleted", POD, "DELETE", of_pod=True),
    Step("a node joins", NODE, "CREATE"),
    Step("a node is cordoned", NODE, "UPDATE"),
    Step("a node says how it is", "nodes/status", "UPDATE"),
    Step("a node says that it lives", "leases", "UPDATE", "coordination.k8s.io"),
    Step("a disk is attached", "volumeattachments", "CREATE", "storage.k8s.io"),
)
# What policies are asked for: of what they say in general nothing is to be told.
JUDGED = (
    Step("a pod is evicted", "pods/eviction", "CREATE", of_pod=True),
    Step("a node is cordoned", NODE, "UPDATE"),
    Step("a node joins", NODE, "CREATE"),
)
# What Stillwater makes from level gate on, where policies most often ask for labels, images, roles.
INSTALLED = (
    Step("a Deployment is created", "deployments", "CREATE", "apps", of_pod=True),
    Step("a ClusterRole is created", "clusterroles", "CREATE", "rbac.authorization.k8s.io"),
    Step(
        "a ClusterRoleBinding is created",
        "clusterrolebindings",
        "CREATE",
        "rbac.authorization.k8s.io",
    ),
    Step("a webhook is made known", "validatingwebhookconfigurations", "CREATE", GROUP),
)
CREATED = Step("a pod is created", POD, "CREATE", of_pod=True)


def is_asked(
    rules: Iterable[Object] | None,
    resource: str,
    operation: str,
    *,
    group: str = "",
    by_name: bool = False,
) -> bool:
    """Say whether rules of admission match an operation; `by_name`: not by a * alone."""
    return any(
        _matches(rule, resource, by_name=by_name)
        and {operation, "*"} & set(rule.get("operations", ("*",)))
        and {group, "*"} & set(rule.get("apiGroups", ("*",)))
        for rule in rules or ()
    )


def _matches(rule: Object, resource: str, *, by_name: bool) -> bool:
    kind, _, part = resource.partition("/")
    if rule.get("scope") == "Namespaced" and kind in {NODE, "volumeattachments"}:
        return False
    if rule.get("scope") == "Cluster" and kind in {POD, "leases"}:
        return False
    # A * stands for every resource, and for none of their parts.
    named = {resource, f"{kind}/*"} if part else {resource}
    general = {"*/*", f"*/{part}"} if part else {"*", "*/*"}
    return bool((named if by_name else named | general) & set(rule.get("resources", ())))


def steps_of(
    rules: Iterable[Object] | None, *, of_pods: bool = False, leases: bool = True
) -> frozenset[str]:
    """Return the steps that rules ask about: of Kafka's pods, or of what is beside them."""
    given = [*(rules or ())]
    return frozenset(
        each.words
        for each in STEPS
        if each.of_pod is of_pods and (leases or each.resource != "leases")
        if is_asked(given, each.resource, each.operation, group=each.group)
    )


def policies(api: Api) -> tuple[AdmissionPolicy, ...]:
    """Return ValidatingAdmissionPolicies that deny, and that name what a broker's move asks."""
    denying = {
        str(item["spec"]["policyName"]): (item["spec"].get("matchResources") or {})
        for item in custom(api, GROUP, "validatingadmissionpolicybindings", None)
        if "Deny" in (item["spec"].get("validationActions") or ())
    }
    return tuple(_policies(api, custom(api, GROUP, "validatingadmissionpolicies", None), denying))


def _policies(
    api: Api, found: Iterable[Object], denying: Mapping[str, Object]
) -> Iterator[AdmissionPolicy]:
    for item in found:
        name, spec = name_of(item), item["spec"]
        if name not in denying:
            continue
        narrowed = denying[name]
        matching = spec.get("matchConstraints") or {}
        # What is bound is what both of them match.
        rules = narrowed.get("resourceRules") or matching.get("resourceRules")
        broken = _broken(item) if spec.get("failurePolicy", "Fail") == "Fail" else None
        wanted = (*JUDGED, CREATED) if broken else JUDGED
        steps = frozenset(
            each.words
            for each in wanted
            if is_asked(rules, each.resource, each.operation, by_name=each is not CREATED)
        )
        asked = [
            each
            for each in INSTALLED
            if is_asked(rules, each.resource, each.operation, group=each.group, by_name=True)
        ]
        if steps or asked:
            left = left_out_namespaces(api, matching) | left_out_namespaces(api, narrowed)
            installs = frozenset(
                each.words for each in asked if not (each.of_pod and GATES in left)
            )
            yield AdmissionPolicy(
                name=name, steps=steps, installs=installs, leaves_out=left, broken=broken
            )


def _broken(item: Object) -> str | None:
    """Return the first thing that the API server finds wrong with a policy's expressions."""
    checked = status_of(item).get("typeChecking") or {}
    for each in checked.get("expressionWarnings") or ():
        return " ".join(str(each.get("warning") or each.get("fieldRef")).split())
    return None


def left_out_namespaces(api: Api, matching: Object) -> frozenset[str]:
    """Return the namespaces that a namespaceSelector leaves out."""
    selector = matching.get("namespaceSelector") or {}
    if not selector:
        return frozenset()
    return frozenset(
        name_of(item)
        for item in items(api, "/api/v1", "namespaces")
        if not is_selected({**labels(item), "kubernetes.io/metadata.name": name_of(item)}, selector)
    )


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
            leaves_out=left_out_namespaces(api, webhook),
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
    leases = selector and LEASES in left_out_namespaces(api, webhook)
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
    return left_out_namespaces(api, webhook)


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


RBAC = "/apis/rbac.authorization.k8s.io/v1"
# Resource -> the verbs by which a pod leaves.
ENDING: Mapping[str, frozenset[str]] = {
    "pods/eviction": frozenset({"create"}),
    "nodes": frozenset({"delete", "deletecollection"}),
}
# Kubernetes' own roles, for people.
ITS_OWN = "kubernetes.io/bootstrapping"
Account = tuple[str, str]


def evictors(api: Api, workloads: Iterable[Object], spaces: Iterable[str]) -> tuple[Evictor, ...]:
    """Return workloads whose account may evict pods, or delete nodes, of some namespaces."""
    allowed = _allowed_accounts(api, spaces)
    found = {}
    for item in workloads:
        spec = item["spec"]["template"]["spec"]
        images = " ".join(str(each.get("image", "")) for each in spec["containers"])
        namespace = str(item["metadata"]["namespace"])
        role = allowed.get((namespace, str(spec.get("serviceAccountName") or "default")))
        if role and not KNOWN.search(images):
            found[title_of(item)] = Evictor(title=title_of(item), tool=images, by_role=role)
    return tuple(found.values())


def _allowed_accounts(api: Api, spaces: Iterable[str]) -> dict[Account, str]:
    """Return accounts that may, each with a role by which."""
    cluster = {
        name_of(item)
        for item in items(api, RBAC, "clusterroles")
        if ITS_OWN not in labels(item) and _ends(item)
    }
    found = dict(_bound_accounts(items(api, RBAC, "clusterrolebindings"), cluster, frozenset()))
    for space in sorted(set(spaces)):
        own = {name_of(i) for i in items(api, RBAC, "roles", space) if _ends(i)}
        found |= dict(_bound_accounts(items(api, RBAC, "rolebindings", space), cluster, own))
    return found


def _ends(role: Object) -> bool:
    """Say whether a role names what ends pods; one for everything names nothing."""
    return any(
        verbs & {*rule.get("verbs", ()), *({"create", "delete"} if "*" in rule["verbs"] else ())}
        for rule in role.get("rules") or ()
        for resource, verbs in ENDING.items()
        if resource in (rule.get("resources") or ())
    )


def _bound_accounts(
    bindings: Iterable[Object], cluster: Iterable[str], own: Iterable[str]
) -> Iterator[tuple[Account, str]]:
    names = {"ClusterRole": set(cluster), "Role": set(own)}
    for item in bindings:
        kind, name = str(item["roleRef"]["kind"]), str(item["roleRef"]["name"])
        if name not in names.get(kind, ()):
            continue
        for subject in item.get("subjects") or ():
            if subject["kind"] == "ServiceAccount":
                space = subject.get("namespace") or item["metadata"].get("namespace")
                yield (str(space), str(subject["name"])), f"{kind} {name}"
