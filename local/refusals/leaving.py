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
class DeletionProtection:
    """An input that forbids the deletion of its resource."""

    of: Refuser
    key: str
    message: str


# Sources: each operation's errors in its API reference.
PROTECTED: tuple[DeletionProtection, ...] = (
    DeletionProtection(
        Refuser("dynamodb/table:Table", "DeleteTable", "ValidationException"),
        "deletionProtectionEnabled",
        (
            "Resource cannot be deleted as it is currently protected against deletion. Disable "
            "deletion protection first."
        ),
    ),
    DeletionProtection(
        Refuser("eks/cluster:Cluster", "DeleteCluster", "InvalidRequestException"),
        "deletionProtection",
        "Cluster has deletion protection enabled; disable it first.",
    ),
    DeletionProtection(
        Refuser("lb/loadBalancer:LoadBalancer", "DeleteLoadBalancer", "OperationNotPermitted"),
        "enableDeletionProtection",
        "Load balancer cannot be deleted because deletion protection is enabled",
    ),
)
_DEPENDENT = "DependencyViolation"
_IN_USE = "ResourceInUse"
_ROLE = Refuser("iam/role:Role", "DeleteRole", "DeleteConflict")


def _held(
    of: Refuser, message: str, *rows: tuple[str, ...], by: str = "", forced: str = ""
) -> tuple[HeldType, ...]:
    """Return what holds a type, a line each: the holder, and the inputs that name the held one."""
    return tuple(HeldType(of, holder, tuple(paths), by, message, forced) for holder, *paths in rows)


HELD: tuple[HeldType, ...] = (
    *_held(
        Refuser("ec2/vpc:Vpc", "DeleteVpc", _DEPENDENT),
        "The vpc '{0}' has dependencies and cannot be deleted.",
        ("ec2/subnet:Subnet", "vpcId"),
        ("ec2/internetGateway:InternetGateway", "vpcId"),
        ("ec2/routeTable:RouteTable", "vpcId"),
        ("ec2/securityGroup:SecurityGroup", "vpcId"),
        ("ec2/vpcEndpoint:VpcEndpoint", "vpcId"),
    ),
    *_held(
        Refuser("ec2/subnet:Subnet", "DeleteSubnet", _DEPENDENT),
        "The subnet '{0}' has dependencies and cannot be deleted.",
        ("eks/nodeGroup:NodeGroup", "subnetIds.*"),
        ("lambda/function:Function", "vpcConfig.subnetIds.*"),
        ("ec2/natGateway:NatGateway", "subnetId"),
        ("ec2/vpcEndpoint:VpcEndpoint", "subnetIds.*"),
        ("eks/cluster:Cluster", "vpcConfig.subnetIds.*"),
        ("lb/loadBalancer:LoadBalancer", "subnets.*", "subnetMappings.*.subnetId"),
    ),
    *_held(
        Refuser("ec2/securityGroup:SecurityGroup", "DeleteSecurityGroup", _DEPENDENT),
        "resource {0} has a dependent object",
        ("eks/cluster:Cluster", "vpcConfig.securityGroupIds.*"),
        ("ec2/vpcEndpoint:VpcEndpoint", "securityGroupIds.*"),
        ("lb/loadBalancer:LoadBalancer", "securityGroups.*"),
        ("lambda/function:Function", "vpcConfig.securityGroupIds.*"),
        ("vpc/securityGroupEgressRule:SecurityGroupEgressRule", "referencedSecurityGroupId"),
        ("vpc/securityGroupIngressRule:SecurityGroupIngressRule", "referencedSecurityGroupId"),
    ),
    *_held(
        Refuser("ec2/routeTable:RouteTable", "DeleteRouteTable", _DEPENDENT),
        "The routeTable '{0}' has dependencies and cannot be deleted.",
        ("ec2/routeTableAssociation:RouteTableAssociation", "routeTableId"),
    ),
    *_held(
        Refuser("ec2/eip:Eip", "ReleaseAddress", "InvalidIPAddress.InUse"),
        "The address {0} is in use by a NAT gateway.",
        ("ec2/natGateway:NatGateway", "allocationId"),
    ),
    *_held(
        Refuser("lb/targetGroup:TargetGroup", "DeleteTargetGroup", _IN_USE),
        "Target group '{0}' is currently in use by a listener or a rule",
        (
            *("lb/listener:Listener", "defaultActions.*.targetGroupArn"),
            "defaultActions.*.forward.targetGroups.*.arn",
        ),
    ),
    *_held(
        Refuser("lb/loadBalancer:LoadBalancer", "DeleteLoadBalancer", _IN_USE),
        "Load balancer '{0}' is currently in use by a VPC endpoint service",
        (
            *("ec2/vpcEndpointService:VpcEndpointService", "networkLoadBalancerArns.*"),
            "gatewayLoadBalancerArns.*",
        ),
    ),
    *_held(
        Refuser("cloudwatch/eventRule:EventRule", "DeleteRule", "ValidationException"),
        "Rule can't be deleted since it has targets.",
        ("cloudwatch/eventTarget:EventTarget", "rule"),
        by="name",
    ),
    *_held(
        _ROLE,
        "Cannot delete entity, must detach all policies first.",
        ("iam/rolePolicyAttachment:RolePolicyAttachment", "role"),
        by="name",
        forced="forceDetachPolicies",
    ),
    *_held(
        _ROLE,
        "Cannot delete entity, must remove roles from instance profile first.",
        ("iam/instanceProfile:InstanceProfile", "role"),
        by="name",
    ),
    *_held(
        _ROLE,
        "Cannot delete entity, must delete policies first.",
        ("iam/rolePolicy:RolePolicy", "role"),
        by="name",
        forced="forceDetachPolicies",
    ),
    *_held(
        Refuser("iam/policy:Policy", "DeletePolicy", "DeleteConflict"),
        "Cannot delete a policy attached to entities.",
        ("iam/rolePolicyAttachment:RolePolicyAttachment", "policyArn"),
    ),
    *_held(
        Refuser("eks/cluster:Cluster", "DeleteCluster", "ResourceInUseException"),
        "Cluster has nodegroups attached",
        ("eks/nodeGroup:NodeGroup", "clusterName"),
        by="name",
    ),
    *_held(
        Refuser("route53/zone:Zone", "DeleteHostedZone", "HostedZoneNotEmpty"),
        (
            "The specified hosted zone contains non-required resource record sets and so cannot be "
            "deleted."
        ),
        ("route53/record:Record", "zoneId"),
        forced="forceDestroy",
    ),
    *_held(
        Refuser("s3/bucket:Bucket", "DeleteBucket", "BucketNotEmpty"),
        "The bucket you tried to delete is not empty.",
        ("s3/bucketObjectv2:BucketObjectv2", "bucket"),
        by="bucket",
        forced="forceDestroy",
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
