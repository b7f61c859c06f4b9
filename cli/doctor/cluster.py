"""Reads Kubernetes for the doctor into a Snapshot: nine lists, with an EKS token."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from cli.doctor.account import Found
from cli.survey import kafka, tools
from cli.survey.listing import going, items, labels, name_of, status_of, title_of
from cli.survey.pods import strimzis_pod
from core.checks.balancing import name_in
from core.checks.drift import Expectation
from core.ground import constants, naming
from core.model import snapshot
from core.model.kafka import Volume
from infra.eks.api import Api, Object

Item = Mapping[str, Any]


def _listed(api: Api, path: str, **query: object) -> Iterator[Object]:
    prefix, _, kind = path.rpartition("/")
    return items(api, prefix, kind, None, **query)


class KubernetesCluster:
    """What Kubernetes holds of the cluster that is expected; `api` connects to it."""

    def __init__(self, expected: Expectation, api: Callable[[], Api]) -> None:
        self._expected, self.api = expected, api
        self._kafka = quote(expected.namespace)

    def readers(self) -> list[tuple[tuple[str, ...], Callable[[Api], Iterator[Found]]]]:
        """Return each reader with the part it yields."""
        return [
            (("namespaces",), self._namespaces),
            (("bindings",), self._bindings),
            (("services",), self._services),
            (("pods",), self._pods),
            (("volumes",), self._volumes),
            (("budgets",), self._budgets),
            (
                ("termination_handlers", "drain_cleaners", "second_handlers"),
                self._workloads,
            ),
            (("kafkas",), self._kafkas),
            (("connect_bindings",), self._connect_bindings),
        ]

    def _namespaces(self, api: Api) -> Iterator[Found]:
        listed = _listed(
            api, "/api/v1/namespaces", fieldSelector=f"metadata.name={self._expected.namespace}"
        )
        yield (
            "namespaces",
            {
                name_of(item): snapshot.Namespace(
                    gate_label=labels(item).get(naming.READINESS_GATE_LABEL),
                )
                for item in listed
            },
        )

    def _bindings(self, api: Api) -> Iterator[Found]:
        path = f"/apis/elbv2.k8s.aws/v1beta1/namespaces/{self._kafka}/targetgroupbindings"
        yield "bindings", {name_of(item): _binding(item["spec"]) for item in _listed(api, path)}

    def _services(self, api: Api) -> Iterator[Found]:
        yield (
            "services",
            {
                name_of(item): frozenset(
                    str(port.get("name", port["port"])) for port in item["spec"].get("ports") or ()
                )
                for item in _listed(api, f"/api/v1/namespaces/{self._kafka}/services")
            },
        )

    def _pods(self, api: Api) -> Iterator[Found]:
        listed = _listed(
            api,
            f"/api/v1/namespaces/{self._kafka}/pods",
            labelSelector=f"{naming.CLUSTER_LABEL}={self._expected.cluster}",
        )
        yield "pods", {name_of(item): strimzis_pod(item) for item in listed if _runs_kafka(item)}

    def _connect_bindings(self, api: Api) -> Iterator[Found]:
        name = naming.connect_init_binding(self._expected.namespace, self._expected.cluster)
        listed = _listed(
            api,
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            fieldSelector=f"metadata.name={name}",
        )
        yield "connect_bindings", {name_of(item): True for item in listed}

    def _volumes(self, api: Api) -> Iterator[Found]:
        ours = re.compile(rf"data-\d+-{re.escape(self._expected.cluster)}-.+-\d+")
        found = {}
        for item in _listed(api, "/api/v1/persistentvolumes"):
            claim = item["spec"].get("claimRef") or {}
            space, name = str(claim.get("namespace")), str(claim.get("name", ""))
            if space == self._expected.namespace and ours.fullmatch(name):
                reclaim = str(item["spec"].get("persistentVolumeReclaimPolicy"))
                found[name_of(item)] = Volume(namespace=space, claim=name, reclaim=reclaim)
        yield "volumes", found

    def _budgets(self, api: Api) -> Iterator[Found]:
        found = tools.budgets_in(api, self._expected.namespace)
        yield "budgets", {each.name: each for each in found}

    def _workloads(self, api: Api) -> Iterator[Found]:
        """Read what drains or rolls beside us, wherever it was installed."""
        listed = list(_listed(api, "/apis/apps/v1/deployments"))
        title = f"{constants.NTH_NAMESPACE}/{constants.NTH_RELEASE}"
        yield (
            "termination_handlers",
            {
                name_of(item): replace(each, down=each.down or not _is_wanted(item))
                for item in listed
                if title_of(item) == title
                for each in tools.handlers([item])
            },
        )
        yield (
            "drain_cleaners",
            {
                each.title: each
                for each in tools.cleaners(listed)
                if each.namespaces is None or self._expected.namespace in each.namespaces
            },
        )
        # Last: a handler whose settings stand in another object costs no other part.
        beside = [item for item in listed if title_of(item) != title]
        beside += _listed(api, "/apis/apps/v1/daemonsets")
        # One that is scaled to none drains nobody.
        found = tools.handlers(filter(_is_wanted, beside))
        yield "second_handlers", {each.title: each for each in found}

    def _kafkas(self, api: Api) -> Iterator[Found]:
        found = kafka.kafkas(api, self._expected.namespace)
        yield "kafkas", {each.name: each for each in found if each.name == self._expected.cluster}


def _binding(spec: Item) -> snapshot.Binding:
    named = spec.get("targetGroupARN") or spec.get("targetGroupName", "")
    return snapshot.Binding(
        target_group=name_in(str(named)),
        service=str(spec["serviceRef"]["name"]),
        port=str(spec["serviceRef"]["port"]),
        target_type=str(spec.get("targetType")),
    )


def _runs_kafka(item: Object) -> bool:
    """Say whether a pod is a node of Kafka's that runs; one that goes or has not begun does not."""
    return (
        status_of(item).get("phase") == "Running"
        and not going(item)
        and naming.node_id_of_pod(name_of(item)) is not None
        and naming.POOL_LABEL in labels(item)
    )


def _is_wanted(workload: Item) -> bool:
    return bool(workload["spec"].get("replicas", 1))
