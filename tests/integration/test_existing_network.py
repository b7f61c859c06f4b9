"""A cluster in a VPC that somebody else owns: it is used, and left as it was."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from cli.engine.layers import Layers
from core.ground.naming import FOUNDATION
from local.demo import spec as demo_spec
from local.pulumi.bin import twin_project
from local.twin import Twin

pytestmark = [pytest.mark.integration, pytest.mark.long]
ENVIRONMENT = "guest"


@dataclass(frozen=True)
class Owned:
    """A VPC with a subnet per zone and their route table, made before anything of ours."""

    vpc: str
    cidr: str
    subnets: Mapping[str, str]
    routes: str


@pytest.fixture
def owned(twin: Twin) -> Iterator[Owned]:
    ec2, block = twin.aws("ec2"), f"10.{twin.place.number}.176"
    vpc = ec2.create_vpc(CidrBlock=f"{block}.0/20")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    routes = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    subnets, associations = {}, []
    for place, zone in enumerate(demo_spec.ZONES):
        cidr = f"10.{twin.place.number}.{176 + place}.0/24"
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]
        subnets[zone] = made["SubnetId"]
        joined = ec2.associate_route_table(RouteTableId=routes, SubnetId=made["SubnetId"])
        associations.append(joined["AssociationId"])
    yield Owned(vpc, f"{block}.0/20", subnets, routes)
    for association in associations:
        ec2.disassociate_route_table(AssociationId=association)
    for subnet in subnets.values():
        ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_route_table(RouteTableId=routes)
    ec2.delete_vpc(VpcId=vpc)


@pytest.fixture
def guest(twin: Twin, owned: Owned) -> Layers:
    """The foundation of an environment that lives in the owned VPC."""
    described = demo_spec.spec(twin.place) | {
        "name": "guest",
        "environment": ENVIRONMENT,
        "network": {
            "vpc_cidr": owned.cidr,
            "existing": {"vpc_id": owned.vpc, "private_subnet_ids": dict(owned.subnets)},
        },
    }
    path = twin.place.path("guest.yaml")
    path.write_text(yaml.safe_dump(described))
    project = twin_project(twin.place, ENVIRONMENT, path)
    return Layers(ENVIRONMENT, twin.environment(), project, layers=(FOUNDATION,))


def as_it_is(twin: Twin, owned: Owned) -> dict[str, Any]:
    """Return everything AWS says of the network, tags and routes included."""
    ec2 = twin.aws("ec2")
    inside = [{"Name": "vpc-id", "Values": [owned.vpc]}]
    subnets = ec2.describe_subnets(Filters=inside)["Subnets"]
    for subnet in subnets:
        # Whoever has an address there: that is what a subnet is for.
        del subnet["AvailableIpAddressCount"]
    return {
        "vpc": ec2.describe_vpcs(VpcIds=[owned.vpc])["Vpcs"],
        "subnets": subnets,
        "routes": ec2.describe_route_tables(Filters=inside)["RouteTables"],
        "acls": ec2.describe_network_acls(Filters=inside)["NetworkAcls"],
        "gateways": ec2.describe_nat_gateways(Filters=inside)["NatGateways"],
        "endpoints": ec2.describe_vpc_endpoints(Filters=inside)["VpcEndpoints"],
        "default group": [
            group
            for group in ec2.describe_security_groups(Filters=inside)["SecurityGroups"]
            if group["GroupName"] == "default"
        ],
    }


def test_a_given_vpc_is_used_and_never_changed(twin: Twin, owned: Owned, guest: Layers) -> None:
    ec2, before = twin.aws("ec2"), as_it_is(twin, owned)
    in_all = ec2.describe_vpcs()["Vpcs"]
    try:
        result = guest.up_one(FOUNDATION)
        assert result.outputs["vpc_id"] == owned.vpc
        assert result.outputs["private_subnet_ids"] == owned.subnets
        assert ec2.describe_vpcs()["Vpcs"] == in_all
        nodes = ec2.describe_instances(Filters=[{"Name": "vpc-id", "Values": [owned.vpc]}])
        homes = {i["SubnetId"] for r in nodes["Reservations"] for i in r["Instances"]}
        assert homes == set(owned.subnets.values())
        assert as_it_is(twin, owned) == before
    finally:
        guest.destroy()
    assert as_it_is(twin, owned) == before
