"""Reads which workloads may evict pods or delete nodes, by the roles of their accounts.

A program that nobody here knows by its image is known by what it may do. Accounts that may do
anything are left out: of those nothing can be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cli.survey.listing import items, labels, name_of, title_of
from cli.survey.tools import KNOWN
from core.model.workloads import Evictor
from infra.eks.api import Api, Object

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
