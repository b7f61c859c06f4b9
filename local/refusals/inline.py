"""Judges parts that a resource may bring along as the resources they stand for.

A security group's own rules are those of SecurityGroupIngressRule and SecurityGroupEgressRule, a
route table's own routes are Routes, a role's own policies RolePolicies: what is refused there is
refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals import calls, limits
from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_GROUP, _TABLE = "sg-00000000000000000", "rtb-00000000000000000"
# A source's key in a group's rule -> its key in a rule that stands alone.
_SOURCES = {
    "cidrBlocks": "cidrIpv4",
    "ipv6CidrBlocks": "cidrIpv6",
    "prefixListIds": "prefixListId",
    "securityGroups": "referencedSecurityGroupId",
}
_HOOK = "autoscaling/lifecycleHook:LifecycleHook"
_EVERY = frozenset({"-1", "all"})


@limit(
    "ec2/defaultSecurityGroup:DefaultSecurityGroup",
    "ec2/securityGroup:SecurityGroup",
    source=f"{_EC2}API_IpPermission.html",
)
def rules_of_a_group(wanted: Wanted) -> Iterator[Refusal]:
    """Each source of each rule, as a rule of its own."""
    for key, way in (("ingress", "Ingress"), ("egress", "Egress")):
        for rule in wanted.inputs.get(key) or ():
            token = f"vpc/securityGroup{way}Rule:SecurityGroup{way}Rule"
            for each in rules(rule):
                yield from _of(token, wanted, each, key)


def rules(rule: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a rule of a group as the rules it is: one for each source."""
    ports = {key: rule.get(key) for key in ("fromPort", "toPort")}
    protocol = str(rule.get("protocol")).lower()
    if protocol in _EVERY and set(ports.values()) <= {0, None}:
        # 0 is how the provider has them of all protocols.
        ports = {}
    said = {
        "securityGroupId": _GROUP,
        "ipProtocol": protocol,
        "description": rule.get("description"),
    }
    base = {key: value for key, value in {**said, **ports}.items() if value is not None}
    sources = [{alone: each} for key, alone in _SOURCES.items() for each in rule.get(key) or ()]
    if rule.get("self"):
        sources.append({"referencedSecurityGroupId": _GROUP})
    for source in sources or [{}]:
        yield {**base, **source}


@limit("ec2/routeTable:RouteTable", source=f"{_EC2}API_CreateRoute.html")
def routes_of_a_table(wanted: Wanted) -> Iterator[Refusal]:
    """Each as a Route of its own."""
    names = {"cidrBlock": "destinationCidrBlock", "ipv6CidrBlock": "destinationIpv6CidrBlock"}
    for route in wanted.inputs.get("routes") or ():
        alone = {names.get(key, key): value for key, value in route.items()}
        yield from _of("ec2/route:Route", wanted, {"routeTableId": _TABLE, **alone}, "routes")


@limit(
    "iam/role:Role",
    source="https://docs.aws.amazon.com/IAM/latest/APIReference/API_PutRolePolicy.html",
)
def policies_of_a_role(wanted: Wanted) -> Iterator[Refusal]:
    """Each as a RolePolicy of its own."""
    for each in wanted.inputs.get("inlinePolicies") or ():
        alone = {"role": wanted.name, "name": each.get("name"), "policy": each.get("policy") or {}}
        yield from _of("iam/rolePolicy:RolePolicy", wanted, alone, "inlinePolicies")


@limit(
    "autoscaling/group:Group",
    source="https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LifecycleHookSpecification.html",
)
def hooks_of_a_group(wanted: Wanted) -> Iterator[Refusal]:
    """Each as a LifecycleHook of its own, its name as well."""
    for hook in wanted.inputs.get("initialLifecycleHooks") or ():
        alone = {"autoscalingGroupName": "g", **hook}
        yield from _of(_HOOK, wanted, alone, "initialLifecycleHooks")
        for refusal in calls.refusals(Wanted(f"aws:{_HOOK}", wanted.name, alone)):
            yield Refusal(refusal.operation, refusal.code, refusal.message, "initialLifecycleHooks")


def _of(token: str, wanted: Wanted, alone: Mapping[str, Any], at: str) -> Iterator[Refusal]:
    for refusal in limits.refusals(Wanted(f"aws:{token}", wanted.name, alone)):
        yield Refusal(refusal.operation, refusal.code, refusal.message, at)
