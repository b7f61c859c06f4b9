"""Admission on the real API server: functions write their own fields and no others."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from core.ground import naming
from core.ground.errors import Conflict
from handlers.adapters.eks import EksApi
from handlers.adapters.kubernetes import EksDrain, EksNodes
from infra.functions.catalogue import tick_limits, volumes_limits
from infra.functions.definition import WriteLimit
from local.kubernetes import crds
from local.kubernetes.client import Api, ApiError
from local.twin import Twin
from tests.integration.waiting import until

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration
GROUP = NAME = "limit-test"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
NODE, PODS = f"/api/v1/nodes/{NAME}", "/api/v1/namespaces/default/pods"
POD = f"{PODS}/{NAME}"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
BUDGET_NAME = naming.budget_of_the_staying(NAME)
BUDGET = f"{BUDGETS}/{BUDGET_NAME}"
POOLS = "/apis/kafka.strimzi.io/v1/namespaces/default/kafkanodepools"
POOL, DEFINITION = f"{POOLS}/{NAME}", "kafkanodepools.kafka.strimzi.io"
STORAGE: dict[str, Any] = {
    "type": "jbod",
    "volumes": [{"id": 0, "type": "persistent-claim", "size": "1Gi"}],
}
TAINT = {"key": "dedicated", "value": "kafka", "effect": "NoSchedule"}
GONE = {"key": naming.OUT_OF_SERVICE_TAINT, "value": "nodeshutdown", "effect": "NoExecute"}


@pytest.fixture
def tick(twin: Twin) -> Iterator[Api]:
    """A client of a group that may patch every object here, within tick's and volumes' limits."""
    made: list[str] = []

    def post(path: str, body: Mapping[str, Any], name: str = NAME) -> None:
        twin.api.post(path, {"metadata": {"name": name}, **body})
        made.append(f"{path}/{name}")

    limits = [*tick_limits(), *volumes_limits()]
    rules = [
        {"apiGroups": [each.api_group], "resources": [each.resource], "verbs": ["get", "patch"]}
        for each in limits
    ]
    post(f"{RBAC}/clusterroles", {"rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP}
    post(f"{RBAC}/clusterrolebindings", {"roleRef": reference, "subjects": [subject]})
    labels = {"stillwater.dev/pool": "broker"}
    post(
        "/api/v1/nodes", {"metadata": {"name": NAME, "labels": labels}, "spec": {"taints": [TAINT]}}
    )
    containers = [{"name": "kafka", "image": "kafka:4"}]
    quiet = {"schedulerName": "nobody", "automountServiceAccountToken": False}
    ours = {"name": NAME, "labels": {naming.CLUSTER_LABEL: NAME}}
    post(PODS, {"metadata": ours, "spec": {**quiet, "containers": containers}})
    selector = {"matchLabels": {"limit": "test"}}
    post(BUDGETS, {"spec": {"maxUnavailable": 1, "selector": selector}}, BUDGET_NAME)
    crds.install(twin.api)
    served = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{DEFINITION}"
    until(lambda: "acceptedNames" in twin.api.get(served).get("status", {}), "it is served")
    pool = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaNodePool"}
    post(POOLS, {**pool, "spec": {"replicas": 1, "roles": ["broker"], "storage": STORAGE}})
    for limit in limits:
        _install(post, limit)
    client = Api(twin.api.server, None)
    client._pool = twin.api._pool
    headers = {"Impersonate-User": "tick", "Impersonate-Group": GROUP}
    client._headers = lambda: {**twin.api._headers(), **headers}  # type: ignore[method-assign]
    try:
        # A policy holds a moment after it is written.
        for path in (NODE, POD, BUDGET, POOL):
            until(lambda at=path: _refused(client, at, _another()), "it holds")
        yield client
    finally:
        for path in reversed(made):
            twin.api.delete(path, {"gracePeriodSeconds": 0} if path == POD else None)


def _install(post: Any, limit: WriteLimit) -> None:
    name = f"{NAME}-{limit.resource}"
    post(
        f"{ADMISSION}/validatingadmissionpolicies", {"spec": limit.render(GROUP, "the group")}, name
    )
    bound = {"policyName": name, "validationActions": ["Deny"]}
    post(f"{ADMISSION}/validatingadmissionpolicybindings", {"spec": bound}, name)


def _another() -> dict[str, Any]:
    """Return a change that is one each time: what changes nothing is let through."""
    return {"metadata": {"labels": {"a": secrets.token_hex(4)}}}


def _refused(api: Api, path: str, change: dict[str, Any]) -> bool:
    try:
        api.merge(path, change)
    except ApiError as error:
        if "ValidatingAdmissionPolicy" in str(error):
            return True
        raise
    return False


class _AsTheTick(EksApi):
    """The functions' own client, as a member of the group."""

    def _response(self, method: str, path: str, headers: Any, **options: Any) -> Any:
        who = {"Impersonate-User": "tick", "Impersonate-Group": GROUP}
        return super()._response(method, path, {**headers, **who}, **options)


