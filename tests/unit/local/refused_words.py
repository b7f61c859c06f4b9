"""Words, numbers and pairs of inputs that no model of AWS's judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    ADDED,
    ADDON,
    BALANCED,
    BALANCERS,
    DETAILS,
    GROUPS,
    KEPT,
    KEYS,
    LAUNCHING,
    LISTENING,
    QUEUES,
    SNAPSHOTS,
    TABLES,
    TARGETS,
    WATCHING,
)
from tests.unit.local.seeded_inputs import TABLE, TARGET_GROUP, TEMPLATE, template
from tests.unit.local.test_refused_parts import ALARM_TYPE, LISTENER, TOPIC

WORD, CONFLICT = "Invalid Attribute Value", "Conflicting configuration arguments"
TYPE, MIXED = "Incorrect attribute value type", "mixedInstancesPolicy"
OBJECT, SECRET = "s3/bucketObjectv2:BucketObjectv2", "secretsmanager/secretVersion:SecretVersion"
APPLICATION = "emrserverless/application:Application"
SPARK = {"name": "a", "releaseLabel": "emr-7.0.0", "type": "SPARK"}
SERVICE = "ec2/vpcEndpointService:VpcEndpointService"
OFFERED = {
    "acceptanceRequired": False,
    "networkLoadBalancerArns": [
        "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/a/0123456789abcdef"
    ],
}


def routed(**health: Any) -> Mapping[str, Any]:
    return {**TARGET_GROUP, "targetGroupHealth": health}


def distributed(**told: Any) -> Mapping[str, Any]:
    named = {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"}
    policy = {"launchTemplate": {"launchTemplateSpecification": named}}
    group = {key: value for key, value in LAUNCHING.items() if key != "launchTemplate"}
    return {**group, MIXED: {**policy, "instancesDistribution": told}}


def kept(**rule: Any) -> Mapping[str, Any]:
    schedule = {"name": "s", "createRule": {"interval": 24}, "retainRule": rule}
    return {**KEPT, "policyDetails": {**DETAILS, "schedules": [schedule]}}


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "metrics every five minutes": (
        GROUPS,
        {**LAUNCHING, "metricsGranularity": "5Minute"},
        "ValidationError",
    ),
    "a metric of no group": (
        GROUPS,
        {**LAUNCHING, "enabledMetrics": ["GroupFoo"]},
        "ValidationError",
    ),
    "a warmup of -5 s": (GROUPS, {**LAUNCHING, "defaultInstanceWarmup": -5}, "ValidationError"),
    "a boolean of three letters": (GROUPS, {**LAUNCHING, "capacityRebalance": "yes"}, TYPE),
    "a number in words": (GROUPS, {**LAUNCHING, "maxSize": "two"}, TYPE),
    "cheapest spot": (
        GROUPS,
        distributed(spotAllocationStrategy="cheapest"),
        "ValidationError",
    ),
    "on demand in turns": (
        GROUPS,
        distributed(onDemandAllocationStrategy="round-robin"),
        "ValidationError",
    ),
    "120 percent on demand": (
        GROUPS,
        distributed(onDemandPercentageAboveBaseCapacity=120),
        "ValidationError",
    ),
    "capacity in cores": (
        GROUPS,
        {**LAUNCHING, "desiredCapacityType": "cores"},
        "ValidationError",
    ),
    "credits without end": (
        TEMPLATE,
        template(creditSpecification={"cpuCredits": "infinite"}),
        "InvalidParameterValue",
    ),
    "a spot that restarts": (
        TEMPLATE,
        template(
            instanceMarketOptions={
                "marketType": "spot",
                "spotOptions": {"instanceInterruptionBehavior": "restart"},
            }
        ),
        "InvalidParameterValue",
    ),
    "a template's long description": (
        TEMPLATE,
        template(description="x" * 256),
        "InvalidParameterValue",
    ),
    "a VPC of hosts": (
        "ec2/vpc:Vpc",
        {"cidrBlock": "10.0.0.0/16", "instanceTenancy": "host"},
        WORD,
    ),
    "a service of IPv5": (SERVICE, {**OFFERED, "supportedIpAddressTypes": ["ipv5"]}, WORD),
    "an add-on that preserves from the start": (
        ADDON,
        {**ADDED, "resolveConflictsOnCreate": "PRESERVE"},
        WORD,
    ),
    "an application of Flink": (APPLICATION, {**SPARK, "type": "FLINK"}, WORD),
    "ALPN of no kind": (
        LISTENER,
        {**LISTENING, "protocol": "TLS", "alpnPolicy": "HTTP2"},
        WORD,
    ),
    "a route by zones": (
        BALANCERS,
        {**BALANCED, "dnsRecordClientRoutingPolicy": "zone_affinity"},
        WORD,
    ),
    "rules that are enforced no": (
        BALANCERS,
        {**BALANCED, "enforceSecurityGroupInboundRulesOnPrivateLinkTraffic": "no"},
        WORD,
    ),
    "an address kept maybe": (TARGETS, {**TARGET_GROUP, "preserveClientIp": "maybe"}, WORD),
    "zones crossed at will": (
        TARGETS,
        {**TARGET_GROUP, "loadBalancingCrossZoneEnabled": "auto"},
        WORD,
    ),
    "a check of port 70000": (
        TARGETS,
        {**TARGET_GROUP, "healthCheck": {"port": "70000"}},
        "ValidationError",
    ),
    "101 percent healthy": (
        TARGETS,
        routed(unhealthyStateRouting={"minimumHealthyTargetsPercentage": "101"}),
        "ValidationError",
    ),
    "no healthy target for DNS": (
        TARGETS,
        routed(dnsFailover={"minimumHealthyTargetsCount": "0"}),
        "ValidationError",
    ),
    "no healthy target for traffic": (
        TARGETS,
        routed(unhealthyStateRouting={"minimumHealthyTargetsCount": 0}),
        "ValidationError",
    ),
    "a slow start of ten seconds": (TARGETS, {**TARGET_GROUP, "slowStart": 10}, WORD),
    "a stream of both images in other words": (
        TABLES,
        {**TABLE, "streamEnabled": True, "streamViewType": "BOTH"},
        "ValidationException",
    ),
    "a table restored over 36 days": (
        TABLES,
        {**TABLE, "pointInTimeRecovery": {"enabled": True, "recoveryPeriodInDays": 36}},
        "ValidationException",
    ),
    "a key turned every 89 days": (
        KEYS,
        {"enableKeyRotation": True, "rotationPeriodInDays": 89},
        "ValidationException",
    ),
    "a third signature": (TOPIC, {"name": "t", "signatureVersion": 3}, WORD),
    "a topic traced always": (TOPIC, {"name": "t", "tracingConfig": "Always"}, WORD),
    "a FIFO queue's scope": (
        QUEUES,
        {"name": "q.fifo", "fifoQueue": True, "deduplicationScope": "group"},
        WORD,
    ),
    "two thresholds": (ALARM_TYPE, {**WATCHING, "thresholdMetricId": "e1"}, CONFLICT),
    "a name and its beginning": (TOPIC, {"name": "t", "namePrefix": "t-"}, CONFLICT),
    "groups twice in a template": (
        TEMPLATE,
        template(
            vpcSecurityGroupIds=["sg-0123456789abcdef0"],
            networkInterfaces=[{"deviceIndex": 0, "securityGroups": ["sg-0123456789abcdef0"]}],
        ),
        "InvalidParameterCombination",
    ),
    "a profile by ARN and by name": (
        TEMPLATE,
        template(iamInstanceProfile={"arn": "arn:aws:iam::123456789012:x/y", "name": "y"}),
        CONFLICT,
    ),
    "zones beside subnets": (GROUPS, {**LAUNCHING, "availabilityZones": ["us-east-1a"]}, CONFLICT),
    "snapshots by count and by age": (
        SNAPSHOTS,
        kept(count=3, interval=7, intervalUnit="DAYS"),
        CONFLICT,
    ),
    "an object from a file and from text": (
        OBJECT,
        {"bucket": "b", "key": "k", "content": "x", "source": "/x"},
        CONFLICT,
    ),
    "a secret in text and in bytes": (
        SECRET,
        {"secretId": "s", "secretString": "x", "secretBinary": "eA=="},
        CONFLICT,
    ),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a group: subnets twice": (
        # The provider's set has them once.
        GROUPS,
        {**LAUNCHING, "vpcZoneIdentifiers": ["subnet-1", "subnet-1"]},
    ),
    "a group: every metric": (
        GROUPS,
        {**LAUNCHING, "metricsGranularity": "1Minute", "enabledMetrics": ["GroupMaxSize"]},
    ),
    "a group: a warmup taken away": (GROUPS, {**LAUNCHING, "defaultInstanceWarmup": -1}),
    "a group: a number in text": (GROUPS, {**LAUNCHING, "maxSize": "2"}),
    "a group: mixed": (
        GROUPS,
        distributed(
            spotAllocationStrategy="price-capacity-optimized",
            onDemandPercentageAboveBaseCapacity=0,
        ),
    ),
    "an application: a lower-case type": (APPLICATION, {**SPARK, "type": "spark"}),
    "an application: cores without their unit": (
        APPLICATION,
        {**SPARK, "maximumCapacity": {"cpu": "64", "memory": "256 GB"}},
    ),
    "a balancer: an idle timeout that only others have": (
        # The provider leaves it out of a network balancer's.
        BALANCERS,
        {**BALANCED, "loadBalancerType": "network", "enableCrossZoneLoadBalancing": True},
    ),
    "a target group: off, and one at least": (
        TARGETS,
        routed(
            dnsFailover={
                "minimumHealthyTargetsCount": "1",
                "minimumHealthyTargetsPercentage": "off",
            },
            unhealthyStateRouting={"minimumHealthyTargetsPercentage": "100"},
        ),
    ),
    "a topic: the second signature, as the engine has numbers": (
        TOPIC,
        {"name": "t", "signatureVersion": 2.0},
    ),
    "a topic's text": (TOPIC, {"name": "t", "displayName": "On call"}),
    "snapshots: by age": (SNAPSHOTS, kept(interval=7, intervalUnit="DAYS")),
    "an object: from text": (OBJECT, {"bucket": "b", "key": "k", "content": json.dumps({})}),
}
