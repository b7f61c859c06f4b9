"""Refuses deletions as AWS does: of what is protected, and what others still hold.

The engine deletes what depends first. What it cannot see (a name that was written out, a stack of
its own) is refused here as AWS refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from local.refusals.fields import values
from local.refusals.limits import Refuser
from local.refusals.refusal import Refusal, Wanted


@dataclass(frozen=True, slots=True)
class HeldType:
    """A type, what holds it and by which inputs, and how its deletion is refused."""

    of: Refuser
    holder: str
    paths: tuple[str, ...]
    # What of the held one is named: an input, or nothing for its id.
    by: str
    message: str
    # An input that lets the provider clear the way first.
    forced: str = ""


@dataclass(frozen=True, slots=True)
class Protected:
    """An input that forbids the deletion of its resource."""

    of: Refuser
    key: str
    message: str


# Sources: each operation's errors in its API reference.
PROTECTED: tuple[Protected, ...] = (
    Protected(
        Refuser("dynamodb/table:Table", "DeleteTable", "ValidationException"),
        "deletionProtectionEnabled",
        (
            "Resource cannot be deleted as it is currently protected against deletion. Disable "
            "deletion protection first."
        ),
    ),
    Protected(
        Refuser("eks/cluster:Cluster", "DeleteCluster", "InvalidRequestException"),
        "deletionProtection",
        "Cluster has deletion protection enabled; disable it first.",
    ),
    Protected(
        Refuser("lb/loadBalancer:LoadBalancer", "DeleteLoadBalancer", "OperationNotPermitted"),
        "enableDeletionProtection",
        "Load balancer cannot be deleted because deletion protection is enabled",
    ),
)
_IN_A_VPC = (
    "ec2/subnet:Subnet",
    "ec2/internetGateway:InternetGateway",
    "ec2/routeTable:RouteTable",
    "ec2/securityGroup:SecurityGroup",
    "ec2/vpcEndpoint:VpcEndpoint",
)
_IN_A_SUBNET = {
    "eks/nodeGroup:NodeGroup": ("subnetIds.*",),
    "lambda/function:Function": ("vpcConfig.subnetIds.*",),
    "ec2/natGateway:NatGateway": ("subnetId",),
    "ec2/vpcEndpoint:VpcEndpoint": ("subnetIds.*",),
    "eks/cluster:Cluster": ("vpcConfig.subnetIds.*",),
    "lb/loadBalancer:LoadBalancer": ("subnets.*", "subnetMappings.*.subnetId"),
}
_WITH_A_GROUP = {
    "eks/cluster:Cluster": ("vpcConfig.securityGroupIds.*",),
    "ec2/vpcEndpoint:VpcEndpoint": ("securityGroupIds.*",),
    "lb/loadBalancer:LoadBalancer": ("securityGroups.*",),
    "lambda/function:Function": ("vpcConfig.securityGroupIds.*",),
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule": ("referencedSecurityGroupId",),
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule": ("referencedSecurityGroupId",),
}
_DEPENDENT = "DependencyViolation"
HELD: tuple[HeldType, ...] = (
    *(
        HeldType(
            Refuser("ec2/vpc:Vpc", "DeleteVpc", _DEPENDENT),
            holder,
            ("vpcId",),
            "",
            "The vpc '{0}' has dependencies and cannot be deleted.",
        )
        for holder in _IN_A_VPC
    ),
    *(
        HeldType(
            Refuser("ec2/subnet:Subnet", "DeleteSubnet", _DEPENDENT),
            holder,
            paths,
            "",
            "The subnet '{0}' has dependencies and cannot be deleted.",
        )
        for holder, paths in _IN_A_SUBNET.items()
    ),
    *(
        HeldType(
            Refuser("ec2/securityGroup:SecurityGroup", "DeleteSecurityGroup", _DEPENDENT),
            holder,
            paths,
            "",
            "resource {0} has a dependent object",
        )
        for holder, paths in _WITH_A_GROUP.items()
    ),
    HeldType(
        Refuser("ec2/routeTable:RouteTable", "DeleteRouteTable", _DEPENDENT),
        "ec2/routeTableAssociation:RouteTableAssociation",
        ("routeTableId",),
        "",
        "The routeTable '{0}' has dependencies and cannot be deleted.",
    ),
    HeldType(
        Refuser("ec2/eip:Eip", "ReleaseAddress", "InvalidIPAddress.InUse"),
        "ec2/natGateway:NatGateway",
        ("allocationId",),
        "",
        "The address {0} is in use by a NAT gateway.",
    ),
    HeldType(
        Refuser("lb/targetGroup:TargetGroup", "DeleteTargetGroup", "ResourceInUse"),
        "lb/listener:Listener",
        ("defaultActions.*.targetGroupArn", "defaultActions.*.forward.targetGroups.*.arn"),
        "",
        "Target group '{0}' is currently in use by a listener or a rule",
    ),
    HeldType(
        Refuser("lb/loadBalancer:LoadBalancer", "DeleteLoadBalancer", "ResourceInUse"),
        "ec2/vpcEndpointService:VpcEndpointService",
        ("networkLoadBalancerArns.*", "gatewayLoadBalancerArns.*"),
        "",
        "Load balancer '{0}' is currently in use by a VPC endpoint service",
    ),
    HeldType(
        Refuser("cloudwatch/eventRule:EventRule", "DeleteRule", "ValidationException"),
        "cloudwatch/eventTarget:EventTarget",
        ("rule",),
        "name",
        "Rule can't be deleted since it has targets.",
    ),
    HeldType(
        Refuser("iam/role:Role", "DeleteRole", "DeleteConflict"),
        "iam/rolePolicyAttachment:RolePolicyAttachment",
        ("role",),
        "name",
        "Cannot delete entity, must detach all policies first.",
        "forceDetachPolicies",
    ),
    HeldType(
        Refuser("iam/role:Role", "DeleteRole", "DeleteConflict"),
        "iam/instanceProfile:InstanceProfile",
        ("role",),
        "name",
        "Cannot delete entity, must remove roles from instance profile first.",
    ),
    HeldType(
        Refuser("iam/role:Role", "DeleteRole", "DeleteConflict"),
        "iam/rolePolicy:RolePolicy",
        ("role",),
        "name",
        "Cannot delete entity, must delete policies first.",
        "forceDetachPolicies",
    ),
    HeldType(
        Refuser("iam/policy:Policy", "DeletePolicy", "DeleteConflict"),
        "iam/rolePolicyAttachment:RolePolicyAttachment",
        ("policyArn",),
        "",
        "Cannot delete a policy attached to entities.",
    ),
    HeldType(
        Refuser("eks/cluster:Cluster", "DeleteCluster", "ResourceInUseException"),
        "eks/nodeGroup:NodeGroup",
        ("clusterName",),
        "name",
        "Cluster has nodegroups attached",
    ),
    HeldType(
        Refuser("route53/zone:Zone", "DeleteHostedZone", "HostedZoneNotEmpty"),
        "route53/record:Record",
        ("zoneId",),
        "",
        (
            "The specified hosted zone contains non-required resource record sets and so cannot be "
            "deleted."
        ),
        "forceDestroy",
    ),
    HeldType(
        Refuser("s3/bucket:Bucket", "DeleteBucket", "BucketNotEmpty"),
        "s3/bucketObjectv2:BucketObjectv2",
        ("bucket",),
        "bucket",
        "The bucket you tried to delete is not empty.",
        "forceDestroy",
    ),
)
_BY_HELD: Mapping[str, tuple[HeldType, ...]] = {
    f"aws:{each.of.token}": tuple(e for e in HELD if e.of.token == each.of.token) for each in HELD
}


def refusals(leaving: Wanted, others: Iterable[Wanted]) -> Iterator[Refusal]:
    """Yield why AWS would not delete a resource, whose name here is its id, beside the others."""
    for each in PROTECTED:
        if leaving.type == f"aws:{each.of.token}" and leaving.inputs.get(each.key) is True:
            found = Refusal(each.of.operation, each.of.code, each.message, each.key)
            yield replace(found, resource=leaving.name)
    rules, known = _BY_HELD.get(leaving.type, ()), list(others)
    for other in known if rules else ():
        yield from _of_holder(leaving, other, rules)
    if leaving.type == "aws:ec2/internetGateway:InternetGateway":
        yield from _of_addresses(leaving, known)


def _of_addresses(leaving: Wanted, others: Iterable[Wanted]) -> Iterator[Refusal]:
    """Yield why a gateway stays attached: an address of its VPC that is reached from outside."""
    known, vpc = list(others), leaving.inputs.get("vpcId")
    places = {each.name for each in known if vpc and each.inputs.get("vpcId") == vpc}
    for each in known:
        inside = {str(place) for path in _PLACES for place in values(each.inputs, path)}
        nat = each.type.endswith(":NatGateway") and each.inputs.get("connectivityType") != "private"
        if (nat or _faces_outside(each)) and inside & places:
            message = f"Network {vpc} has some mapped public address(es). Please unmap those "
            message += (
                f"public address(es) before detaching the gateway. It is held by {each.name}."
            )
            yield Refusal("DetachInternetGateway", _DEPENDENT, message, resource=leaving.name)


_PLACES = ("subnetId", "subnets.*", "subnetMappings.*.subnetId")


def _faces_outside(wanted: Wanted) -> bool:
    return wanted.type.endswith(":LoadBalancer") and not wanted.inputs.get("internal")


def _of_holder(leaving: Wanted, other: Wanted, rules: Iterable[HeldType]) -> Iterator[Refusal]:
    for rule in rules:
        if other.type != f"aws:{rule.holder}" or leaving.inputs.get(rule.forced or "-"):
            continue
        named = str(leaving.inputs.get(rule.by) or leaving.name) if rule.by else leaving.name
        if any(str(each) == named for path in rule.paths for each in values(other.inputs, path)):
            message = f"{rule.message.format(named)} It is held by {other.name}."
            yield Refusal(rule.of.operation, rule.of.code, message, resource=leaving.name)
