"""Refuses what load balancers do not take of listeners, health checks and logs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.fields import values
from local.refusals.limits import Refuser, first_of, limit, outside
from local.refusals.patterns import enter_patterns
from local.refusals.refusal import Refusal, Wanted

_BALANCING = "https://docs.aws.amazon.com/elasticloadbalancing/latest/"
_API = f"{_BALANCING}APIReference/"
_PORT = r"[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5]"
_GROUP = "lb/targetGroup:TargetGroup"
GENEVE_PORT = 6081

enter_patterns(
    Refuser(_GROUP, "CreateTargetGroup", "ValidationError"),
    f"{_API}API_CreateTargetGroup.html",
    (
        "healthCheck.port",
        rf"traffic-port|{_PORT}",
        "Health check port '{0}' must be 'traffic-port' or a port between 1 and 65535",
    ),
)
enter_patterns(
    Refuser(_GROUP, "ModifyTargetGroupAttributes", "ValidationError"),
    f"{_API}API_TargetGroupAttribute.html",
    *(
        (
            f"targetGroupHealth.{block}.minimumHealthyTargets{key}",
            rf"off|{form}",
            "'{0}' is no valid minimum of healthy targets: off, or a positive whole number",
        )
        for block, key, form in (
            ("dnsFailover", "Count", r"[1-9]\d*"),
            ("dnsFailover", "Percentage", r"[1-9]\d?|100"),
            ("unhealthyStateRouting", "Percentage", r"[1-9]\d?|100"),
        )
    ),
)
enter_patterns(
    # The provider's own, before any call.
    Refuser(_GROUP, "ModifyTargetGroupAttributes", "Invalid Attribute Value"),
    f"{_BALANCING}application/edit-target-group-attributes.html",
    (
        "slowStart",
        r"0|[3-9]\d|[1-8]\d{2}|900",
        '"slow_start" must be 0 or between 30 and 900, got {0}',
    ),
)


@limit("lb/listener:Listener", source=f"{_API}API_CreateListener.html")
def policy_and_action_of_a_listener(wanted: Wanted) -> Iterator[Refusal]:
    """A security policy where TLS ends; one place to forward to, and that is named."""
    inputs = wanted.inputs
    protocol = inputs.get("protocol")
    forwards = [
        each for each in inputs.get("defaultActions") or () if each.get("type") == "forward"
    ]
    groups = values(inputs, "defaultActions.*.forward.targetGroups.*.arn")
    network = ":loadbalancer/net/" in str(inputs.get("loadBalancerArn"))
    several = [
        each
        for each in forwards
        if each.get("targetGroupArn") and values(each, "forward.targetGroups.*.arn")
        if values(each, "forward.targetGroups.*.arn") != [each["targetGroupArn"]]
    ]
    nowhere = [e for e in forwards if not e.get("targetGroupArn") and not e.get("forward")]
    yield from first_of(
        "CreateListener",
        "ValidationError",
        (
            inputs.get("sslPolicy") and protocol not in {"TLS", "HTTPS"},
            f"An SSL policy cannot be specified for {protocol} listeners",
            "sslPolicy",
        ),
        (
            inputs.get("alpnPolicy") not in (None, "", "None") and protocol != "TLS",
            f"An ALPN policy cannot be specified for {protocol} listeners",
            "alpnPolicy",
        ),
        (
            len(forwards) > 1,
            "You must specify exactly one forward, redirect or fixed-response action",
            "defaultActions",
        ),
        (
            several,
            "A target group's ARN and other target groups cannot be forwarded to together",
            "defaultActions",
        ),
        (nowhere, "A target group must be specified for forward actions", "defaultActions"),
        (len(set(groups)) < len(groups), "Target groups must be unique", "defaultActions"),
        (len(groups) > 5, "A forward action may have up to 5 target groups", "defaultActions"),
        (
            network and inputs.get("port") is None,
            "A listener of a network load balancer must have a port",
            "port",
        ),
        (
            network and protocol is None,
            "A listener of a network load balancer must have a protocol",
            "protocol",
        ),
    )


# The user guides, "Security policies": of both kinds of load balancers.
_TLS13 = ("1-0", "1-1", "1-2", "1-2-Ext0", "1-2-Ext1", "1-2-Ext2", "1-2-Res", "1-3")
POLICIES = frozenset(
    {
        *("2015-05", "2016-08", "FS-2018-06", "FS-1-1-2019-08", "FS-1-2-2019-08"),
        *("FS-1-2-Res-2019-08", "FS-1-2-Res-2020-10", "TLS-1-0-2015-04", "TLS-1-1-2017-01"),
        *("TLS-1-2-2017-01", "TLS-1-2-Ext-2018-06"),
        *(f"TLS13-{each}-2021-06" for each in _TLS13),
        *(f"TLS13-{each}-PQ-2025-09" for each in _TLS13),
        *(f"TLS13-{each}-FIPS-2023-04" for each in _TLS13),
        *(f"TLS13-{each}-FIPS-PQ-2025-09" for each in _TLS13),
    }
)


@limit("lb/listener:Listener", source=f"{_BALANCING}network/describe-ssl-policies.html")
def security_policy_of_a_listener(wanted: Wanted) -> Iterator[Refusal]:
    """One of those that there are."""
    policy = str(wanted.inputs.get("sslPolicy") or "")
    if policy and policy.removeprefix("ELBSecurityPolicy-") not in POLICIES:
        message = f"SSL policy '{policy}' not found"
        yield Refusal("CreateListener", "SSLPolicyNotFound", message, "sslPolicy")


@limit("lb/loadBalancer:LoadBalancer", source=f"{_API}API_LoadBalancerAttribute.html")
def logs_and_addresses_of_a_balancer(wanted: Wanted) -> Iterator[Refusal]:
    """Logs into a bucket; addresses of its own outside alone."""
    inputs = wanted.inputs
    logs = inputs.get("accessLogs") or {}
    internal = bool(inputs.get("internal"))
    addresses = values(inputs, "subnetMappings.*.allocationId")
    yield from first_of(
        "CreateLoadBalancer",
        "InvalidConfigurationRequest",
        (
            logs.get("enabled") and not logs.get("bucket"),
            "S3 bucket name must be specified to enable access logging",
            "accessLogs",
        ),
        (
            internal and addresses,
            "Elastic IP addresses cannot be used by internal load balancers",
            "subnetMappings",
        ),
        (
            len(set(addresses)) < len(addresses),
            "An Elastic IP address can be used in one subnet alone",
            "subnetMappings",
        ),
        (
            not internal and values(inputs, "subnetMappings.*.privateIpv4Address"),
            "Private IPv4 addresses can be specified for internal load balancers alone",
            "subnetMappings",
        ),
    )


@limit(_GROUP, source=f"{_BALANCING}network/load-balancer-target-groups.html")
def kind_of_a_group(wanted: Wanted) -> Iterator[Refusal]:
    """Of a balancer a TCP group, of functions a group of no port; what its checks may ask."""
    inputs = wanted.inputs
    kind, protocol = inputs.get("targetType") or "instance", inputs.get("protocol")
    check = inputs.get("healthCheck") or {}
    network = protocol in {"TCP", "TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC"}
    path, asks = check.get("path"), check.get("protocol")
    codes = [int(each) for each in re.findall(r"\d{3}", str(check.get("matcher") or ""))]
    most = 599 if network else 499
    sticky = (inputs.get("stickiness") or {}).get("enabled", bool(inputs.get("stickiness")))
    yield from first_of(
        "CreateTargetGroup",
        "ValidationError",
        (
            kind == "lambda" and (protocol or inputs.get("port")),
            "Protocol and port cannot be specified for target groups of functions",
            "targetType",
        ),
        (kind != "lambda" and inputs.get("port") is None, "A port must be specified", "port"),
        (kind != "lambda" and not protocol, "A protocol must be specified", "protocol"),
        (
            protocol == "GENEVE" and inputs.get("port") != GENEVE_PORT,
            f"Port must be {GENEVE_PORT} for target groups with the GENEVE protocol",
            "port",
        ),
        (
            kind == "alb" and protocol != "TCP",
            f"Protocol '{protocol}' is not supported for target groups with target type 'alb'",
            "protocol",
        ),
        (
            not network and asks == "TCP" and protocol in {"HTTP", "HTTPS"},
            f"Health check protocol 'TCP' is not supported for the protocol '{protocol}'",
            "healthCheck",
        ),
        (
            any(outside(each, 200, most) for each in codes),
            f"Health check matcher HTTP code must be within 200-{most}",
            "healthCheck",
        ),
        (
            protocol == "TLS" and sticky,
            "Stickiness is not supported with TLS listeners and TLS target groups",
            "stickiness",
        ),
        (
            path is not None and path and not str(path).startswith("/"),
            f"Health check path '{path}' must begin with a '/' character",
            "healthCheck",
        ),
    )
