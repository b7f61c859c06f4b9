"""The two disruption budgets on a real disruption controller: what a label opens, and for whom."""

from collections.abc import Iterator
from typing import cast

import pytest

from core.ground import naming
from core.incidents.observation import BudgetView
from handlers.adapters.eks import EksApi
from handlers.adapters.kubernetes import EksNodes
from infra.kafka.cluster import budgets
from local.kubernetes.client import Api, ApiError, find
from local.twin import Twin
from tests.integration.administrator import Administrator, namespace
from tests.integration.waiting import until
from tests.unit.infra.programs import spec

pytestmark = pytest.mark.integration
NAMESPACE = "budgeted-kafka"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
BROKERS = (10, 11, 20, 21, 30, 31)
INCIDENT = "i-0a.1"


@pytest.fixture
def nodes(twin: Twin) -> Iterator[EksNodes]:
    """Six Ready pods under the budgets, without a node of their own."""
    api, rendered = twin.api, budgets(spec())
    rendered["staying"]["minAvailable"] = len(BROKERS) - 1
    names = {
        "staying": naming.budget_of_the_staying("orders"),
        "leaving": naming.budget_of_the_leaving("orders"),
    }
    with namespace(api, NAMESPACE):
        for key, name in names.items():
            api.post(BUDGETS, {"metadata": {"name": name}, "spec": rendered[key]})
        for broker in BROKERS:
            _ready(api, broker)
        made = EksNodes(cast("EksApi", Administrator(api)), NAMESPACE, "orders")
        until(lambda: _allowed(made) == (1, 0), "one may go of all six")
        yield made


def _ready(api: Api, broker: int) -> None:
    """Make a broker's pod, and say that it is Ready."""
    labels = {
        "strimzi.io/cluster": "orders",
        "strimzi.io/kind": "Kafka",
        "strimzi.io/name": "orders-kafka",
        "strimzi.io/pool-name": "broker",
    }
    # Gated, so that nobody binds it to a node.
    body = {
        "metadata": {"name": _name(broker), "labels": labels},
        "spec": {
            "schedulingGates": [{"name": "stillwater.dev/test"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "kafka", "image": "kafka"}],
        },
    }
    api.post(PODS, body)
    condition = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "conditions": [condition]}
    api.merge(f"{PODS}/{_name(broker)}/status", {"status": status})


def _name(broker: int) -> str:
    return f"orders-broker-{broker}"


def _allowed(nodes: EksNodes) -> tuple[int, int]:
    """Return how many of the staying and of the leaving may go."""
    by_name: dict[str, BudgetView] = {budget.name: budget for budget in nodes.budgets()}
    staying = by_name[naming.budget_of_the_staying("orders")]
    leaving = by_name[naming.budget_of_the_leaving("orders")]
    assert staying.yields
    assert not leaving.yields
    return staying.disruptions_allowed, leaving.disruptions_allowed


def _evict(api: Api, broker: int) -> int:
    """Ask for an eviction; return the API server's status."""
    name = _name(broker)
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": NAMESPACE},
    }
    try:
        api.post(f"{PODS}/{name}/eviction", body)
    except ApiError as error:
        return error.status
    return 201


def test_a_label_opens_for_its_pods_and_closes_for_all_others(twin: Twin, nodes: EksNodes) -> None:
    nodes.let_leave(_name(10), INCIDENT)
    until(lambda: _allowed(nodes) == (0, 1), "the others are counted anew")
    nodes.let_leave(_name(11), "i-1a.1")
    until(lambda: _allowed(nodes) == (0, 2), "both of the party may go")
    assert _evict(twin.api, 20) == 429
    assert [_evict(twin.api, broker) for broker in (10, 11)] == [201, 201]
    assert _evict(twin.api, 20) == 429
    # Made anew, they have no label: they stay again, and one may go of all.
    for broker in (10, 11):
        until(lambda gone=broker: find(twin.api, f"{PODS}/{_name(gone)}") is None, "it is gone")
        _ready(twin.api, broker)
    until(lambda: _allowed(nodes) == (1, 0), "one may go of all six again")


def test_what_was_opened_and_not_used_is_closed_again(twin: Twin, nodes: EksNodes) -> None:
    nodes.let_leave(_name(10), INCIDENT)
    until(lambda: _allowed(nodes) == (0, 1), "it may go")
    nodes.keep(_name(10), "i-0a.2")
    assert [pod.may_leave for pod in nodes.kafka_pods()].count(INCIDENT) == 1
    nodes.keep(_name(10), INCIDENT)
    until(lambda: _allowed(nodes)[0] == 1, "one may go of all six")
    assert [pod.may_leave for pod in nodes.kafka_pods()] == [None] * len(BROKERS)
    assert _evict(twin.api, 20) == 201
    assert _evict(twin.api, 30) == 429
