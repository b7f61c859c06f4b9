"""Reads who sends clients to pods of Kafka: bindings, Services, the controller behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cli.survey.listing import custom, items, one
from cli.survey.objects import labels, name_of, title_of
from cli.survey.tools import down, flag, running
from core.survey.balancing import AUTO_MODE_LABEL, GATE_LABEL
from core.survey.tool_facts import Balanced, BalancerController
from infra.eks.api import Api, Object

GATE_LABELS = (GATE_LABEL, AUTO_MODE_LABEL)
AUTO_MODE = "eks.amazonaws.com"
STRIMZI = "strimzi.io/cluster"
GROUPS = ("elbv2.k8s.aws", AUTO_MODE)


def balancer_controllers(found: Iterable[Object]) -> tuple[BalancerController, ...]:
    return tuple(
        BalancerController(
            title=title_of(item),
            version=str(container["image"]).partition("@")[0].rpartition("/")[2].partition(":")[2],
            limits_backoff=flag(container, "targetgroupbinding-max-exponential-backoff-delay")
            is not None,
            down=down(item),
        )
        for item, container in running(found, r"aws-load-balancer-controller")
    )


def read_balanced(api: Api, namespace: str | None) -> tuple[Balanced, ...]:
    """Return what binds targets to Services, and Services whose load balancer nobody binds."""
    found = [
        _binding(api, group, item)
        for group in GROUPS
        for item in custom(api, group, "targetgroupbindings", namespace)
    ]
    return (*(each for each, _ in found), *_unbound(api, namespace, {s for _, s in found}))


def _binding(api: Api, group: str, item: Object) -> tuple[Balanced, tuple[str, str]]:
    where, name = item["metadata"]["namespace"], item["spec"]["serviceRef"]["name"]
    service = one(api, f"/api/v1/namespaces/{where}/services/{name}") or {}
    made = Balanced(
        namespace=where,
        name=item["metadata"]["name"],
        selector=service.get("spec", {}).get("selector") or {},
        by_node=item["spec"].get("targetType") == "instance",
        of_auto_mode=group == AUTO_MODE,
        target_group=item["spec"].get("targetGroupARN") or item["spec"].get("targetGroupName"),
    )
    return made, (where, name)


def _unbound(api: Api, namespace: str | None, bound: set[tuple[str, str]]) -> Iterator[Balanced]:
    """Return Services of nodes' ports, by a load balancer or without, that nothing binds to pods.

    One of a class that is not AWS's is somebody else's, of whom nothing is known.
    """
    for item in items(api, "/api/v1", "services", namespace):
        spec, where = item.get("spec") or {}, str(item["metadata"].get("namespace"))
        name = name_of(item)
        if spec.get("type") not in {"LoadBalancer", "NodePort"} or (where, name) in bound:
            continue
        if not spec.get("loadBalancerClass"):
            selector = spec.get("selector") or {}
            yield Balanced(
                namespace=where,
                name=name,
                selector=selector,
                by_node=True,
                kind="Service",
                # Its brokers tell clients the address of their own node.
                own_port=spec["type"] == "NodePort" and STRIMZI in labels(item),
            )


def gated_namespaces(api: Api) -> dict[str, frozenset[str]]:
    found = {
        name_of(item): frozenset(key for key in GATE_LABELS if labels(item).get(key) == "enabled")
        for item in items(api, "/api/v1", "namespaces")
    }
    return {name: given for name, given in found.items() if given}
