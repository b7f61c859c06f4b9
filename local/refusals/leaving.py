"""Refuses deletions as AWS does: of what is protected, and what others still hold.

The engine deletes what depends first. What it cannot see (a name that was written out, a stack of
its own) is refused here as AWS refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from local.refusals.fields import values
from local.refusals.refusal import Refusal, Wanted


@dataclass(frozen=True, slots=True)
class HeldType:
    """A type, what holds it and by which inputs, and how its deletion is refused."""

    token: str
    holder: str
    paths: tuple[str, ...]
    # What of the held one is named: an input, or nothing for its id.
    by: str
    operation: str
    code: str
    message: str
    # An input that lets the provider clear the way first.
    forced: str = ""


@dataclass(frozen=True, slots=True)
class Protected:
    """An input that forbids the deletion of its resource."""

    token: str
    key: str
    operation: str
    code: str
    message: str


# Sources: each operation's errors in its API reference.
PROTECTED: tuple[Protected, ...] = (
    Protected(
        "dynamodb/table:Table",
        "deletionProtectionEnabled",
        "DeleteTable",
        "ValidationException",
        "Resource cannot be deleted as it is currently protected against deletion. Disable "
        "deletion protection first.",
    ),
    Protected(
        "eks/cluster:Cluster",
        "deletionProtection",
        "DeleteCluster",
        "InvalidRequestException",
        "Cluster has deletion protection enabled; disable it first.",
    ),
    Protected(
        "lb/loadBalancer:LoadBalancer",
        "enableDeletionProtection",
        "DeleteLoadBalancer",
        "OperationNotPermitted",
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
            "ec2/vpc:Vpc",
            holder,
            ("vpcId",),
            "",
            "DeleteVpc",
            _DEPENDENT,
            "The vpc '{0}' has dependencies and cannot be deleted.",
        )
        for holder in _IN_A_VPC
    ),
    *(
        HeldType(
            "ec2/subnet:Subnet",
            holder,
            paths,
            "",
            "DeleteSubnet",
            _DEPENDENT,
            "The subnet '{0}' has dependencies and cannot be deleted.",
        )
        for holder, paths in _IN_A_SUBNET.items()
    ),
    *(
        HeldType(
            "ec2/securityGroup:SecurityGroup",
            holder,
            paths,
            "",
            "DeleteSecurityGroup",
            _DEPENDENT,
            "resource {0} has a dependent object",
        )
        for holder, paths in _WITH_A_GROUP.items()
    ),
    HeldType(
        "ec2/routeTable:RouteTable",
        "ec2/routeTableAssociation:RouteTableAssociation",
        ("routeTableId",),
        "",
        "DeleteRouteTable",
        _DEPENDENT,
        "The routeTable '{0}' has dependencies and cannot be deleted.",
    ),
    HeldType(
        "ec2/eip:Eip",
        "ec2/natGateway:NatGateway",
        ("allocationId",),
        "",
        "ReleaseAddress",
        "InvalidIPAddress.InUse",
        "The address {0} is in use by a NAT gateway.",
    ),
    HeldType(
        "lb/targetGroup:TargetGroup",
        "lb/listener:Listener",
        ("defaultActions.*.targetGroupArn", "defaultActions.*.forward.targetGroups.*.arn"),
        "",
        "DeleteTargetGroup",
        "ResourceInUse",
        "Target group '{0}' is currently in use by a listener or a rule",
    ),
    HeldType(
        "lb/loadBalancer:LoadBalancer",
        "ec2/vpcEndpointService:VpcEndpointService",
        ("networkLoadBalancerArns.*", "gatewayLoadBalancerArns.*"),
        "",
        "DeleteLoadBalancer",
        "ResourceInUse",
        "Load balancer '{0}' is currently in use by a VPC endpoint service",
    ),
    HeldType(
        "cloudwatch/eventRule:EventRule",
        "cloudwatch/eventTarget:EventTarget",
        ("rule",),
        "name",
        "DeleteRule",
        "ValidationException",
        "Rule can't be deleted since it has targets.",
    ),
    HeldType(
        "iam/role:Role",
        "iam/rolePolicyAttachment:RolePolicyAttachment",
        ("role",),
        "name",
        "DeleteRole",
        "DeleteConflict",
        "Cannot delete entity, must detach all policies first.",
        "forceDetachPolicies",
    ),
    HeldType(
        "iam/role:Role",
        "iam/instanceProfile:InstanceProfile",
        ("role",),
        "name",
        "DeleteRole",
        "DeleteConflict",
        "Cannot delete entity, must remove roles from instance profile first.",
    ),
    HeldType(
        "iam/role:Role",
        "iam/rolePolicy:RolePolicy",
        ("role",),
        "name",
        "DeleteRole",
        "DeleteConflict",
        "Cannot delete entity, must delete policies first.",
        "forceDetachPolicies",
    ),
    HeldType(
        "iam/policy:Policy",
        "iam/rolePolicyAttachment:RolePolicyAttachment",
        ("policyArn",),
        "",
        "DeletePolicy",
        "DeleteConflict",
        "Cannot delete a policy attached to entities.",
    ),
    HeldType(
        "eks/cluster:Cluster",
        "eks/nodeGroup:NodeGroup",
        ("clusterName",),
        "name",
        "DeleteCluster",
        "ResourceInUseException",
        "Cluster has nodegroups attached",
    ),
    HeldType(
        "route53/zone:Zone",
        "route53/record:Record",
        ("zoneId",),
        "",
        "DeleteHostedZone",
        "HostedZoneNotEmpty",
        "The specified hosted zone contains non-required resource record sets and so cannot be "
        "deleted.",
        "forceDestroy",
    ),
    HeldType(
        "s3/bucket:Bucket",
        "s3/bucketObjectv2:BucketObjectv2",
        ("bucket",),
        "bucket",
        "DeleteBucket",
        "BucketNotEmpty",
        "The bucket you tried to delete is not empty.",
        "forceDestroy",
    ),
)
_BY_HELD: Mapping[str, tuple[HeldType, ...]] = {
    f"aws:{each.token}": tuple(e for e in HELD if e.token == each.token) for each in HELD
}


def refusals(leaving: Wanted, others: Iterable[Wanted]) -> Iterator[Refusal]:
    """Yield why AWS would not delete a resource, whose name here is its id, beside the others."""
    for each in PROTECTED:
        if leaving.type == f"aws:{each.token}" and leaving.inputs.get(each.key) is True:
            found = Refusal(each.operation, each.code, each.message, each.key)
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
            yield Refusal(rule.operation, rule.code, message, resource=leaving.name)
