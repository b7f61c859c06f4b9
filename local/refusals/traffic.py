"""Checks what routes, gateways, rules, load balancers and DNS records must have, and have once."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from local.refusals.limits import first_about, first_of, limit
from local.refusals.refusal import Refusal, Wanted

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_BALANCING = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/"
_DNS = "https://docs.aws.amazon.com/Route53/latest/"
_TARGETS = (
    *("carrierGatewayId", "coreNetworkArn", "egressOnlyGatewayId", "gatewayId"),
    *("localGatewayId", "natGatewayId", "networkInterfaceId", "transitGatewayId"),
    *("vpcEndpointId", "vpcPeeringConnectionId"),
)
_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
# What begins as a domain that nobody but AWS, or no registrant at all, has a zone of.
_OF_AWS = re.compile(r"(.*\.)?amazonaws\.com(\.cn)?")
_TOP_LEVEL = re.compile(r"[a-z]{2}|com|net|org|info|biz|edu|gov|mil|int|arpa|aero|app|dev|cloud")
_CHARACTERS_OF_A_STRING, _CHARACTERS_OF_A_TXT = 255, 4000


@limit("ec2/securityGroup:SecurityGroup", source=f"{_EC2}API_CreateSecurityGroup.html")
def description_of_a_group(wanted: Wanted) -> Iterator[Refusal]:
    """Some."""
    if wanted.inputs.get("description") == "":
        message = "The request must contain the parameter GroupDescription"
        yield Refusal("CreateSecurityGroup", "MissingParameter", message, "description")


@limit("ec2/route:Route", source=f"{_EC2}API_CreateRoute.html")
def ends_of_a_route(wanted: Wanted) -> Iterator[Refusal]:
    """One destination, one target."""
    inputs = wanted.inputs
    targets = [key for key in _TARGETS if inputs.get(key)]
    yield from first_of(
        "CreateRoute",
        "MissingParameter",
        (
            not any(inputs.get(key) for key in _DESTINATIONS),
            (
                "The request must contain the parameter destinationCidrBlock or "
                "destinationIpv6CidrBlock or destinationPrefixListId"
            ),
            "destinationCidrBlock",
        ),
        (
            not targets,
            (
                "The request must contain exactly one of gatewayId, natGatewayId, "
                "networkInterfaceId, vpcPeeringConnectionId, egressOnlyInternetGatewayId, "
                "transitGatewayId, "
                "localGatewayId, carrierGatewayId, vpcEndpointId"
            ),
            "gatewayId",
        ),
    )
    if len(targets) > 1:
        message = f"Cannot specify both {targets[0]} and {targets[1]} in the same request."
        yield Refusal("CreateRoute", "InvalidParameterCombination", message, targets[1])


@limit("ec2/natGateway:NatGateway", source=f"{_EC2}API_CreateNatGateway.html")
def address_of_a_nat_gateway(wanted: Wanted) -> Iterator[Refusal]:
    """A public one has an address, a private one has none."""
    private = wanted.inputs.get("connectivityType") == "private"
    if not private and not wanted.inputs.get("allocationId"):
        message = "The request must contain the parameter AllocationId"
        yield Refusal("CreateNatGateway", "MissingParameter", message, "allocationId")
    if private and wanted.inputs.get("allocationId"):
        message = "AllocationId is not supported for private NAT gateways"
        yield Refusal("CreateNatGateway", "InvalidParameter", message, "allocationId")


@limit("lb/loadBalancer:LoadBalancer", source=f"{_BALANCING}API_CreateLoadBalancer.html")
def places_of_a_balancer(wanted: Wanted) -> Iterator[Refusal]:
    """Subnets or mappings, each subnet once."""
    subnets = wanted.inputs.get("subnets") or []
    yield from first_of(
        "CreateLoadBalancer",
        "InvalidConfigurationRequest",
        (
            len(set(subnets)) < len(subnets),
            "A load balancer cannot be attached to multiple subnets in the same Availability Zone",
            "subnets",
        ),
        (
            subnets and wanted.inputs.get("subnetMappings"),
            "You must specify either subnets or subnet mappings, but not both",
            "subnetMappings",
        ),
    )


@limit("lb/targetGroup:TargetGroup", source=f"{_BALANCING}API_CreateTargetGroup.html")
def checks_of_a_tcp_group(wanted: Wanted) -> Iterator[Refusal]:
    """A check by TCP asks for no page; a group of IPs or instances has a VPC."""
    inputs = wanted.inputs
    check = inputs.get("healthCheck") or {}
    asks = str(check.get("protocol") or "TCP")
    network = inputs.get("protocol") in {"TCP", "TLS", "UDP", "TCP_UDP"}
    stickiness = (inputs.get("stickiness") or {}).get("type")
    yield from first_of(
        "CreateTargetGroup",
        "ValidationError",
        (
            not inputs.get("vpcId") and inputs.get("targetType") != "lambda",
            "A VPC ID must be specified",
            "vpcId",
        ),
        (
            asks in {"UDP", "TCP_UDP", "TLS"},
            f"Health check protocol '{asks}' is not supported",
            "healthCheck",
        ),
        (
            asks == "TCP" and check.get("matcher") and network,
            (
                "Custom health check matchers are not supported for health checks of target groups "
                "with the TCP protocol"
            ),
            "healthCheck",
        ),
        (
            asks == "TCP" and check.get("path") and network,
            "Health check path is not supported for health checks with the TCP protocol",
            "healthCheck",
        ),
        (
            network and stickiness in {"lb_cookie", "app_cookie"},
            (
                f"Stickiness type '{stickiness}' is not supported for target groups with the "
                f"{inputs.get('protocol')} protocol"
            ),
            "stickiness",
        ),
    )


@limit("lb/listener:Listener", source=f"{_BALANCING}API_CreateListener.html")
def action_and_certificate_of_a_listener(wanted: Wanted) -> Iterator[Refusal]:
    """A certificate where TLS ends and nowhere else; a network balancer forwards."""
    inputs = wanted.inputs
    tls = inputs.get("protocol") in {"TLS", "HTTPS"}
    kinds = {str(each.get("type")) for each in inputs.get("defaultActions") or ()}
    network = ":loadbalancer/net/" in str(inputs.get("loadBalancerArn"))
    yield from first_of(
        "CreateListener",
        "ValidationError",
        (
            tls and not inputs.get("certificateArn"),
            f"A certificate must be specified for {inputs.get('protocol')} listeners",
            "certificateArn",
        ),
        (
            not tls and inputs.get("certificateArn"),
            f"Certificates are not supported for {inputs.get('protocol')} listeners",
            "certificateArn",
        ),
        (not kinds, "A listener must have a default action", "defaultActions"),
        (
            network and kinds - {"forward"},
            (
                f"Action type '{next(iter(kinds - {'forward'}), '')}' is not supported for "
                f"listeners of network load balancers"
            ),
            "defaultActions",
        ),
    )


@limit("route53/zone:Zone", source=f"{_DNS}APIReference/API_CreateHostedZone.html")
def domain_of_a_zone(wanted: Wanted) -> Iterator[Refusal]:
    """Neither AWS's own nor a top-level domain."""
    name = str(wanted.inputs.get("name") or "").rstrip(".").lower()
    yield from first_about(
        "CreateHostedZone",
        "InvalidDomainName",
        "name",
        (_OF_AWS.fullmatch(name), f"{name} is reserved by AWS!"),
        (_TOP_LEVEL.fullmatch(name), f"{name} is a top-level domain"),
    )


