"""Load balancers: what the load balancer controller, the health checks and the proxy read in moto.

The endpoint service and the private zone are only stored: nothing of the twin dials through them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    TagCalls,
    adapts,
    as_list,
    first,
    has_changed,
    pick,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.values import Properties

_BALANCER_ATTRIBUTES = {
    "enableCrossZoneLoadBalancing": "load_balancing.cross_zone.enabled",
    "enableDeletionProtection": "deletion_protection.enabled",
    "dnsRecordClientRoutingPolicy": "dns_record.client_routing_policy",
}
_GROUP_ATTRIBUTES = {
    "deregistrationDelay": "deregistration_delay.timeout_seconds",
    "connectionTermination": "deregistration_delay.connection_termination.enabled",
    "preserveClientIp": "preserve_client_ip.enabled",
    "proxyProtocolV2": "proxy_protocol_v2.enabled",
    "loadBalancingCrossZoneEnabled": "load_balancing.cross_zone.enabled",
}
_GROUP_HEALTH = {
    "dnsFailover": "target_group_health.dns_failover",
    "unhealthyStateRouting": "target_group_health.unhealthy_state_routing",
}
_MINIMUMS = {
    "minimumHealthyTargetsCount": "minimum_healthy_targets.count",
    "minimumHealthyTargetsPercentage": "minimum_healthy_targets.percentage",
}
_CHECK = {
    "protocol": "HealthCheckProtocol",
    "port": "HealthCheckPort",
    "interval": "HealthCheckIntervalSeconds",
    "timeout": "HealthCheckTimeoutSeconds",
    "healthyThreshold": "HealthyThresholdCount",
    "unhealthyThreshold": "UnhealthyThresholdCount",
}


def _attributes(inputs: Properties, names: Mapping[str, str]) -> dict[str, str]:
    """Return attributes as ELB takes them: every value a string."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in pick(inputs, names).items()
    }


def group_attributes(inputs: Properties) -> dict[str, str]:
    found = _attributes(inputs, _GROUP_ATTRIBUTES)
    health = first(as_list(inputs.get("targetGroupHealth"))) or {}
    for part, prefix in _GROUP_HEALTH.items():
        minimums = _attributes(health.get(part) or {}, _MINIMUMS)
        found |= {f"{prefix}.{name}": value for name, value in minimums.items()}
    return found


def _as_list(attributes: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in attributes.items()]


def _fresh(new: Mapping[str, str], old: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in new.items() if old.get(key) != value}


class _Elb(Adapter):
    """A resource of ELBv2, named by its ARN."""

    tagging = TagCalls("elbv2", "add_tags", "remove_tags", "ResourceArns", listed=True)

    @staticmethod
    def _tags(inputs: Properties) -> dict[str, Any]:
        """Return the parameter for tags, which ELB does not take empty."""
        tags = tag_list(tags_of(inputs))
        return {"Tags": tags} if tags else {}


