"""Load balancers and the names that lead to them."""

from __future__ import annotations

from collections.abc import Mapping

from local.refusals.calls import Parameters, call, enter
from local.refusals.catalogue.parameters import Inputs, attributes
from local.refusals.model import input_shape
from local.shapes import coerce

_BALANCER = {
    "enableCrossZoneLoadBalancing": "load_balancing.cross_zone.enabled",
    "enableDeletionProtection": "deletion_protection.enabled",
}


_GROUP = {
    "connectionTermination": "deregistration_delay.connection_termination.enabled",
    "deregistrationDelay": "deregistration_delay.timeout_seconds",
    "loadBalancingCrossZoneEnabled": "load_balancing.cross_zone.enabled",
    "preserveClientIp": "preserve_client_ip.enabled",
}


def _pairs(inputs: Inputs, names: Mapping[str, str]) -> list[Parameters]:
    return [{"Key": key, "Value": value} for key, value in attributes(inputs, names).items()]


# An action's block -> the member it is.
_ACTIONS = {
    "authenticateCognito": "AuthenticateCognitoConfig",
    "authenticateOidc": "AuthenticateOidcConfig",
    "fixedResponse": "FixedResponseConfig",
    "redirect": "RedirectConfig",
}


def _action(action: Inputs) -> Parameters:
    plain = {key: action[key] for key in ("type", "order", "targetGroupArn") if action.get(key)}
    found = {**plain, **{m: action[key] for key, m in _ACTIONS.items() if action.get(key)}}
    forward = action.get("forward")
    if forward:
        groups = [
            {"targetGroupArn": each.get("arn"), "weight": each.get("weight")}
            for each in forward.get("targetGroups") or ()
        ]
        sticky = forward.get("stickiness") or {}
        kept = {"enabled": sticky.get("enabled"), "durationSeconds": sticky.get("duration")}
        found["forwardConfig"] = {"targetGroups": groups, "targetGroupStickinessConfig": kept}
    return found


def _listener(inputs: Inputs) -> Parameters:
    shape = input_shape("elbv2", "CreateListener").members["DefaultActions"]
    return {"DefaultActions": coerce(shape, list(map(_action, inputs.get("defaultActions") or ())))}


def _health_check(inputs: Inputs) -> Parameters:
    check = inputs.get("healthCheck") or {}
    names = {
        "timeout": "HealthCheckTimeoutSeconds",
        "interval": "HealthCheckIntervalSeconds",
        "path": "HealthCheckPath",
        "port": "HealthCheckPort",
        "protocol": "HealthCheckProtocol",
        "healthyThreshold": "HealthyThresholdCount",
        "unhealthyThreshold": "UnhealthyThresholdCount",
    }
    return {member: check[key] for key, member in names.items() if check.get(key) is not None}


def _zone(inputs: Inputs) -> Parameters:
    vpcs = inputs.get("vpcs") or ()
    return {
        "CallerReference": "terraform-20260101000000000000000001",
        "HostedZoneConfig": {"Comment": inputs.get("comment") or ""},
        "VPC": {"VPCId": vpcs[0]["vpcId"]} if vpcs else None,
    }


# A routing policy's block, its key, and the member of the record that it is.
_ROUTED = (
    ("failoverRoutingPolicies", "type", "Failover"),
    ("latencyRoutingPolicies", "region", "Region"),
    ("weightedRoutingPolicies", "weight", "Weight"),
)


def _record(inputs: Inputs) -> Parameters:
    record: Parameters = {"Name": inputs["name"], "Type": inputs["type"]}
    if inputs.get("ttl") is not None:
        record["TTL"] = inputs["ttl"]
    for policy, key, member in _ROUTED:
        for each in inputs.get(policy) or ():
            if each.get(key) is not None:
                record[member] = each[key]
    for each in inputs.get("geolocationRoutingPolicies") or ():
        names = {"continent": "ContinentCode", "country": "CountryCode"}
        record["GeoLocation"] = {m: each[key] for key, m in names.items() if each.get(key)}
    if inputs.get("healthCheckId"):
        record["HealthCheckId"] = inputs["healthCheckId"]
    return {
        "HostedZoneId": inputs["zoneId"],
        "ChangeBatch": {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]},
    }


# Only their form counts: the attributes' call wants the ARN that the create call has answered.
_BALANCER_ARN = (
    "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/n/0123456789abcdef"
)


_GROUP_ARN = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/n/0123456789abcdef"


enter(
    "lb/listener:Listener",
    call("elbv2", "CreateListener", "defaultActions", build=_listener),
    tcpIdleTimeoutSeconds="a listener's attribute: see limits",
)
enter(
    "lb/loadBalancer:LoadBalancer",
    call(
        "elbv2",
        "CreateLoadBalancer",
        "internal",
        names={"loadBalancerType": "Type"},
        build=lambda i: {"Scheme": "internal" if i.get("internal") else "internet-facing"},
    ),
    call(
        "elbv2",
        "ModifyLoadBalancerAttributes",
        *_BALANCER,
        build=lambda i: {"LoadBalancerArn": _BALANCER_ARN, "Attributes": _pairs(i, _BALANCER)},
    ),
    enforceSecurityGroupInboundRulesOnPrivateLinkTraffic="SetSecurityGroups, on or off",
)
enter(
    "lb/targetGroup:TargetGroup",
    call("elbv2", "CreateTargetGroup", "healthCheck", build=_health_check),
    call(
        "elbv2",
        "ModifyTargetGroupAttributes",
        *_GROUP,
        build=lambda i: {"TargetGroupArn": _GROUP_ARN, "Attributes": _pairs(i, _GROUP)},
    ),
    targetGroupHealth="attributes with words and counts: see limits",
)
enter(
    "route53/record:Record",
    call("route53", "ChangeResourceRecordSets", "name", "type", "zoneId", "ttl", build=_record),
    aliases="names of AWS's own",
    records="addresses",
)
enter("route53/zone:Zone", call("route53", "CreateHostedZone", "comment", "vpcs", build=_zone))
