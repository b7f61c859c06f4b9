"""Checks what a resource must have, and what it may not have together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_EKS = "https://docs.aws.amazon.com/eks/latest/APIReference/"
VALIDATION = "ValidationException"
_LABEL = re.compile(r"(([A-Za-z0-9][A-Za-z0-9_.-]{0,61})?[A-Za-z0-9])?")
_LABEL_KEY = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
# EKS user guide, "Node taints on managed node groups".
TAINTS = 50
# EKS user guide, "Service quotas": those of the control plane, which no request raises.
SECURITY_GROUPS_OF_A_CLUSTER = 4
_RESERVED_LABELS = ("kubernetes.io/", "k8s.io/", "eks.amazonaws.com/")


@limit(
    "cloudwatch/eventRule:EventRule",
    source="https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html",
)
def what_a_rule_waits_for(wanted: Wanted) -> Iterator[Refusal]:
    """A pattern or a schedule."""
    if not wanted.inputs.get("scheduleExpression") and not wanted.inputs.get("eventPattern"):
        message = "Parameter(s) EventPattern or ScheduleExpression must be specified."
        yield Refusal("PutRule", "ValidationException", message, "eventPattern")


@limit("eks/cluster:Cluster", source=f"{_EKS}API_VpcConfigRequest.html")
def network_of_a_cluster(wanted: Wanted) -> Iterator[Refusal]:
    """Two subnets, four groups, and one way at least to the API server."""
    config, wrong = wanted.inputs.get("vpcConfig") or {}, ""
    private, public = (
        config.get("endpointPrivateAccess", False),
        config.get("endpointPublicAccess", True),
    )
    if len(set(config.get("subnetIds") or ())) < 2:
        wrong = "Subnets specified must be in at least two different AZs"
    elif len(config.get("securityGroupIds") or ()) > SECURITY_GROUPS_OF_A_CLUSTER:
        wrong = f"The maximum number of security groups is {SECURITY_GROUPS_OF_A_CLUSTER}"
    elif private is False and public is False:
        wrong = "Private and public endpoint access cannot be false"
    if wrong:
        yield Refusal("CreateCluster", "InvalidParameterException", wrong, "vpcConfig")


@limit("eks/nodeGroup:NodeGroup", source=f"{_EKS}API_CreateNodegroup.html")
def labels_and_updates_of_a_node_group(wanted: Wanted) -> Iterator[Refusal]:
    """Labels as Kubernetes takes them and none of its own; one measure of what may be away."""
    wrong = ""
    for key, value in (wanted.inputs.get("labels") or {}).items():
        if any(reserved in f"{key.partition('/')[0]}/" for reserved in _RESERVED_LABELS):
            wrong = f"Label cannot contain reserved prefixes {', '.join(_RESERVED_LABELS)}: {key}"
        elif _LABEL_KEY.fullmatch(key) is None:
            wrong = f"Label key {key} is invalid"
        elif _LABEL.fullmatch(str(value)) is None:
            wrong = f"Label value {value} of {key} is invalid"
    if len(wanted.inputs.get("taints") or ()) > TAINTS:
        wrong = f"A maximum of {TAINTS} taints can be applied to one node group"
    update = wanted.inputs.get("updateConfig") or {}
    if update.get("maxUnavailable") and update.get("maxUnavailablePercentage"):
        wrong = "Only one of maxUnavailable and maxUnavailablePercentage can be specified"
    if wrong:
        yield Refusal("CreateNodegroup", "InvalidParameterException", wrong)


@limit("ec2/vpcEndpoint:VpcEndpoint", source=f"{_EC2}API_CreateVpcEndpoint.html")
def parts_of_an_endpoint(wanted: Wanted) -> Iterator[Refusal]:
    """A gateway has route tables, and neither subnets nor groups."""
    if wanted.inputs.get("vpcEndpointType", "Gateway") != "Gateway":
        return
    for key in ("securityGroupIds", "subnetIds"):
        if wanted.inputs.get(key):
            message = f"{key} is not supported for endpoints of type Gateway"
            yield Refusal("CreateVpcEndpoint", "InvalidParameter", message, key)


_BALANCING = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/"


@limit("lb/loadBalancer:LoadBalancer", source=f"{_BALANCING}API_CreateLoadBalancer.html")
def subnets_of_a_balancer(wanted: Wanted) -> Iterator[Refusal]:
    """One at least, and of an application load balancer two."""
    places = [*(wanted.inputs.get(key) or () for key in ("subnets", "subnetMappings"))]
    kind = wanted.inputs.get("loadBalancerType") or "application"
    if kind == "application" and sum(map(len, places)) == 1:
        message = "At least two subnets in two different Availability Zones must be specified"
        yield Refusal("CreateLoadBalancer", "ValidationError", message, "subnets")
    if not any(places):
        message = "At least one subnet must be specified"
        yield Refusal("CreateLoadBalancer", "ValidationError", message, "subnets")


@limit("lb/listener:Listener", source=f"{_BALANCING}API_CreateListener.html")
def protocol_of_a_listener(wanted: Wanted) -> Iterator[Refusal]:
    """A network load balancer speaks no HTTP."""
    protocol = wanted.inputs.get("protocol")
    if ":loadbalancer/net/" in str(wanted.inputs.get("loadBalancerArn")) and protocol in {
        "HTTP",
        "HTTPS",
    }:
        message = f"Protocol '{protocol}' is not supported for load balancers with type 'network'"
        yield Refusal("CreateListener", "UnsupportedProtocol", message, "protocol")
