"""What the twin's Strimzi stand-in writes into a node's configuration, and what it cannot run."""

import copy
from typing import Any

import pytest

from core.ground.errors import InvalidInput
from local.kubernetes.strimzi_model import evaluate
from tests.every_case import every_case
from tests.unit.local.described_kafka import (
    KAFKA,
    POOLS,
    cluster,
    configure,
    pool,
)


def test_a_template_may_give_each_broker_a_name_of_its_own() -> None:
    kafka = copy.deepcopy(KAFKA)
    configuration = kafka["spec"]["kafka"]["listeners"][0]["configuration"]
    configuration["advertisedHostTemplate"] = "b-{nodeId}.example.internal"
    config = configure(20, cluster(kafka))
    assert "NLB-9094://b-20.example.internal:10020" in config["advertised.listeners"]


def test_without_a_list_nothing_is_exposed_and_without_a_rack_no_broker_has_one() -> None:
    kafka = copy.deepcopy(KAFKA)
    del kafka["spec"]["kafka"]["rack"]
    assert not {"metric.reporters", "broker.rack"} & configure(20, cluster(kafka)).keys()


def test_a_combined_node_has_both_sides() -> None:
    described = cluster(pools=[pool("both", "controller+broker", ids="[1]")])
    config = configure(1, described)
    assert config["process.roles"] == "broker,controller"
    assert config["listeners"].startswith("CONTROLPLANE-9090://${POD_ADDRESS}:9090,REPLICATION")


@every_case("template", ["{nodeId} * 2", "__import__('os')", "1 +"])
def test_port_templates_are_nothing_but_sums(template: str) -> None:
    assert evaluate("9094", 10) == 9094
    with pytest.raises(InvalidInput, match="advertisedPortTemplate"):
        evaluate(template, 10)


@every_case(
    ("change", "pools", "says"),
    [
        ({"authentication": {"type": "tls"}}, POOLS, "certificates without TLS"),
        ({"authentication": {"type": "custom"}}, POOLS, "authentication custom"),
        ({"type": "ingress"}, POOLS, "type ingress"),
        ({"name": "n-lb"}, POOLS, "listener names [n-lb] are invalid"),
        # The reporter's of metrics, and Strimzi's own.
        *(({"port": each}, POOLS, f"port {each} is forbidden") for each in (9404, 9091)),
        ({}, POOLS[1:], "no node pool has the role controller"),
        ({}, POOLS[:1], "no node pool has the role broker"),
    ],
)
def test_what_it_cannot_run_is_one_sentence(
    change: dict[str, Any], pools: list[Any], says: str
) -> None:
    kafka = copy.deepcopy(KAFKA)
    kafka["spec"]["kafka"]["listeners"][0] |= change
    with pytest.raises(InvalidInput) as caught:
        cluster(kafka, pools)
    (problem,) = caught.value.problems
    assert says in problem
    assert problem.endswith(".")


@every_case(
    ("change", "says"),
    [
        ({"version": "4.1.0"}, "Supported versions are: [4.2.0, "),
        (
            {"config": {"offsets.topic.replication.factor": 3}},
            "should be set to 2 or less because this cluster has only 2 Kafka broker(s)",
        ),
        (
            {"listeners": [*KAFKA["spec"]["kafka"]["listeners"]] * 2},
            "every listener needs to have a unique port number",
        ),
    ],
)
def test_what_strimzi_refuses_is_refused_in_its_words(change: dict[str, Any], says: str) -> None:
    kafka = copy.deepcopy(KAFKA)
    kafka["spec"]["kafka"] |= change
    with pytest.raises(InvalidInput) as caught:
        cluster(kafka)
    assert says in caught.value.problems[-1]
