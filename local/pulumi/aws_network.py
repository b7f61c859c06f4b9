"""The VPC and what lies in it: subnets, gateways, addresses, routes."""

from __future__ import annotations

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    adapts,
    request,
    tag_changes,
    tag_list,
)
from local.pulumi.provider import Existing, Resource, State
from local.values import Properties


def retag_ec2(aws: Aws, existing: Existing, inputs: Properties) -> None:
    ec2, (fresh, gone) = aws.client("ec2"), tag_changes(existing, inputs)
    if gone:
        ec2.delete_tags(Resources=[existing.id], Tags=[{"Key": key} for key in gone])
    if fresh:
        ec2.create_tags(Resources=[existing.id], Tags=tag_list(fresh))


class _Ec2(Adapter):
    """A resource of EC2 whose tags are all that changes in place."""

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        retag_ec2(aws, existing, inputs)
        return {}


@adapts("ec2/vpc:Vpc")
class VpcAdapter(_Ec2):
    replaces = frozenset({"cidrBlock", "instanceTenancy"})
    lookup = CallById("ec2", "describe_vpcs", "VpcIds", listed=True)
    deletion = CallById("ec2", "delete_vpc", "VpcId")

    @staticmethod
    def _attributes(aws: Aws, vpc: str, inputs: Properties) -> None:
        for name, api in (
            ("enableDnsSupport", "EnableDnsSupport"),
            ("enableDnsHostnames", "EnableDnsHostnames"),
        ):
            if inputs.get(name) is not None:
                aws.client("ec2").modify_vpc_attribute(VpcId=vpc, **{api: {"Value": inputs[name]}})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        ec2 = aws.client("ec2")
        vpc = self.make(aws, inputs)["Vpc"]["VpcId"]
        self._attributes(aws, vpc, inputs)
        here = [{"Name": "vpc-id", "Values": [vpc]}]
        tables = ec2.describe_route_tables(Filters=here)["RouteTables"]
        groups = ec2.describe_security_groups(Filters=here)["SecurityGroups"]
        return State(
            vpc,
            {
                "arn": aws.arn("ec2", f"vpc/{vpc}"),
                "ownerId": aws.account,
                "mainRouteTableId": tables[0]["RouteTableId"],
                "defaultRouteTableId": tables[0]["RouteTableId"],
                "defaultSecurityGroupId": groups[0]["GroupId"],
                "enableDnsSupport": inputs.get("enableDnsSupport", True),
            },
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        self._attributes(aws, existing.id, inputs)
        return super().update(aws, existing, inputs)


@adapts("ec2/internetGateway:InternetGateway")
class InternetGatewayAdapter(_Ec2):
    replaces = frozenset({"vpcId"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        gateway = self.make(aws, inputs)["InternetGateway"]["InternetGatewayId"]
        if inputs.get("vpcId"):
            aws.client("ec2").attach_internet_gateway(
                InternetGatewayId=gateway, VpcId=inputs["vpcId"]
            )
        return State(gateway, {"arn": aws.arn("ec2", f"internet-gateway/{gateway}")})

    def delete(self, aws: Aws, existing: Existing) -> None:
        ec2 = aws.client("ec2")
        if existing.inputs.get("vpcId"):
            ec2.detach_internet_gateway(
                InternetGatewayId=existing.id, VpcId=existing.inputs["vpcId"]
            )
        ec2.delete_internet_gateway(InternetGatewayId=existing.id)


@adapts("ec2/subnet:Subnet")
class SubnetAdapter(_Ec2):
    replaces = frozenset({"vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId"})
    lookup = CallById("ec2", "describe_subnets", "SubnetIds", listed=True)
    deletion = CallById("ec2", "delete_subnet", "SubnetId")

    @staticmethod
    def _attributes(aws: Aws, subnet: str, inputs: Properties) -> None:
        if inputs.get("mapPublicIpOnLaunch") is not None:
            aws.client("ec2").modify_subnet_attribute(
                SubnetId=subnet, MapPublicIpOnLaunch={"Value": inputs["mapPublicIpOnLaunch"]}
            )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = self.make(aws, inputs)["Subnet"]
        self._attributes(aws, made["SubnetId"], inputs)
        return State(
            made["SubnetId"],
            {
                "arn": made["SubnetArn"],
                "ownerId": aws.account,
                "availabilityZone": made["AvailabilityZone"],
                "availabilityZoneId": made.get("AvailabilityZoneId"),
            },
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        self._attributes(aws, existing.id, inputs)
        return super().update(aws, existing, inputs)


@adapts("ec2/eip:Eip")
class EipAdapter(_Ec2):
    replaces = frozenset({"domain", "publicIpv4Pool", "networkBorderGroup"})
    deletion = CallById("ec2", "release_address", "AllocationId")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = self.make(aws, inputs, Domain=inputs.get("domain", "vpc"))
        allocation = made["AllocationId"]
        return State(
            allocation,
            {
                "allocationId": allocation,
                "publicIp": made["PublicIp"],
                "arn": aws.arn("ec2", f"elastic-ip/{allocation}"),
            },
        )


@adapts("ec2/natGateway:NatGateway")
class NatGatewayAdapter(_Ec2):
    replaces = frozenset({"subnetId", "allocationId", "connectivityType", "privateIp"})
    deletion = CallById("ec2", "delete_nat_gateway", "NatGatewayId")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = self.make(aws, inputs)["NatGateway"]
        address = (made.get("NatGatewayAddresses") or [{}])[0]
        return State(
            made["NatGatewayId"],
            {
                "publicIp": address.get("PublicIp"),
                "privateIp": address.get("PrivateIp"),
                "networkInterfaceId": address.get("NetworkInterfaceId"),
            },
        )


@adapts("ec2/routeTable:RouteTable")
class RouteTableAdapter(_Ec2):
    replaces = frozenset({"vpcId"})
    deletion = CallById("ec2", "delete_route_table", "RouteTableId")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        table = self.make(aws, inputs)["RouteTable"]["RouteTableId"]
        arn = aws.arn("ec2", f"route-table/{table}")
        return State(table, {"arn": arn, "ownerId": aws.account})


@adapts("ec2/route:Route")
class RouteAdapter(Adapter):
    replaces = frozenset({"routeTableId", "destinationCidrBlock", "destinationIpv6CidrBlock"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        self.make(aws, inputs)
        identity = f"r-{inputs['routeTableId']}{resource.token(10)}"
        return State(identity, {"state": "active", "origin": "CreateRoute"})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        if existing.inputs != inputs:
            ec2 = aws.client("ec2")
            ec2.replace_route(**request(ec2, "ReplaceRoute", inputs))
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        ec2 = aws.client("ec2")
        ec2.delete_route(**request(ec2, "DeleteRoute", existing.inputs))


@adapts("ec2/routeTableAssociation:RouteTableAssociation")
class RouteTableAssociationAdapter(Adapter):
    replaces = frozenset({"subnetId", "gatewayId", "routeTableId"})
    deletion = CallById("ec2", "disassociate_route_table", "AssociationId")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        return State(self.make(aws, inputs)["AssociationId"], {})
