"""The calls behind every resource type in use: calls.toml, and what rebuilds inputs for them.

`calls` says how to read them; importing this module enters them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from local.refusals.calls import TYPES, Inputs, Parameters, attributes, coerce, enter, pick, reads
from local.refusals.documents import as_list, parse, words
from local.refusals.model import input_shape

__all__ = ["TYPES"]


def _tag_specifications(inputs: Inputs) -> list[Parameters]:
    return [
        {
            "ResourceType": each["resourceType"],
            "Tags": [{"Key": k, "Value": str(v)} for k, v in each["tags"].items()],
        }
        for each in inputs.get("tagSpecifications") or ()
        if each.get("tags")
    ]


_TEMPLATE = words("template_inputs")


def template_data(inputs: Inputs) -> Parameters:
    """Return a launch template's data: what an instance is made of."""
    shape = input_shape("ec2", "CreateLaunchTemplate").members["LaunchTemplateData"]
    spelled = {"vpcSecurityGroupIds": "securityGroupIds", "securityGroupNames": "securityGroups"}
    given = {
        spelled.get(key, key): inputs[key]
        for key in _TEMPLATE
        if key in inputs and key != "tagSpecifications"
    }
    if "networkInterfaces" in given:
        given["networkInterfaces"] = [
            {**each, "groups": each.get("securityGroups")} for each in given["networkInterfaces"]
        ]
    tagged = _tag_specifications(inputs)
    return {**coerce(shape, given), **({"TagSpecifications": tagged} if tagged else {})}


def group_tags(group: str, tags: Iterable[Inputs]) -> list[Parameters]:
    """Return tags of a group as the calls that put them and take them off have them."""
    return [
        {
            "ResourceId": group,
            "ResourceType": "auto-scaling-group",
            "Key": tag["key"],
            "Value": str(tag.get("value", "")),
            "PropagateAtLaunch": bool(tag.get("propagateAtLaunch")),
        }
        for tag in tags
    ]


@reads("tag", "autoscalingGroupName")
def group_tag(inputs: Inputs) -> Parameters:
    """Return a tag that is a resource of its own as those calls take it."""
    return {"Tags": group_tags(inputs["autoscalingGroupName"], [inputs["tag"]])}


@reads(*_TEMPLATE)
def launch_template(inputs: Inputs) -> Parameters:
    """Return a launch template's data as the call that makes it takes it."""
    return {"LaunchTemplateData": template_data(inputs)}


@reads("vpcZoneIdentifiers")
def group(inputs: Inputs) -> Parameters:
    """Return a group's subnets, which are one text."""
    return {"VPCZoneIdentifier": ",".join(inputs.get("vpcZoneIdentifiers") or ())}


@reads("enabledClusterLogTypes")
def cluster(inputs: Inputs) -> Parameters:
    """Return a cluster's logs."""
    logs = {"types": list(inputs.get("enabledClusterLogTypes") or ()), "enabled": True}
    return {"logging": {"clusterLogging": [logs]}}


@reads(
    *("cidrIpv4", "cidrIpv6", "description", "fromPort", "ipProtocol"),
    *("referencedSecurityGroupId", "securityGroupId", "toPort"),
)
def rule_parameters(inputs: Inputs) -> Parameters:
    """Return a rule of a security group as the calls that add it and remove it take it."""
    description = {"Description": inputs["description"]} if inputs.get("description") else {}
    permission: Parameters = {"IpProtocol": str(inputs["ipProtocol"])}
    for key, member in (("fromPort", "FromPort"), ("toPort", "ToPort")):
        if inputs.get(key) is not None:
            permission[member] = int(inputs[key])
    if inputs.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **description}]
    if inputs.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": inputs["cidrIpv6"], **description}]
    if inputs.get("referencedSecurityGroupId"):
        group = {"GroupId": inputs["referencedSecurityGroupId"], **description}
        permission["UserIdGroupPairs"] = [group]
    return {"GroupId": inputs["securityGroupId"], "IpPermissions": [permission]}


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


QUEUE = {
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "maxMessageSize": "MaximumMessageSize",
    "delaySeconds": "DelaySeconds",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "policy": "Policy",
    "redrivePolicy": "RedrivePolicy",
    "redriveAllowPolicy": "RedriveAllowPolicy",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "kmsDataKeyReusePeriodSeconds": "KmsDataKeyReusePeriodSeconds",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "fifoQueue": "FifoQueue",
    "contentBasedDeduplication": "ContentBasedDeduplication",
}


def queue_attributes(inputs: Inputs) -> dict[str, str]:
    """Return a queue's attributes; SQS does not take FifoQueue where it is not one."""
    found = attributes(inputs, QUEUE)
    return {key: value for key, value in found.items() if (key, value) != ("FifoQueue", "false")}


def _dimensions(given: Any) -> list[Parameters]:
    return [{"Name": name, "Value": value} for name, value in sorted((given or {}).items())]


def _series(query: Inputs) -> Parameters:
    """Return one of an alarm's series, or the sum over them, as CloudWatch takes it."""
    plain = {"id": "Id", "expression": "Expression", "label": "Label", "returnData": "ReturnData"}
    found = pick(query, {**plain, "accountId": "AccountId", "period": "Period"})
    metric = query.get("metric")
    if metric:
        found["MetricStat"] = {
            "Metric": {
                **pick(metric, {"namespace": "Namespace", "metricName": "MetricName"}),
                "Dimensions": _dimensions(metric.get("dimensions")),
            },
            **pick(metric, {"period": "Period", "stat": "Stat", "unit": "Unit"}),
        }
    return found


