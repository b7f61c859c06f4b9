"""Checks what resources that name each other must share: a VPC, zones, a role's trust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.refusals.documents import as_list, parse
from local.refusals.fields import values
from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import about, limit, of, resources_by_name

_VPC = "https://docs.aws.amazon.com/vpc/latest/userguide/how-it-works.html"
_IAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/"


@dataclass(frozen=True, slots=True)
class VpcInputs:
    """Where a type names what lies in a VPC, and how AWS refuses two of them."""

    paths: tuple[str, ...]
    operation: str
    code: str
    # Of these paths each subnet lies in a zone of its own.
    apart: str = ""


PLACED: Mapping[str, VpcInputs] = {
    "autoscaling/group:Group": VpcInputs(
        ("vpcZoneIdentifiers.*", "launchTemplate.id"), "CreateAutoScalingGroup", "ValidationError"
    ),
    "ec2/route:Route": VpcInputs(
        ("routeTableId", "gatewayId", "natGatewayId"), "CreateRoute", "InvalidParameterValue"
    ),
    "ec2/routeTableAssociation:RouteTableAssociation": VpcInputs(
        ("routeTableId", "subnetId"), "AssociateRouteTable", "InvalidParameterValue"
    ),
    "ec2/vpcEndpoint:VpcEndpoint": VpcInputs(
        ("vpcId", "subnetIds.*", "securityGroupIds.*", "routeTableIds.*"),
        "CreateVpcEndpoint",
        "InvalidParameter",
        "subnetIds.*",
    ),
    "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation": VpcInputs(
        ("vpcEndpointId", "routeTableId"), "ModifyVpcEndpoint", "InvalidParameter"
    ),
    "eks/cluster:Cluster": VpcInputs(
        ("vpcConfig.subnetIds.*", "vpcConfig.securityGroupIds.*"),
        "CreateCluster",
        "InvalidParameterException",
    ),
    "eks/nodeGroup:NodeGroup": VpcInputs(
        ("subnetIds.*",), "CreateNodegroup", "InvalidParameterException"
    ),
    "emrserverless/application:Application": VpcInputs(
        ("networkConfiguration.subnetIds.*", "networkConfiguration.securityGroupIds.*"),
        "CreateApplication",
        "ValidationException",
    ),
    "lambda/function:Function": VpcInputs(
        ("vpcConfig.subnetIds.*", "vpcConfig.securityGroupIds.*"),
        "CreateFunction",
        "InvalidParameterValueException",
    ),
    "lb/listener:Listener": VpcInputs(
        (
            *("loadBalancerArn", "defaultActions.*.targetGroupArn"),
            "defaultActions.*.forward.targetGroups.*.arn",
        ),
        "CreateListener",
        "ValidationError",
    ),
    "lb/loadBalancer:LoadBalancer": VpcInputs(
        ("subnets.*", "subnetMappings.*.subnetId", "securityGroups.*"),
        "CreateLoadBalancer",
        "InvalidConfigurationRequest",
        "subnets.*",
    ),
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule": VpcInputs(
        ("securityGroupId", "referencedSecurityGroupId"),
        "AuthorizeSecurityGroupEgress",
        "InvalidGroup.NotFound",
    ),
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule": VpcInputs(
        ("securityGroupId", "referencedSecurityGroupId"),
        "AuthorizeSecurityGroupIngress",
        "InvalidGroup.NotFound",
    ),
}


def by_name(everything: Sequence[Wanted]) -> dict[str, Wanted]:
    """Return resources by what others name them by.

    One that stands bears its id or ARN for a name; a target group is also found by its own name.
    """
    found = {each.name: each for each in everything}
    for each in of(everything, "lb/targetGroup:TargetGroup", "lb/loadBalancer:LoadBalancer"):
        found.setdefault(f"{each.type}/{each.inputs.get('name')}", each)
    return found


def _find(reference: str, known: Mapping[str, Wanted]) -> Wanted | None:
    parts = reference.split("/")
    if ":targetgroup/" in reference and len(parts) == 3:
        by_name = known.get(f"aws:lb/targetGroup:TargetGroup/{parts[1]}")
        return known.get(reference, by_name)
    if ":loadbalancer/" in reference and len(parts) == 4:
        by_name = known.get(f"aws:lb/loadBalancer:LoadBalancer/{parts[2]}")
        return known.get(reference, by_name)
    return known.get(reference)


def _vpcs(reference: str, known: Mapping[str, Wanted], depth: int = 3) -> set[str]:
    """Return the VPCs that something named lies in; nothing where nobody here knows it."""
    if reference.startswith("vpc-"):
        return {reference}
    there = _find(reference, known)
    if there is None or not depth:
        return set()
    if there.inputs.get("vpcId"):
        return {str(there.inputs["vpcId"])}
    paths = ("subnetId", "subnets.*", "subnetMappings.*.subnetId", "vpcSecurityGroupIds.*")
    inner = [str(each) for path in paths for each in values(there.inputs, path)]
    return set().union(*(_vpcs(each, known, depth - 1) for each in inner))


@limit(_VPC)
def one_vpc(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """Subnets, groups, tables and gateways that one resource names are of one VPC."""
    known = by_name(everything)
    for each in everything:
        placed = PLACED.get(each.type.removeprefix("aws:"))
        if placed is None:
            continue
        claims = [
            (path, vpc)
            for path in placed.paths
            for value in values(each.inputs, path)
            for vpc in _vpcs(str(value), known)
        ]
        if len({vpc for _, vpc in claims}) > 1:
            said = ", ".join(f"{path.partition('.')[0]} of {vpc}" for path, vpc in claims)
            message = f"All of these must belong to one VPC: {said}"
            at = claims[-1][0].partition(".")[0]
            yield about(each, placed.operation, placed.code, message, at)


@limit("https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html")
def nodes_in_the_vpc_of_their_cluster(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A node group's subnets are of the VPC that its cluster is in."""
    known = by_name(everything)
    clusters = resources_by_name(everything, "eks/cluster:Cluster")
    for each in of(everything, "eks/nodeGroup:NodeGroup"):
        cluster = clusters.get(str(each.inputs.get("clusterName")))
        own, theirs = (
            {vpc for value in values(inputs, path) for vpc in _vpcs(str(value), known)}
            for inputs, path in (
                (each.inputs, "subnetIds.*"),
                (cluster.inputs if cluster else {}, "vpcConfig.subnetIds.*"),
            )
        )
        if len(own) == len(theirs) == 1 and own != theirs:
            message = f"Subnets of {min(own)} are not in the cluster's VPC {min(theirs)}"
            code = "InvalidParameterException"
            yield about(each, "CreateNodegroup", code, message, "subnetIds")