@limit("route53/record:Record", source=f"{_DNS}APIReference/API_ResourceRecordSet.html")
def policies_of_a_record(wanted: Wanted) -> Iterator[Refusal]:
    """An identifier where there is a routing policy and nowhere else; an alias with its zone."""
    inputs = wanted.inputs
    single = ("cidrRoutingPolicy", "geoproximityRoutingPolicy", "multivalueAnswerRoutingPolicy")
    routed = any(inputs.get(key) for key in single)
    routed = routed or any(inputs[key] for key in inputs if key.endswith("RoutingPolicies"))
    homeless = [e for e in inputs.get("aliases") or () if not (e.get("zoneId") and e.get("name"))]
    yield from first_of(
        "ChangeResourceRecordSets",
        "InvalidInput",
        (
            routed != bool(inputs.get("setIdentifier")),
            "A routing policy and a set identifier go together.",
            "setIdentifier",
        ),
        (homeless, "An alias must name its target and the target's zone.", "aliases"),
        # The provider's own, before any call.
        (len(inputs.get("aliases") or ()) > 1, "Too many alias blocks: 1 allowed.", "aliases"),
    )


@limit("route53/record:Record", source=f"{_DNS}APIReference/API_ResourceRecordSet.html")
def values_of_a_record(wanted: Wanted) -> Iterator[Refusal]:
    """An alias, or a TTL with values of the record's type."""
    inputs, kind = wanted.inputs, wanted.inputs.get("type")
    alias, values = inputs.get("aliases"), [str(each) for each in inputs.get("records") or ()]
    both = alias and (values or inputs.get("ttl") is not None)
    whole = alias or (values and inputs.get("ttl") is not None)
    name = inputs.get("name")
    bad = next((each for each in values if not _is_of(str(kind), each)), None)
    yield from first_of(
        "ChangeResourceRecordSets",
        "InvalidInput",
        (
            both or not whole,
            (
                "Invalid XML ; Expected exactly one of [AliasTarget, all of [TTL, and "
                "ResourceRecords], or TrafficPolicyInstanceId], but found "
                f"{'more than one' if both else 'none'} in Change with [Action=CREATE, "
                f"Name={name}, Type={kind}]"
            ),
            "records",
        ),
    )
    yield from first_about(
        "ChangeResourceRecordSets",
        "InvalidChangeBatch",
        "records",
        (
            bad is not None,
            (
                f"Invalid Resource Record: 'FATAL problem: {_PROBLEMS.get(str(kind), '')} "
                f"encountered with '{bad}''"
            ),
        ),
        (
            len(set(values)) < len(values),
            f"Duplicate Resource Record: '{values[0] if values else ''}'",
        ),
        (len(values) > 400, "Number of records limit of 400 exceeded."),
        (
            kind == "CNAME" and len(values) > 1,
            f"CNAME set for {name} may have one value alone (Multiple CNAME records)",
        ),
    )