@adapts("lb/loadBalancer:LoadBalancer", "alb/loadBalancer:LoadBalancer")
class LoadBalancerAdapter(_Elb):
    name_property = "name"
    replaces = frozenset({"internal", "loadBalancerType"})
    lookup = CallById("elbv2", "describe_load_balancers", "LoadBalancerArns", listed=True)
    deletion = CallById("elbv2", "delete_load_balancer", "LoadBalancerArn")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        elb = aws.client("elbv2")
        made = elb.create_load_balancer(
            Name=inputs["name"],
            Type=inputs.get("loadBalancerType", "application"),
            Scheme="internal" if inputs.get("internal") else "internet-facing",
            Subnets=inputs["subnets"],
            SecurityGroups=as_list(inputs.get("securityGroups")),
            **self._tags(inputs),
        )["LoadBalancers"][0]
        arn = made["LoadBalancerArn"]
        attributes = _attributes(inputs, _BALANCER_ATTRIBUTES)
        elb.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=_as_list(attributes))
        return State(
            arn,
            {
                "arn": arn,
                "arnSuffix": arn.partition(":loadbalancer/")[2],
                "dnsName": made["DNSName"],
                "zoneId": made["CanonicalHostedZoneId"],
                "vpcId": made["VpcId"],
            },
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        elb = aws.client("elbv2")
        new = _attributes(inputs, _BALANCER_ATTRIBUTES)
        fresh = _fresh(new, _attributes(existing.inputs, _BALANCER_ATTRIBUTES))
        if fresh:
            elb.modify_load_balancer_attributes(
                LoadBalancerArn=existing.id, Attributes=_as_list(fresh)
            )
        if has_changed(existing, inputs, "subnets"):
            elb.set_subnets(LoadBalancerArn=existing.id, Subnets=inputs["subnets"])
        if has_changed(existing, inputs, "securityGroups"):
            groups = as_list(inputs.get("securityGroups"))
            elb.set_security_groups(LoadBalancerArn=existing.id, SecurityGroups=groups)
        self.tagging.bring(aws, existing.id, existing, inputs)
        return {}


@adapts("lb/targetGroup:TargetGroup", "alb/targetGroup:TargetGroup")
class TargetGroupAdapter(_Elb):
    name_property = "name"
    replaces = frozenset({"port", "protocol", "targetType", "vpcId", "ipAddressType"})
    lookup = CallById("elbv2", "describe_target_groups", "TargetGroupArns", listed=True)
    deletion = CallById("elbv2", "delete_target_group", "TargetGroupArn")

    @staticmethod
    def _check(inputs: Properties) -> dict[str, Any]:
        """Return the health check's parameters; ELB takes the port as text."""
        found = pick(inputs.get("healthCheck") or {}, _CHECK)
        if "HealthCheckPort" in found:
            found["HealthCheckPort"] = str(found["HealthCheckPort"])
        return found

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        elb = aws.client("elbv2")
        made = elb.create_target_group(
            Name=inputs["name"],
            **pick(
                inputs,
                {
                    "port": "Port",
                    "protocol": "Protocol",
                    "targetType": "TargetType",
                    "vpcId": "VpcId",
                },
            ),
            **self._check(inputs),
            **self._tags(inputs),
        )["TargetGroups"][0]
        arn = made["TargetGroupArn"]
        elb.modify_target_group_attributes(
            TargetGroupArn=arn, Attributes=_as_list(group_attributes(inputs))
        )
        return State(arn, {"arn": arn, "arnSuffix": arn.rpartition(":")[2]})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        elb = aws.client("elbv2")
        if has_changed(existing, inputs, "healthCheck"):
            elb.modify_target_group(TargetGroupArn=existing.id, **self._check(inputs))
        fresh = _fresh(group_attributes(inputs), group_attributes(existing.inputs))
        if fresh:
            elb.modify_target_group_attributes(
                TargetGroupArn=existing.id, Attributes=_as_list(fresh)
            )
        self.tagging.bring(aws, existing.id, existing, inputs)
        return {}


@adapts("lb/listener:Listener", "alb/listener:Listener")
class ListenerAdapter(_Elb):
    replaces = frozenset({"loadBalancerArn"})
    lookup = CallById("elbv2", "describe_listeners", "ListenerArns", listed=True)
    deletion = CallById("elbv2", "delete_listener", "ListenerArn")

    @staticmethod
    def _settings(inputs: Properties) -> dict[str, Any]:
        actions = [
            pick(action, {"type": "Type", "targetGroupArn": "TargetGroupArn"})
            for action in inputs["defaultActions"]
        ]
        return {
            **pick(inputs, {"port": "Port", "protocol": "Protocol"}),
            "DefaultActions": actions,
        }

    @staticmethod
    def _keep_idle(aws: Aws, listener: str, inputs: Properties) -> None:
        idle = _attributes(inputs, {"tcpIdleTimeoutSeconds": "tcp.idle_timeout.seconds"})
        if idle:
            aws.client("elbv2").modify_listener_attributes(
                ListenerArn=listener, Attributes=_as_list(idle)
            )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = aws.client("elbv2").create_listener(
            LoadBalancerArn=inputs["loadBalancerArn"],
            **self._settings(inputs),
            **self._tags(inputs),
        )["Listeners"][0]
        arn = made["ListenerArn"]
        self._keep_idle(aws, arn, inputs)
        return State(arn, {"arn": arn})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        if has_changed(existing, inputs, "port", "protocol", "defaultActions"):
            aws.client("elbv2").modify_listener(ListenerArn=existing.id, **self._settings(inputs))
        if has_changed(existing, inputs, "tcpIdleTimeoutSeconds"):
            self._keep_idle(aws, existing.id, inputs)
        self.tagging.bring(aws, existing.id, existing, inputs)
        return {}
