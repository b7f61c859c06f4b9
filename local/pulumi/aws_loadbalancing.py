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
    has_changed,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.calls import attributes, pick
from local.refusals.catalogue import BALANCER, group_attributes, health_check, pairs
from local.refusals.documents import as_list
from local.values import Properties


def _fresh(new: Mapping[str, str], old: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in new.items() if old.get(key) != value}


class _Elb(Adapter):
    """A resource of ELBv2, named by its ARN."""

    tagging = TagCalls("elbv2", "add_tags", "remove_tags", "ResourceArns", listed=True)


@adapts("lb/loadBalancer:LoadBalancer")
class LoadBalancerAdapter(_Elb):
    name_property = "name"
    replaces = frozenset({"internal", "loadBalancerType"})
    lookup = CallById("elbv2", "describe_load_balancers", "LoadBalancerArns", listed=True)
    deletion = CallById("elbv2", "delete_load_balancer", "LoadBalancerArn")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        kind = inputs.get("loadBalancerType", "application")
        made = self.make(aws, inputs, Type=kind)["LoadBalancers"][0]
        arn = made["LoadBalancerArn"]
        self.make(aws, inputs, 1, LoadBalancerArn=arn)
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
        fresh = _fresh(attributes(inputs, BALANCER), attributes(existing.inputs, BALANCER))
        if fresh:
            elb.modify_load_balancer_attributes(
                LoadBalancerArn=existing.id, Attributes=pairs(fresh)
            )
        if has_changed(existing, inputs, "subnets"):
            elb.set_subnets(LoadBalancerArn=existing.id, Subnets=inputs["subnets"])
        if has_changed(existing, inputs, "securityGroups"):
            groups = as_list(inputs.get("securityGroups"))
            elb.set_security_groups(LoadBalancerArn=existing.id, SecurityGroups=groups)
        return super().update(aws, existing, inputs)


@adapts("lb/targetGroup:TargetGroup")
class TargetGroupAdapter(_Elb):
    name_property = "name"
    replaces = frozenset({"port", "protocol", "targetType", "vpcId", "ipAddressType"})
    lookup = CallById("elbv2", "describe_target_groups", "TargetGroupArns", listed=True)
    deletion = CallById("elbv2", "delete_target_group", "TargetGroupArn")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        arn = self.make(aws, inputs)["TargetGroups"][0]["TargetGroupArn"]
        self.make(aws, inputs, 1, TargetGroupArn=arn)
        return State(arn, {"arn": arn, "arnSuffix": arn.rpartition(":")[2]})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        elb = aws.client("elbv2")
        if has_changed(existing, inputs, "healthCheck"):
            elb.modify_target_group(TargetGroupArn=existing.id, **health_check(inputs))
        fresh = _fresh(group_attributes(inputs), group_attributes(existing.inputs))
        if fresh:
            elb.modify_target_group_attributes(TargetGroupArn=existing.id, Attributes=pairs(fresh))
        return super().update(aws, existing, inputs)


@adapts("lb/listener:Listener")
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
        idle = attributes(inputs, {"tcpIdleTimeoutSeconds": "tcp.idle_timeout.seconds"})
        if idle:
            aws.client("elbv2").modify_listener_attributes(
                ListenerArn=listener, Attributes=pairs(idle)
            )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        arn = self.make(aws, inputs)["Listeners"][0]["ListenerArn"]
        self._keep_idle(aws, arn, inputs)
        return State(arn, {"arn": arn})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        if has_changed(existing, inputs, "port", "protocol", "defaultActions"):
            aws.client("elbv2").modify_listener(ListenerArn=existing.id, **self._settings(inputs))
        if has_changed(existing, inputs, "tcpIdleTimeoutSeconds"):
            self._keep_idle(aws, existing.id, inputs)
        return super().update(aws, existing, inputs)
