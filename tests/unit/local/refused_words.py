"""Words, numbers and pairs of inputs that no model of AWS's judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
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
    TARGETS,
)
from tests.unit.local.seeded_inputs import TARGET_GROUP, TEMPLATE, template
from tests.unit.local.test_refused_parts import LISTENER, TOPIC

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
    "a boolean of three letters": (GROUPS, {**LAUNCHING, "capacityRebalance": "yes"}, TYPE),
    "a number in words": (GROUPS, {**LAUNCHING, "maxSize": "two"}, TYPE),
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
    "a slow start of ten seconds": (TARGETS, {**TARGET_GROUP, "slowStart": 10}, WORD),
    "a key turned every 89 days": (
        KEYS,
        {"enableKeyRotation": True, "rotationPeriodInDays": 89},
        "ValidationException",
    ),
    "a topic traced always": (TOPIC, {"name": "t", "tracingConfig": "Always"}, WORD),
    "a FIFO queue's scope": (
        QUEUES,
        {"name": "q.fifo", "fifoQueue": True, "deduplicationScope": "group"},
        WORD,
    ),
    "zones beside subnets": (GROUPS, {**LAUNCHING, "availabilityZones": ["us-east-1a"]}, CONFLICT),
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
