"""Checks what a resource must have, and what it may not have together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.cidrs import network
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


@limit(
    "scheduler/schedule:Schedule",
    source="https://docs.aws.amazon.com/scheduler/latest/APIReference/API_FlexibleTimeWindow.html",
)
def window_of_a_schedule(wanted: Wanted) -> Iterator[Refusal]:
    """A flexible one says how many minutes."""
    window = wanted.inputs.get("flexibleTimeWindow") or {}
    if window.get("mode") == "FLEXIBLE" and not window.get("maximumWindowInMinutes"):
        message = "FlexibleTimeWindow must have MaximumWindowInMinutes when its mode is FLEXIBLE"
        yield Refusal("CreateSchedule", "ValidationException", message, "flexibleTimeWindow")


@limit("sns/topic:Topic", source="https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html")
def ending_of_a_fifo_topic(wanted: Wanted) -> Iterator[Refusal]:
    """.fifo, and no other topic's."""
    fifo = bool(wanted.inputs.get("fifoTopic"))
    if fifo != str(wanted.inputs.get("name") or "").endswith(".fifo"):
        message = "Invalid parameter: Fifo Topic names must end with .fifo"
        yield Refusal("CreateTopic", "InvalidParameter", message, "name")
    if wanted.inputs.get("contentBasedDeduplication") and not fifo:
        # The provider's own, before any call.
        message = "content-based deduplication can only be set for FIFO topics"
        at = "contentBasedDeduplication"
        yield Refusal("CreateTopic", "Invalid Attribute Combination", message, at)


@limit(
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    source="https://docs.aws.amazon.com/AmazonS3/latest/API/API_LifecycleRule.html",
)
def rules_of_a_lifecycle(wanted: Wanted) -> Iterator[Refusal]:
    """Each does something, after a day at the earliest."""
    operation = "PutBucketLifecycleConfiguration"
    actions = (
        "abortIncompleteMultipartUpload",
        "expiration",
        "noncurrentVersionExpiration",
        "noncurrentVersionTransitions",
        "transitions",
    )
    for rule in wanted.inputs.get("rules") or ():
        days = (rule.get("expiration") or {}).get("days")
        if not any(rule.get(action) for action in actions):
            message = "At least one action needs to be specified in a rule"
            yield Refusal(operation, "InvalidRequest", message, "rules")
        elif days is not None and int(days) < 1:
            message = "'Days' for Expiration action must be a positive integer"
            yield Refusal(operation, "InvalidArgument", message, "rules")


@limit(
    "cloudwatch/metricAlarm:MetricAlarm",
    source="https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDataQuery.html",
)
def what_an_alarm_looks_at(wanted: Wanted) -> Iterator[Refusal]:
    """One metric, or up to 20 queries whose names begin in lower case."""
    queries, metric = wanted.inputs.get("metricQueries") or (), wanted.inputs.get("metricName")
    wrong = ""
    if bool(queries) == bool(metric):
        wrong = "Exactly one of MetricName and Metrics must be specified"
    elif len(queries) > 20:
        wrong = "The collection Metrics must not have a size greater than 20."
    elif any(not re.fullmatch(r"[a-z][A-Za-z0-9_]{0,254}", str(each["id"])) for each in queries):
        wrong = (
            "The id of a metric data query must begin with a lower-case letter and have letters, "
        )
        wrong += "digits and underscores alone"
    if wrong:
        yield Refusal("PutMetricAlarm", "ValidationError", wrong, "metricQueries")


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


@limit(
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    source=f"{_EC2}API_IpRange.html",
)
def source_of_a_rule(wanted: Wanted) -> Iterator[Refusal]:
    """There is one, and a block is a block."""
    keys = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
    operation = f"AuthorizeSecurityGroup{'In' if 'Ingress' in wanted.type else 'E'}gress"
    if all(wanted.inputs.get(key) is None for key in keys):
        message = "Missing source specification: include source security group or CIDR information"
        yield Refusal(operation, "MissingParameter", message)
    elif not _is_block(wanted.inputs.get("cidrIpv4")):
        message = f"CIDR block {wanted.inputs['cidrIpv4']} is malformed"
        yield Refusal(operation, "InvalidParameterValue", message, "cidrIpv4")
    elif not _is_ipv6(wanted.inputs.get("cidrIpv6")):
        message = f"CIDR block {wanted.inputs['cidrIpv6']} is no network of IPv6"
        yield Refusal(operation, "InvalidParameterValue", message, "cidrIpv6")
    elif _has_host_bits(wanted.inputs.get("cidrIpv4")):
        # The provider's own, before any call: EC2 would keep the network and show another block
        # than the program's (terraform-provider-aws, IPv4CIDRNetworkAddress).
        message = "Attribute cidr_ipv4 value must be a valid IPv4 CIDR that represents a network "
        message += f"address, got: {wanted.inputs['cidrIpv4']}"
        yield Refusal(operation, "Invalid Attribute Value", message, "cidrIpv4")


@limit("ec2/route:Route", source=f"{_EC2}API_CreateRoute.html")
def destination_of_a_route(wanted: Wanted) -> Iterator[Refusal]:
    """A block, of the kind that its input has."""
    wide = wanted.inputs.get("destinationIpv6CidrBlock")
    narrow = wanted.inputs.get("destinationCidrBlock")
    if not _is_ipv6(wide) or (narrow is not None and ":" in str(narrow)):
        message = f"{wide if not _is_ipv6(wide) else narrow} is no block of this kind"
        at = "destinationCidrBlock" if _is_ipv6(wide) else "destinationIpv6CidrBlock"
        yield Refusal("CreateRoute", "InvalidParameterValue", message, at)
    block = wanted.inputs.get("destinationCidrBlock")
    if not _is_block(block):
        message = f"Value ({block}) for parameter destinationCidrBlock is invalid. This is not a "
        message += "valid CIDR block."
        yield Refusal("CreateRoute", "InvalidParameterValue", message, "destinationCidrBlock")
    elif _has_host_bits(block):
        # The provider's own, as of a rule's block.
        message = f'"{block}" is not a valid IPv4 CIDR block; did you mean '
        message += f'"{network(block)}"?'
        yield Refusal("CreateRoute", "Invalid Attribute Value", message, "destinationCidrBlock")


def _is_ipv6(written: object) -> bool:
    """Say whether a block is one of IPv6's, without host bits; none at all is in order."""
    found = network(written, strict=True)
    return written is None or (found is not None and found.version == 6)


def _has_host_bits(written: object) -> bool:
    return written is not None and str(network(written)) != str(written)


def _is_block(written: object) -> bool:
    return written is None or ("/" in str(written) and network(written) is not None)


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