@limit("https://docs.aws.amazon.com/vpc/latest/userguide/configure-subnets.html")
def zones_of_subnets(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A zone has one subnet of a balancer or an endpoint; a cluster has subnets in two."""
    known = by_name(everything)
    for each in everything:
        placed = PLACED.get(each.type.removeprefix("aws:"))
        if placed is not None and placed.apart:
            zones = _zones(values(each.inputs, placed.apart), known)
            if len(set(zones)) < len(zones):
                message = "Multiple subnets of one Availability Zone are not supported: "
                message += ", ".join(zones)
                at = placed.apart.partition(".")[0]
                yield about(each, placed.operation, placed.code, message, at)
        if each.type == "aws:eks/cluster:Cluster":
            subnets = values(each.inputs, "vpcConfig.subnetIds.*")
            zones = _zones(subnets, known)
            if len(zones) == len(subnets) and len(set(zones)) == 1:
                message = "Subnets specified must be in at least two different AZs"
                code = "InvalidParameterException"
                yield about(each, "CreateCluster", code, message, "vpcConfig")


def _zones(subnets: Sequence[Any], known: Mapping[str, Wanted]) -> list[str]:
    there = [known.get(str(each)) for each in subnets]
    keys = ("availabilityZone", "availabilityZoneId")
    found = [next(filter(None, map(e.inputs.get, keys)), None) for e in there if e is not None]
    return [str(each) for each in found if each]


@dataclass(frozen=True, slots=True)
class RoleInput:
    """Who assumes a role that an input names, by which actions, and how a refusal reads."""

    path: str
    service: str
    operation: str
    code: str
    actions: tuple[str, ...] = ("sts:AssumeRole",)


ASSUMED: Mapping[str, RoleInput] = {
    "autoscaling/lifecycleHook:LifecycleHook": RoleInput(
        "roleArn", "autoscaling.amazonaws.com", "PutLifecycleHook", "ValidationError"
    ),
    "eks/cluster:Cluster": RoleInput(
        "roleArn", "eks.amazonaws.com", "CreateCluster", "InvalidParameterException"
    ),
    "eks/nodeGroup:NodeGroup": RoleInput(
        "nodeRoleArn", "ec2.amazonaws.com", "CreateNodegroup", "InvalidParameterException"
    ),
    "eks/podIdentityAssociation:PodIdentityAssociation": RoleInput(
        "roleArn",
        "pods.eks.amazonaws.com",
        "CreatePodIdentityAssociation",
        "InvalidParameterException",
        ("sts:AssumeRole", "sts:TagSession"),
    ),
    "lambda/function:Function": RoleInput(
        "role", "lambda.amazonaws.com", "CreateFunction", "InvalidParameterValueException"
    ),
    "scheduler/schedule:Schedule": RoleInput(
        "target.roleArn", "scheduler.amazonaws.com", "CreateSchedule", "ValidationException"
    ),
}


@limit(f"{_IAM}id_roles_terms-and-concepts.html")
def roles_that_are_assumed(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The trust of a role lets in the service that is to assume it."""
    roles = resources_by_name(everything, "iam/role:Role")
    for each in everything:
        assumed = ASSUMED.get(each.type.removeprefix("aws:"))
        for arn in values(each.inputs, assumed.path) if assumed else ():
            role = roles.get(str(arn).rpartition("/")[2]) if ":role/" in str(arn) else None
            if assumed is None or role is None or _trusts(role, assumed):
                continue
            message = f"The role {arn} cannot be assumed by {assumed.service}: its trust policy "
            message += f"does not allow {' and '.join(assumed.actions)}"
            at = assumed.path.partition(".")[0]
            yield about(each, assumed.operation, assumed.code, message, at)


def _trusts(role: Wanted, assumed: RoleInput) -> bool:
    document = parse(role.inputs.get("assumeRolePolicy") or {}) or {}
    allowed: set[str] = set()
    for statement in as_list(document.get("Statement")):
        principal = statement.get("Principal") if isinstance(statement, dict) else None
        services = as_list(principal.get("Service")) if isinstance(principal, dict) else [principal]
        if statement.get("Effect") == "Allow" and {"*", assumed.service} & set(map(str, services)):
            allowed |= {str(action).lower() for action in as_list(statement.get("Action"))}
    every = {"*", "sts:*"} & allowed
    return bool(every) or {action.lower() for action in assumed.actions} <= allowed


@limit("https://docs.aws.amazon.com/vpc/latest/privatelink/interface-endpoints.html")
def names_inside_a_vpc(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """An endpoint's private names need the VPC's own."""
    vpcs = {each.name: each for each in of(everything, "ec2/vpc:Vpc")}
    for each in of(everything, "ec2/vpcEndpoint:VpcEndpoint"):
        vpc = vpcs.get(str(each.inputs.get("vpcId")))
        if vpc is None or not each.inputs.get("privateDnsEnabled"):
            continue
        support = vpc.inputs.get("enableDnsSupport", True)
        if not (support and vpc.inputs.get("enableDnsHostnames")):
            message = "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames "
            message += f"VPC attributes set to true for {vpc.name}"
            at = "privateDnsEnabled"
            yield about(each, "CreateVpcEndpoint", "InvalidParameter", message, at)
