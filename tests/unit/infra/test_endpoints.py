"""endpoints and site: how the cluster reaches AWS, and networks that are not ours."""

from __future__ import annotations

from typing import Any

import pytest

from core.ground.errors import InvalidInput
from infra.network import INTERFACES
from tests.unit.infra.programs import ZONES, description, run_layer
from tests.unit.infra.recording import EXISTING_VPC, Recorded

ENDPOINT = "ec2/vpcEndpoint:VpcEndpoint"
ASSOCIATION = "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation"
# What a private cluster cannot do without, by what would fail.
NEEDED = {
    "ec2",
    "ecr.api",
    "ecr.dkr",
    "sts",
    "eks",
    "eks-auth",
    "sns",
    "sqs",
    "autoscaling",
    "elasticloadbalancing",
    "logs",
}
SUBNETS = {zone: f"subnet-00123456789abcde{zone[-1]}" for zone in ZONES}


def existing(**changed: Any) -> dict[str, Any]:
    network = {
        "vpc_id": EXISTING_VPC,
        "private_subnet_ids": SUBNETS,
        "private_route_table_ids": ["rtb-0123456789abcdef0"],
        **changed,
    }
    return description(network={"existing": network})


@pytest.fixture(scope="module")
def private() -> Recorded:
    return run_layer("foundation", description(network={"interface_endpoints": True}))


def services(recorded: Recorded, kind: str) -> set[str]:
    return {
        each.inputs["serviceName"].removeprefix("com.amazonaws.us-east-1.")
        for each in recorded.of(ENDPOINT)
        if each.inputs["vpcEndpointType"] == kind
    }


def test_images_and_the_ledger_never_go_through_nat(layers: dict[str, Recorded]) -> None:
    foundation = layers["foundation"]
    assert services(foundation, "Gateway") == {"s3", "dynamodb"}
    routed = {a.inputs["routeTableId"] for a in foundation.of(ASSOCIATION)}
    assert routed == {f"network-{zone}-private-routes-id" for zone in ZONES}


def test_interface_endpoints_are_paid_for_only_when_asked(layers: dict[str, Recorded]) -> None:
    assert services(layers["foundation"], "Interface") == set()


def test_a_private_cluster_reaches_every_api_it_needs(private: Recorded) -> None:
    assert services(private, "Interface") == set(INTERFACES)
    assert set(INTERFACES) >= NEEDED
    for each in private.of(ENDPOINT):
        if each.inputs["vpcEndpointType"] == "Interface":
            assert each.inputs["privateDnsEnabled"] is True
            assert each.inputs["subnetIds"] == [f"subnet-network-{zone}-private" for zone in ZONES]


def test_endpoints_answer_https_from_the_vpc_alone(private: Recorded) -> None:
    rule = private.one("vpc/securityGroupIngressRule:SecurityGroupIngressRule")
    assert rule.inputs["cidrIpv4"] == "10.40.0.0/16"
    assert (rule.inputs["fromPort"], rule.inputs["toPort"]) == (443, 443)


def test_an_existing_network_is_used_and_nothing_in_it_is_made() -> None:
    recorded = run_layer("foundation", existing())
    for kind in ("vpc:Vpc", "subnet:Subnet", "natGateway:NatGateway", "routeTable:RouteTable"):
        assert not recorded.of(f"ec2/{kind}")
    assert recorded.outputs["vpc_id"] == EXISTING_VPC
    assert recorded.outputs["private_subnet_ids"] == SUBNETS
    (table,) = {a.inputs["routeTableId"] for a in recorded.of(ASSOCIATION)}
    assert table == "rtb-0123456789abcdef0"


def test_without_route_tables_no_gateway_is_made() -> None:
    recorded = run_layer("foundation", existing(private_route_table_ids=[]))
    assert not recorded.of(ENDPOINT)


def test_a_subnet_in_another_zone_than_the_spec_says_is_refused_before_anything_is_planned() -> (
    None
):
    swapped = {**SUBNETS, ZONES[0]: SUBNETS[ZONES[1]], ZONES[1]: SUBNETS[ZONES[0]]}
    with pytest.raises(InvalidInput) as caught:
        run_layer("foundation", existing(private_subnet_ids=swapped))
    assert len(caught.value.problems) == 2
    assert "is in us-east-1b, but network.existing names it for us-east-1a" in str(caught.value)


def test_the_block_of_an_existing_network_is_its_own() -> None:
    raw = existing()
    raw["network"]["vpc_cidr"] = "10.41.0.0/16"
    with pytest.raises(InvalidInput, match=r"has 10\.40\.0\.0/16; write the VPC's own"):
        run_layer("foundation", raw)
