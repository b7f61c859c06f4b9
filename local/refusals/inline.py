"""Judges parts that a resource may bring along as the resources they stand for.

A security group's own rules are those of SecurityGroupIngressRule and SecurityGroupEgressRule, a
route table's own routes are Routes: what is refused there is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals import limits
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
            token = f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule"
            for each in _rules(rule):
                for refusal in limits.refusals(Wanted(token, wanted.name, each)):
                    yield Refusal(refusal.operation, refusal.code, refusal.message, key)


def _rules(rule: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
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
        for refusal in limits.refusals(
            Wanted("aws:ec2/route:Route", wanted.name, {"routeTableId": _TABLE, **alone})
        ):
            yield Refusal(refusal.operation, refusal.code, refusal.message, "routes")
