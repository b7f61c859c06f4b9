"""Reads Kubernetes for the doctor into a Snapshot: nine lists, with an EKS token."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from cli.doctor.account import Found
from cli.survey import tools
from cli.survey.listing import items, labels, name_of, title_of
from cli.target import Target
from core import constants, naming
from core.checks.balancing import name_in
from core.checks.drift import Expectation
from core.cluster import rights
from core.model import snapshot
from core.placement import placement_of
from core.selectors import is_selected
from handlers.adapters.eks import eks_token
from infra.eks.api import Api, Object

DRAIN_TIMEOUT = "NODE_TERMINATION_GRACE_PERIOD"
Item = Mapping[str, Any]


def _listed(api: Api, path: str, **query: object) -> Iterator[Object]:
    prefix, _, kind = path.rpartition("/")
    return items(api, prefix, kind, None, **query)


class KubernetesCluster:
    """One EKS cluster, through the identity of a target; `connect` is asked once, when needed."""

    def __init__(
        self, target: Target, expected: Expectation, connect: Callable[[], tuple[str, str]]
    ) -> None:
        self._target, self._expected, self._connect = target, expected, connect
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

    def api(self) -> Api:
        """Return the API server that EKS names, asked as the caller."""
        endpoint, ca = self._connect()
        prefix, region = self._target.spec.prefix, self._target.spec.region
        return Api(
            endpoint,
            lambda: eks_token(prefix, region, self._target.session),
            ca_pem=base64.b64decode(ca).decode(),
        )

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
                name_of(item): snapshot.Service(
                    ports=frozenset(
                        str(port.get("name", port["port"]))
                        for port in item["spec"].get("ports") or ()
                    )
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
        yield "pods", {name_of(item): pod for item in listed if (pod := _pod(item)) is not None}

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
            name = str(claim.get("name", ""))
            if claim.get("namespace") == self._expected.namespace and ours.fullmatch(name):
                found[name_of(item)] = snapshot.Volume(
                    claim=name,
                    reclaim_policy=str(item["spec"].get("persistentVolumeReclaimPolicy")),
                )
        yield "volumes", found

    def _budgets(self, api: Api) -> Iterator[Found]:
        path = f"/apis/policy/v1/namespaces/{self._kafka}/poddisruptionbudgets"
        yield (
            "budgets",
            {
                name_of(item): snapshot.Budget(
                    min_available=_text(item["spec"].get("minAvailable")),
                    max_unavailable=_text(item["spec"].get("maxUnavailable")),
                    of_kafka=self._covers_kafka(item["spec"].get("selector")),
                )
                for item in _listed(api, path)
            },
        )

    def _covers_kafka(self, selector: Item | None) -> bool:
        """Say whether a selector matches pods of Kafka's nodes, by what Strimzi labels them."""
        name = self._expected.cluster
        given = {
            naming.CLUSTER_LABEL: name,
            naming.KIND_LABEL: "Kafka",
            "strimzi.io/name": naming.kafka_component(name),
            "app.kubernetes.io/name": "kafka",
            "app.kubernetes.io/instance": name,
            "app.kubernetes.io/managed-by": naming.STRIMZI_OPERATOR,
            "app.kubernetes.io/part-of": f"strimzi-{name}",
        }
        return is_selected(given, selector)

    def _workloads(self, api: Api) -> Iterator[Found]:
        """Read what drains or rolls beside us, wherever it was installed."""
        listed = list(_listed(api, "/apis/apps/v1/deployments"))
        handler = (constants.NTH_NAMESPACE, constants.NTH_RELEASE)
        yield (
            "termination_handlers",
            {
                name_of(item): _termination_handler(item)
                for item in listed
                if (item["metadata"]["namespace"], name_of(item)) == handler
            },
        )
        yield (
            "drain_cleaners",
            {
                each.title: snapshot.DrainCleaner(drains_kafka=each.drains_kafka)
                for each in tools.cleaners(listed)
                if each.namespaces is None or self._expected.namespace in each.namespaces
            },
        )
        # Last: a handler whose settings stand in another object costs no other part.
        beside = [
            item for item in listed if (item["metadata"]["namespace"], name_of(item)) != handler
        ]
        yield (
            "second_handlers",
            _second_handlers([*beside, *_listed(api, "/apis/apps/v1/daemonsets")]),
        )

    def _kafkas(self, api: Api) -> Iterator[Found]:
        path = f"/apis/kafka.strimzi.io/v1/namespaces/{self._kafka}/kafkas"
        ours = f"metadata.name={self._expected.cluster}"
        listed = _listed(api, path, fieldSelector=ours)
        yield "kafkas", {name_of(item): _kafka(item) for item in listed}