@reads("metricQueries", "dimensions")
def alarm(inputs: Inputs) -> Parameters:
    """Return an alarm's series and its dimensions."""
    return {
        "Metrics": [_series(query) for query in inputs.get("metricQueries") or ()] or None,
        "Dimensions": _dimensions(inputs.get("dimensions")) or None,
    }


_TARGET = "arn deadLetterConfig input inputPath retryPolicy roleArn"


@reads("rule", "targetId", *_TARGET.split())
def target(inputs: Inputs) -> Parameters:
    """Return a rule's target; an id is drawn where it has none."""
    shape = input_shape("events", "PutTargets").members["Targets"].member
    found = coerce(shape, inputs)
    found["Id"] = inputs.get("targetId") or "terraform"
    return {"Rule": inputs["rule"], "Targets": [found]}


@reads(*QUEUE)
def queue(inputs: Inputs) -> Parameters:
    """Return a queue's attributes."""
    return {"Attributes": queue_attributes(inputs)}


def _key_schema(inputs: Inputs) -> list[Parameters]:
    if inputs.get("keySchemas"):
        return [
            {"AttributeName": key["attributeName"], "KeyType": key["keyType"]}
            for key in inputs["keySchemas"]
        ]
    keys = (("hashKey", "HASH"), ("rangeKey", "RANGE"))
    return [{"AttributeName": inputs[k], "KeyType": kind} for k, kind in keys if inputs.get(k)]


def index(wanted: Inputs) -> Parameters:
    """Return an index of a table as CreateTable takes it."""
    projection = {"ProjectionType": wanted.get("projectionType", "ALL")}
    if wanted.get("nonKeyAttributes"):
        projection["NonKeyAttributes"] = wanted["nonKeyAttributes"]
    return {
        "IndexName": wanted["name"],
        "KeySchema": _key_schema(wanted),
        "Projection": projection,
    }


@reads("attributes", "globalSecondaryIndexes", "hashKey", "localSecondaryIndexes", "rangeKey")
def table(inputs: Inputs) -> Parameters:
    """Return a table's keys, attributes and indexes."""
    indexes = [index(each) for each in inputs.get("globalSecondaryIndexes") or ()]
    own = {"hashKey": inputs.get("hashKey")}
    local = [index({**own, **each}) for each in inputs.get("localSecondaryIndexes") or ()]
    return {
        "KeySchema": _key_schema(inputs),
        "AttributeDefinitions": [
            {"AttributeName": each["name"], "AttributeType": each["type"]}
            for each in inputs.get("attributes") or ()
        ],
        "GlobalSecondaryIndexes": indexes or None,
        "LocalSecondaryIndexes": local or None,
    }


@reads("item")
def item(inputs: Inputs) -> Parameters:
    """Return an item; what is no value of DynamoDB's is refused elsewhere."""
    item = parse(inputs["item"]) or {}
    return {"Item": {key: value for key, value in item.items() if isinstance(value, dict)}}


# An export's blocks, of which the provider takes a list of one -> the member that each is.
_SINGLE = {
    "dataQueries": "dataQuery",
    "destinationConfigurations": "destinationConfigurations",
    "refreshCadences": "refreshCadence",
    "s3Destinations": "s3Destination",
    "s3OutputConfigurations": "s3OutputConfigurations",
}


def _singled(told: Inputs) -> Inputs:
    return {
        _SINGLE.get(key, key): _singled(value[0]) if key in _SINGLE else value
        for key, value in told.items()
    }


@reads("export")
def export(inputs: Inputs) -> Parameters:
    """Return what is exported, and where to."""
    shape = input_shape("bcm-data-exports", "CreateExport").members["Export"]
    return {"Export": coerce(shape, _singled(inputs["export"]))}


def _pairs(tags: Any) -> list[Parameters]:
    return [{"Key": key, "Value": value} for key, value in (tags or {}).items()]


@reads("policyDetails")
def snapshots(inputs: Inputs) -> Parameters:
    """Return what is snapshotted, when, and for how long."""
    details = dict(inputs["policyDetails"])
    targets = _pairs(details.pop("targetTags", None))
    schedules = [
        {
            **schedule,
            "tagsToAdd": _pairs(schedule.get("tagsToAdd")),
            "createRule": {
                **(schedule.get("createRule") or {}),
                "times": as_list((schedule.get("createRule") or {}).get("times") or []),
            },
        }
        for schedule in details.pop("schedules", ())
    ]
    shape = input_shape("dlm", "CreateLifecyclePolicy").members["PolicyDetails"]
    given = coerce(shape, {**details, "schedules": schedules})
    return {"PolicyDetails": {**given, "TargetTags": targets}}


@reads("rules")
def lifecycle(inputs: Inputs) -> Parameters:
    """Return a bucket's rules."""
    shape = input_shape("s3", "PutBucketLifecycleConfiguration").members["LifecycleConfiguration"]
    rules = [{**rule, "filter": _filter(rule.get("filter") or {})} for rule in inputs["rules"]]
    return {"LifecycleConfiguration": coerce(shape, {"rules": rules})}


def _filter(chosen: Inputs) -> Inputs:
    joined = chosen.get("and")
    return {**chosen, "and": {**joined, "tags": _pairs(joined.get("tags"))}} if joined else chosen


for _token, _told in tomllib.loads(Path(__file__).with_name("calls.toml").read_text()).items():
    enter(_token, _told)