_PROBLEMS = {
    "A": "ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address)",
    "AAAA": "AAAARRDATAIllegalIPv6Address (Value is not a valid IPv6 address)",
    "TXT": "CharacterStringTooLong (Value is too long)",
}


_HOST = r"[A-Za-z0-9_*.-]+"
# Developer guide of Route 53, "Supported DNS record types": what a value consists of.
_FORMS = {
    "CAA": re.compile(r'\d{1,3} (issue|issuewild|issuemail|issuevmc|iodef) ".*"'),
    "CNAME": re.compile(_HOST),
    "DS": re.compile(r"\d{1,5} \d{1,3} \d{1,3} [0-9A-Fa-f ]+"),
    "MX": re.compile(rf"\d{{1,5}} {_HOST}"),
    "NS": re.compile(_HOST),
    "PTR": re.compile(_HOST),
    "SRV": re.compile(rf"\d{{1,5}} \d{{1,5}} \d{{1,5}} {_HOST}"),
}
# The most that the numbers before a host or a tag may be.
_MOST = {"CAA": 255, "MX": 65_535, "SRV": 65_535}


def _is_of(kind: str, value: str) -> bool:
    if kind in {"A", "AAAA"}:
        try:
            return ipaddress.ip_address(value).version == (4 if kind == "A" else 6)
        except ValueError:
            return False
    form = _FORMS.get(kind)
    if form is not None and form.fullmatch(value) is None:
        return False
    numbers = [int(each) for each in re.findall(r"\b\d+(?= )", value)] if kind in _MOST else []
    if any(number > _MOST[kind] for number in numbers):
        return False
    strings = re.findall(r'"([^"]*)"', value) or [value]
    short = all(len(each) <= _CHARACTERS_OF_A_STRING for each in strings)
    return kind != "TXT" or (short and len(value) <= _CHARACTERS_OF_A_TXT)
