"""core.ground: names, amounts, selectors and errors exactly as others write them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from core.ground import naming
from core.ground.errors import Conflict, InvalidInput, MissingPrerequisite, StillwaterError
from core.ground.placement import heap, is_selected, quantity
from tests.every_case import every_case


def test_one_broker_has_one_set_of_names() -> None:
    pool = naming.kafka_node_pool("broker", "us-east-1a")
    pod = naming.pod("coban", pool, 10)
    assert (pool, pod) == ("broker-a", "coban-broker-a-10")
    assert naming.claim("coban", pool, 10, 0) == "data-0-coban-broker-a-10"
    assert naming.headless_service("coban") == "coban-kafka-brokers"
    assert naming.bootstrap_service("coban") == "coban-kafka-bootstrap"
    assert (
        naming.pod_host("coban", "kafka", pod)
        == "coban-broker-a-10.coban-kafka-brokers.kafka.svc.cluster.local"
    )


@pytest.mark.parametrize(
    ("listener", "port", "bootstrap", "broker"),
    [
        pytest.param("nlb", 9094, "c-kafka-nlb-bootstrap", "c-broker-a-nlb-10", id="named"),
        # ListenersUtils: the one pair that keeps the names from before listeners had names.
        pytest.param(
            "external", 9094, "c-kafka-external-bootstrap", "c-broker-a-10", id="external-9094"
        ),
        pytest.param(
            "external",
            9095,
            "c-kafka-external-bootstrap",
            "c-broker-a-external-10",
            id="external-elsewhere",
        ),
    ],
)
def test_listener_services_are_named_as_strimzi_names_them(
    listener: str, port: int, bootstrap: str, broker: str
) -> None:
    assert naming.listener_bootstrap_service("c", listener, port) == bootstrap
    assert naming.listener_broker_service("c", "broker-a", 10, listener, port) == broker
    assert naming.listener_port_name(listener) == f"tcp-{listener}"


@every_case(
    ("pod", "node_id"),
    [
        pytest.param("coban-broker-a-10", 10, id="broker"),
        pytest.param("c-0", 0, id="zero"),
        pytest.param("coban-entity-operator", None, id="no-number"),
        pytest.param("coban-broker-a-", None, id="empty"),
        pytest.param("coban-broker-a-1²", None, id="a-digit-that-is-no-number"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_pod_name_tells_its_node_id(pod: str, node_id: int | None) -> None:
    assert naming.node_id_of_pod(pod) == node_id


def test_node_ids_of_zones_do_not_touch() -> None:
    zones = [naming.node_ids(10, 10, index) for index in range(3)]
    assert zones == [range(10, 20), range(20, 30), range(30, 40)]
    assert [naming.next_node_ids_annotation(ids) for ids in zones] == [
        "[10-19]",
        "[20-29]",
        "[30-39]",
    ]
    assert naming.next_node_ids_annotation(range(5, 6)) == "[5]"


def test_a_long_target_group_name_is_cut_and_stays_distinct() -> None:
    assert naming.target_group("prod-coban", "broker-10") == "prod-coban-broker-10"
    first = naming.target_group("production-payments-kafka", "broker-10")
    second = naming.target_group("production-payments-kafka", "broker-11")
    assert len(first) <= 32
    assert len(second) <= 32
    assert first != second


def test_gates_carry_the_binding_they_wait_for() -> None:
    assert (
        naming.readiness_gate(naming.target_group_binding("coban", 10))
        == "target-health.elbv2.k8s.aws/coban-broker-10"
    )
    assert naming.target_group_binding("coban", None) == "coban-bootstrap"
    assert naming.advertised_port(10000, 30) == 10030


def test_names_of_a_group_and_its_tag_hold_the_prefix() -> None:
    assert naming.auto_scaling_group("dev-coban", "broker", "us-east-1c") == "dev-coban-broker-c"
    assert naming.managed_tag("dev-coban") == "aws-node-termination-handler/dev-coban"


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("700m", Decimal("0.7")),
        ("107374182400000m", Decimal(100 * 1024**3)),
        ("1e3", Decimal(1000)),
        (".5Ti", Decimal(512 * 1024**3)),
        (5, Decimal(5)),
        ("1.2.3", None),
        ("100GiB", None),
        (None, None),
    ],
)
def test_a_quantity_is_read_exactly_or_not_at_all(written: object, wanted: Decimal | None) -> None:
    assert quantity(written) == wanted


def test_the_last_of_several_heaps_holds() -> None:
    assert heap("-Xms1g -Xmx2g -Xmx512m") == 512 * 1024**2
    assert heap("-XX:MaxRAMPercentage=50") is None


LABELS = {"app": "kafka", "cpu": "8", "zone": "a"}


def expression(operator: str, key: str = "cpu", *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "kafka"}}, True),
        ({"matchLabels": {"app": "other"}}, False),
        (expression("In", "zone", "a", "b"), True),
        (expression("NotIn", "zone", "a"), False),
        (expression("Exists", "zone"), True),
        (expression("DoesNotExist", "zone"), False),
        (expression("Gt", "cpu", "4"), True),
        (expression("Lt", "cpu", "4"), False),
        (expression("Gt", "app", "4"), False),
        (expression("AnotherDay"), True),
    ],
)
def test_a_selector_takes_whom_it_says_and_nobody_by_a_label_that_is_no_number(
    selector: dict[str, Any] | None, wanted: bool
) -> None:
    assert is_selected(LABELS, selector) is wanted


@pytest.mark.parametrize("kind", [InvalidInput, MissingPrerequisite, Conflict])
def test_every_error_is_of_the_family(kind: type[Exception]) -> None:
    assert issubclass(kind, StillwaterError)


def test_invalid_input_keeps_every_problem_and_shows_one_per_line() -> None:
    error = InvalidInput(problem for problem in ["First.", "Second."])
    assert error.problems == ("First.", "Second.")
    assert str(error) == "First.\nSecond."
