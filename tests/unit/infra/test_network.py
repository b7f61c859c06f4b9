"""infra.network: every zone stands alone, and reaches AWS without the internet."""

import ipaddress
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ground.errors import InvalidInput
from infra.network import INTERFACES, zone_blocks
from tests.unit.infra.programs import ZONES, description, run_layer
from tests.unit.infra.recording import EXISTING_VPC, Recorded


@given(prefix=st.integers(16, 20), number=st.integers(0, 255))
def test_subnets_lie_in_the_vpc_and_never_overlap(prefix: int, number: int) -> None:
    vpc = ipaddress.IPv4Network(f"10.{number}.0.0/{prefix}")
    blocks = [zone_blocks(str(vpc), f"us-east-1{letter}") for letter in "abcdefgh"]
    subnets = [
        ipaddress.IPv4Network(b) for z in blocks for b in (z.private, z.public, z.control_plane)
    ]
    assert all(subnet.subnet_of(vpc) for subnet in subnets)
    assert not any(a.overlaps(b) for a, b in combinations(subnets, 2))


def test_a_small_vpc_still_has_subnets_aws_accepts() -> None:
    assert ipaddress.IPv4Network(zone_blocks("10.0.0.0/20", "us-east-1a").public).prefixlen <= 28


def test_each_zone_goes_out_through_its_own_gateway(layers: dict[str, Recorded]) -> None:
    foundation = layers["foundation"]
    way_out = foundation.one("ec2/route:Route", "network-public-default")
    assert way_out.inputs["gatewayId"] == "network-gateway-id"
    for zone in ZONES:
        route = foundation.one("ec2/route:Route", f"network-{zone}-private-default")
        assert route.inputs["natGatewayId"] == f"network-{zone}-nat-id"
        gateway = foundation.one("ec2/natGateway:NatGateway", f"network-{zone}-nat")
        assert gateway.inputs["subnetId"] == f"subnet-network-{zone}-public"
        # AWS fails a public NAT gateway whose VPC has no internet gateway attached yet.
        assert way_out.name in gateway.depends_on


def test_private_subnets_are_zonal_and_give_no_public_address(layers: dict[str, Recorded]) -> None:
    for zone in ZONES:
        subnet = layers["foundation"].one("ec2/subnet:Subnet", f"network-{zone}-private")
        assert subnet.inputs["availabilityZone"] == zone
        assert not subnet.inputs.get("mapPublicIpOnLaunch", False)


def test_the_control_planes_own_subnets_lead_nowhere(layers: dict[str, Recorded]) -> None:
    foundation = layers["foundation"]
    control_plane = foundation.one("eks/cluster:Cluster").inputs["vpcConfig"]["subnetIds"]
    assert control_plane == [f"subnet-network-{zone}-control-plane" for zone in ZONES]
    routed = foundation.of("ec2/routeTableAssociation:RouteTableAssociation")
    nodes = foundation.of("eks/nodeGroup:NodeGroup")
    lived_in = [subnet for each in nodes for subnet in each.inputs["subnetIds"]]
    assert not {*control_plane} & {*lived_in, *(each.inputs["subnetId"] for each in routed)}
    for zone in ZONES:
        subnet = foundation.one("ec2/subnet:Subnet", f"network-{zone}-control-plane").inputs
        assert subnet["availabilityZone"] == zone
        # EKS asks for six addresses; AWS keeps five of each subnet.
        assert ipaddress.IPv4Network(subnet["cidrBlock"]).num_addresses - 5 >= 6
        # The load balancer controller places balancers by such tags.
        assert not any(tag.startswith("kubernetes.io/") for tag in subnet["tags"])


ENDPOINT = "ec2/vpcEndpoint:VpcEndpoint"
ASSOCIATION = "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation"
# What a private cluster cannot do without, by what would fail.
NEEDED = {
    "ec2", "ecr.api", "ecr.dkr", "sts", "eks", "eks-auth", "sns", "sqs", "autoscaling",
    "elasticloadbalancing", "logs",
}  # fmt: skip
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
    # Others are paid for only when they are asked for.
    assert services(foundation, "Interface") == set()
    routed = {a.inputs["routeTableId"] for a in foundation.of(ASSOCIATION)}
    assert routed == {f"network-{zone}-private-routes-id" for zone in ZONES}


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


def test_a_subnet_in_another_zone_than_said_is_refused_before_any_plan() -> None:
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
