"""Refuses what load balancers do not take of listeners, health checks and logs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.fields import values
from local.refusals.limits import first_of, limit, outside
from local.refusals.refusal import Refusal, Wanted

_BALANCING = "https://docs.aws.amazon.com/elasticloadbalancing/latest/"
_API = f"{_BALANCING}APIReference/"
_GROUP = "lb/targetGroup:TargetGroup"
GENEVE_PORT = 6081


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
