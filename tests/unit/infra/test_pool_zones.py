"""A pool that names its zones: nothing of it stands elsewhere, and its ids are where they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from infra.alerts.dashboards import cluster_values, dashboards, text
from infra.kafka.cluster import bootstrap_servers
from tests.unit.infra.programs import BROKER, CONTROLLER, ZONES, description, run_layers, spec
from tests.unit.infra.recording import Recorded

FOURTH = "us-east-1d"
RULE = "vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EDGES: Mapping[str, Any] = {
    **BROKER,
    "name": "edges",
    "first_node_id": 100,
    # In another order than availability_zones, which alone counts.
    "zones": [FOURTH, ZONES[0]],
}
GROWN: Mapping[str, Any] = {
    "availability_zones": [*ZONES, FOURTH],
    "pools": [{**CONTROLLER, "zones": ZONES}, BROKER, EDGES],
    "metrics": {"prometheus_operator": True},
}


@pytest.fixture(scope="module")
def layers(cache: None) -> dict[str, Recorded]:
    return run_layers(description(**GROWN))


@pytest.fixture(scope="module")
def grouped(layers: dict[str, Recorded]) -> Recorded:
    return layers["kafka"]


@pytest.fixture(scope="module")
def launched(cache: None) -> Recorded:
    return run_layers(description(**GROWN, node_provisioner="karpenter"))["kafka"]


def test_its_node_pools_keep_the_ids_of_their_zones(grouped: Recorded) -> None:
    pools = [pool.inputs["metadata"] for pool in grouped.of("kafka.strimzi.io/v1:KafkaNodePool")]
    assert {p["name"]: p["annotations"]["strimzi.io/next-node-ids"] for p in pools} == {
        "controller-a": "[0]",
        "controller-b": "[1]",
        "controller-c": "[2]",
        "broker-a": "[10-19]",
        "broker-b": "[20-29]",
        "broker-c": "[30-39]",
        "broker-d": "[40-49]",
        "edges-a": "[100-109]",
        "edges-d": "[130-139]",
    }


def test_its_groups_stand_in_its_zones_alone(grouped: Recorded) -> None:
    assert {group.name for group in grouped.of("autoscaling/group:Group")} == {
        *(f"nodes-{zone}-controller" for zone in ZONES),
        *(f"nodes-{zone}-broker" for zone in (*ZONES, FOURTH)),
        *(f"nodes-{zone}-edges" for zone in (ZONES[0], FOURTH)),
    }


def test_karpenter_launches_its_nodes_in_its_zones_alone(launched: Recorded) -> None:
    names = {pool.inputs["metadata"]["name"] for pool in launched.of("karpenter.sh/v1:NodePool")}
    assert {name for name in names if not name.startswith("broker")} == {
        *(f"controller-{letter}" for letter in "abc"),
        *(f"edges-{letter}" for letter in "ad"),
    }
    classes = launched.of("karpenter.k8s.aws/v1:EC2NodeClass")
    subnets = {
        each.inputs["metadata"]["name"]: [
            term["id"] for term in each.inputs["spec"]["subnetSelectorTerms"]
        ]
        for each in classes
    }
    assert len(subnets["controller"]) == len(ZONES)
    assert set(subnets["edges"]) == {
        subnet for subnet in subnets["broker"] if ZONES[0] in subnet or FOURTH in subnet
    }
    assert len(subnets["edges"]) == len(EDGES["zones"])


def test_clients_are_let_in_to_the_ports_of_its_ids(grouped: Recorded) -> None:
    rule = grouped.one(RULE, "balancing-edges-from-vpc")
    first = spec().kafka.listener.first_advertised_port
    assert (rule.inputs["fromPort"], rule.inputs["toPort"]) == (first + 100, first + 139)


def test_the_functions_reach_the_last_of_its_ids(layers: dict[str, Recorded]) -> None:
    first = spec().kafka.listener.first_advertised_port
    rules = [
        (rule.inputs["fromPort"], rule.inputs["toPort"])
        for layer in layers.values()
        for rule in layer.resources
        if rule.name == "handlers-network-to-kafka"
    ]
    assert rules == [(first + 10, first + 139)]


def test_clients_start_from_the_zones_it_has() -> None:
    started = [int(each.rsplit(":")[-1]) for each in bootstrap_servers(spec(**GROWN))]
    first = spec().kafka.listener.first_advertised_port
    assert started == [first + node for node in (10, 20, 30, 40, 100, 130)]


def test_alerts_count_its_nodes_where_they_are() -> None:
    values = cluster_values(spec(**GROWN))
    assert (values["controllers"], values["brokers"]) == ("3", str(4 + 2))
    assert "controller-d" not in values["pods"] + values["claims"]
    assert "edges-b" not in values["pods"] + values["claims"]
    assert "broker-d" in values["claims"]


def test_costs_are_asked_for_where_its_nodes_are() -> None:
    cost = text(dashboards(spec(**GROWN))["cost"])
    assert "broker-d" in cost
    assert "edges-d" in cost
    assert "controller-d" not in cost
    assert "edges-b" not in cost
