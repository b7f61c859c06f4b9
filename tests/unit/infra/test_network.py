"""infra.network: every zone stands alone, and adding one moves no other."""

from __future__ import annotations

import ipaddress
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from infra.network import zone_blocks
from tests.unit.infra.programs import ZONES
from tests.unit.infra.recording import Recorded


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
    for zone in ZONES:
        route = foundation.one("ec2/route:Route", f"network-{zone}-private-default")
        assert route.inputs["natGatewayId"] == f"network-{zone}-nat-id"
        gateway = foundation.one("ec2/natGateway:NatGateway", f"network-{zone}-nat")
        assert gateway.inputs["subnetId"] == f"subnet-network-{zone}-public"


def test_private_subnets_are_in_their_zone_and_never_give_public_addresses(
    layers: dict[str, Recorded],
) -> None:
    for zone in ZONES:
        subnet = layers["foundation"].one("ec2/subnet:Subnet", f"network-{zone}-private")
        assert subnet.inputs["availabilityZone"] == zone
        assert not subnet.inputs.get("mapPublicIpOnLaunch", False)


def test_a_nat_gateway_is_made_after_its_way_out_and_goes_before_it(
    layers: dict[str, Recorded],
) -> None:
    """AWS fails a public NAT gateway whose VPC has no internet gateway attached yet."""
    foundation = layers["foundation"]
    way_out = foundation.one("ec2/route:Route", "network-public-default")
    assert way_out.inputs["gatewayId"] == "network-gateway-id"
    for zone in ZONES:
        gateway = foundation.one("ec2/natGateway:NatGateway", f"network-{zone}-nat")
        assert way_out.name in gateway.depends_on


def test_the_control_plane_has_subnets_of_its_own_that_lead_nowhere(
    layers: dict[str, Recorded],
) -> None:
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