def _kafka(item: Item) -> snapshot.Kafka:
    spec = item["spec"]["kafka"]
    authorization = spec.get("authorization") or {}
    return snapshot.Kafka(
        doors=frozenset(
            snapshot.door_of(
                str(each["name"]),
                (each.get("authentication") or {}).get("type"),
                tls=bool(each.get("tls")),
            )
            for each in spec.get("listeners") or ()
        ),
        authorization=str(authorization.get("type", "none")),
        super_users=frozenset(str(user) for user in authorization.get("superUsers") or ()),
        everyone_may=rights.everyone_may(spec.get("config") or {}),
    )


def _binding(spec: Item) -> snapshot.Binding:
    named = spec.get("targetGroupARN") or spec.get("targetGroupName", "")
    return snapshot.Binding(
        target_group=name_in(str(named)),
        service=str(spec["serviceRef"]["name"]),
        port=str(spec["serviceRef"]["port"]),
        target_type=str(spec.get("targetType")),
    )


def _pod(item: Item) -> snapshot.Pod | None:
    """Read a running pod of Kafka's; one that goes or has not begun, or is no node, is None."""
    node_id = naming.node_id_of_pod(name_of(item))
    running = item.get("status", {}).get("phase") == "Running"
    if not running or "deletionTimestamp" in item["metadata"]:
        return None
    if node_id is None or naming.POOL_LABEL not in labels(item):
        return None
    return snapshot.Pod(
        node_id=node_id,
        is_broker=labels(item).get(naming.BROKER_ROLE_LABEL) == "true",
        gates=frozenset(g["conditionType"] for g in item["spec"].get("readinessGates") or ()),
    )


def _termination_handler(item: Item) -> snapshot.TerminationHandler:
    pod = item["spec"]["template"]["spec"]
    variables = {
        variable["name"]: variable.get("value")
        for container in pod["containers"]
        for variable in container.get("env") or ()
    }
    drain = str(variables.get(DRAIN_TIMEOUT) or "")
    return snapshot.TerminationHandler(
        drain_timeout_seconds=int(drain) if drain.isdecimal() else None,
        grace_seconds=pod.get("terminationGracePeriodSeconds"),
        runs=bool(item["spec"].get("replicas", 1)) and not tools.down(dict(item)),
    )


def _second_handlers(found: Iterable[Item]) -> dict[str, snapshot.SecondHandler]:
    """Return termination handlers by title; one that is scaled to none drains nobody."""
    running = [dict(item) for item in found if item["spec"].get("replicas", 1)]
    tolerant = {title_of(item): _tolerates_ours(item) for item in running}
    return {
        each.title: snapshot.SecondHandler(
            queue=(each.queue_url or "").rpartition("/")[2] if each.queue_mode else None,
            on_kafkas_nodes=tolerant[each.title],
        )
        for each in tools.handlers(running)
    }


def _tolerates_ours(workload: Item) -> bool:
    wants = placement_of(workload["spec"]["template"]["spec"])
    key, value = naming.DEDICATED_TAINT_KEY, naming.DEDICATED_TAINT_VALUE
    return wants.tolerates(key, value, "NoSchedule")


def _text(value: object) -> str | None:
    return None if value is None else str(value)
