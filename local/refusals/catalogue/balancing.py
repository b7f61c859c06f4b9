"""Load balancers and the names that lead to them."""

from __future__ import annotations

from collections.abc import Mapping

from local.refusals.calls import Parameters, reads
from local.refusals.catalogue.parameters import Inputs, attributes, pick
from local.refusals.documents import as_list
from local.refusals.model import input_shape
from local.shapes import coerce

BALANCER = {
    "enableCrossZoneLoadBalancing": "load_balancing.cross_zone.enabled",
    "enableDeletionProtection": "deletion_protection.enabled",
    "dnsRecordClientRoutingPolicy": "dns_record.client_routing_policy",
}
_GROUP = {
    "connectionTermination": "deregistration_delay.connection_termination.enabled",
    "deregistrationDelay": "deregistration_delay.timeout_seconds",
    "loadBalancingCrossZoneEnabled": "load_balancing.cross_zone.enabled",
    "preserveClientIp": "preserve_client_ip.enabled",
    "proxyProtocolV2": "proxy_protocol_v2.enabled",
}
_GROUP_HEALTH = {
    "dnsFailover": "target_group_health.dns_failover",
    "unhealthyStateRouting": "target_group_health.unhealthy_state_routing",
}
_MINIMUMS = {
    "minimumHealthyTargetsCount": "minimum_healthy_targets.count",
    "minimumHealthyTargetsPercentage": "minimum_healthy_targets.percentage",
}


def group_attributes(inputs: Inputs) -> dict[str, str]:
    """Return a target group's attributes, as ELB has them beside its settings."""
    found = attributes(inputs, _GROUP)
    health = next(iter(as_list(inputs.get("targetGroupHealth"))), None) or {}
    for part, prefix in _GROUP_HEALTH.items():
        minimums = attributes(health.get(part) or {}, _MINIMUMS)
        found |= {f"{prefix}.{name}": value for name, value in minimums.items()}
    return found


def pairs(attributes: Mapping[str, str]) -> list[Parameters]:
    """Return attributes as ELB takes them."""
    return [{"Key": key, "Value": value} for key, value in attributes.items()]


@reads("defaultActions")
def listener(inputs: Inputs) -> Parameters:
    """Return what a listener does with what it hears."""
    shape = input_shape("elbv2", "CreateListener").members["DefaultActions"]
    return {"DefaultActions": coerce(shape, list(inputs.get("defaultActions") or ()))}


@reads("healthCheck")
def health_check(inputs: Inputs) -> Parameters:
    """Return a target group's health check; ELB takes the port as text."""
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
    found = pick(check, names)
    if "HealthCheckPort" in found:
        found["HealthCheckPort"] = str(found["HealthCheckPort"])
    return found


@reads("comment", "vpcs")
def zone(inputs: Inputs) -> Parameters:
    """Return a zone's VPC and its comment."""
    vpcs = inputs.get("vpcs") or ()
    return {
        "CallerReference": "terraform-20260101000000000000000001",
        "HostedZoneConfig": {"Comment": inputs.get("comment") or ""},
        "VPC": {"VPCId": vpcs[0]["vpcId"]} if vpcs else None,
    }


@reads("name", "type", "zoneId", "ttl")
def record(inputs: Inputs) -> Parameters:
    """Return a record as the call that changes several takes it."""
    record = pick(inputs, {"name": "Name", "type": "Type", "ttl": "TTL"})
    return {
        "HostedZoneId": inputs["zoneId"],
        "ChangeBatch": {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]},
    }


# Only their form counts: the attributes' call wants the ARN that the create call has answered.
_BALANCER_ARN = (
    "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/n/0123456789abcdef"
)


_GROUP_ARN = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/n/0123456789abcdef"


@reads("internal")
def scheme(inputs: Inputs) -> Parameters:
    """Return where a load balancer is reached from."""
    return {"Scheme": "internal" if inputs.get("internal") else "internet-facing"}


@reads(*BALANCER)
def balancer_attributes(inputs: Inputs) -> Parameters:
    """Return a load balancer's attributes as their own call takes them."""
    return {"LoadBalancerArn": _BALANCER_ARN, "Attributes": pairs(attributes(inputs, BALANCER))}


@reads(*_GROUP, "targetGroupHealth")
def target_group_attributes(inputs: Inputs) -> Parameters:
    """Return a target group's attributes as their own call takes them."""
    return {"TargetGroupArn": _GROUP_ARN, "Attributes": pairs(group_attributes(inputs))}