def test_whatever_the_adapters_write_is_let_through(tick: Api, plane: Plane) -> None:
    api = plane.handlers_api(_AsTheTick)
    nodes, drain = EksNodes(api, "default", NAME), EksDrain(api, "default", NAME)
    writes: list[tuple[Callable[[], object], str]] = [
        (lambda: nodes.mark_spare(NAME, "i-0b"), NODE),
        (lambda: nodes.mark_spare(NAME, None), NODE),
        # The adapter taints the Node of an instance, and this one has none.
        (lambda: tick.merge(NODE, {"spec": {"taints": [TAINT, GONE]}}), NODE),
        (lambda: tick.merge(NODE, {"spec": {"taints": [TAINT]}}), NODE),
        (lambda: drain.cordon(NAME, "i-0b"), NODE),
        (lambda: drain.uncordon(NAME, "i-0b"), NODE),
        (lambda: nodes.let_leave(NAME, "i-0b"), POD),
        (lambda: nodes.keep(NAME, "i-0b"), POD),
    ]
    for write, path in writes:
        version = plane.api.get(path)["metadata"]["resourceVersion"]
        until(partial(_written, write), "it is written")
        assert plane.api.get(path)["metadata"]["resourceVersion"] != version
    after = plane.api.get(NODE)
    assert TAINT in after["spec"]["taints"]
    assert "unschedulable" not in after["spec"]
    assert not set(naming.NODE_MARKS) & set(after["metadata"].get("annotations") or {})
    # What somebody else cordoned stays so, even with a mark that comes at the same moment.
    plane.api.merge(NODE, {"spec": {"unschedulable": True}})
    marked = {"annotations": {naming.CORDON_ANNOTATION: "i-0b"}}
    assert _refused(tick, NODE, {"spec": {"unschedulable": None}, "metadata": marked})
    assert list(plane.api.get(BUDGET)["metadata"]["annotations"]) == [naming.COUNTED_ANNOTATION]


def _written(write: Callable[[], object]) -> bool:
    """Write once; False where a controller has changed the object meanwhile."""
    try:
        write()
    except Conflict:
        return False
    return True


def test_the_volumes_function_writes_storage(tick: Api) -> None:
    larger = {**STORAGE["volumes"][0], "size": "2Gi"}
    tick.merge(POOL, {"spec": {"storage": {**STORAGE, "volumes": [larger]}}})


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (NODE, {"spec": {"taints": []}}),
        (NODE, {"spec": {"taints": [{**TAINT, "effect": "NoExecute"}]}}),
        (NODE, {"spec": {"taints": [TAINT, {"key": "a", "effect": "NoSchedule"}]}}),
        (NODE, {"spec": {"unschedulable": True}}),
        (NODE, {"metadata": {"labels": {"stillwater.dev/pool": "system"}}}),
        (NODE, {"metadata": {"labels": None}}),
        (NODE, {"metadata": {"annotations": {"a": "b"}}}),
        (NODE, {"metadata": {"finalizers": ["a.example/b"]}}),
        (POD, {"spec": {"containers": [{"name": "kafka", "image": "attacker:1"}]}}),
        (POD, {"metadata": {"labels": {"strimzi.io/cluster": "orders"}}}),
        (POD, {"metadata": {"annotations": {"a": "b"}}}),
        (BUDGET, {"spec": {"maxUnavailable": 3}}),
        (BUDGET, {"metadata": {"labels": {"a": "b"}}}),
        (POOL, {"spec": {"replicas": 0}}),
        (POOL, {"spec": {"roles": ["controller"]}}),
        (POOL, {"spec": {"resources": {"limits": {"memory": "1Mi"}}}}),
        (POOL, {"metadata": {"annotations": {"strimzi.io/next-node-ids": "[9]"}}}),
    ],
)
def test_whatever_else_is_refused(tick: Api, path: str, change: dict[str, Any]) -> None:
    assert _refused(tick, path, change)
