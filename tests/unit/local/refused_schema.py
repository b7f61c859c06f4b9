"""What the provider's schema and its documentation turn down before any call is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    GROUPS,
    LAUNCHING,
    OF_NODES,
    SCHEDULE,
    SCHEDULED,
    TABLES,
    without,
)
from tests.unit.local.seeded_inputs import ALARM, TABLE
from tests.unit.local.test_refused_parts import NODE_GROUP, SERIES

ALARM_TYPE, BLOCK = (
    "cloudwatch/metricAlarm:MetricAlarm",
    "s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
)
GRANT, VERSIONS = "kms/grant:Grant", "s3/bucketVersioning:BucketVersioning"
SPARK, QUEUE = "emrserverless/application:Application", "sqs/queue:Queue"
GRANTED = {
    "keyId": "arn:aws:kms:us-east-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef",
    "granteePrincipal": "arn:aws:iam::123456789012:role/scaler",
    "operations": ["Decrypt", "GenerateDataKey"],
}
REPORTS = {"name": "reports", "releaseLabel": "emr-7.5.0", "type": "SPARK"}
MISSING, UNKNOWN = "Missing required argument", "Unsupported argument"
MISTYPED, INVALID = "Incorrect attribute value type", "Invalid Attribute Value"
CONFLICT = "Conflicting configuration arguments"


def refreshed(**preferences: Any) -> Mapping[str, Any]:
    return {
        **LAUNCHING,
        "instanceRefresh": {"strategy": "Rolling", "preferences": preferences},
    }


def constrained(**constraint: Any) -> Mapping[str, Any]:
    return {**GRANTED, "constraints": [constraint]}


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a schedule without a window": (SCHEDULE, without(SCHEDULED, "flexibleTimeWindow"), MISSING),
    "a taint without an effect": (NODE_GROUP, {**OF_NODES, "taints": [{"key": "a"}]}, MISSING),
    "a refresh without a strategy": (GROUPS, {**LAUNCHING, "instanceRefresh": {}}, MISSING),
    "a key that there is not": (ALARM_TYPE, {**ALARM, **SERIES, "treatMissing": "x"}, UNKNOWN),
    "a key of a block that there is not": (
        TABLES,
        {**TABLE, "ttl": {"attribute": "x", "enabled": True}},
        UNKNOWN,
    ),
    "a setting of a versioned bucket": (VERSIONS, {"bucket": "b", "status": "Enabled"}, UNKNOWN),
    "a boolean that is a word": (BLOCK, {"bucket": "b", "blockPublicAcls": "sure"}, MISTYPED),
    "half a second": (QUEUE, {"name": "q", "visibilityTimeoutSeconds": 30.5}, MISTYPED),
    "a list of tags where a mapping is": (QUEUE, {"name": "q", "tags": ["a"]}, MISTYPED),
    "a word of a block": (
        GROUPS,
        {**LAUNCHING, "availabilityZoneDistribution": {"capacityDistributionStrategy": "even"}},
        INVALID,
    ),
    "a number of a block": (GROUPS, refreshed(maxHealthyPercentage=90), INVALID),
    "runs of a scheduler": (
        SPARK,
        {**REPORTS, "schedulerConfiguration": {"maxConcurrentRuns": 0}},
        INVALID,
    ),
    "a constraint twice over": (
        GRANT,
        constrained(encryptionContextEquals={"a": "b"}, encryptionContextSubset={"a": "b"}),
        CONFLICT,
    ),
    "two measures of repair": (
        NODE_GROUP,
        {
            **OF_NODES,
            "nodeRepairConfig": {
                "enabled": True,
                "maxParallelNodesRepairedCount": 1,
                "maxParallelNodesRepairedPercentage": 10,
            },
        },
        CONFLICT,
    ),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a grant: of one context": (GRANT, constrained(encryptionContextSubset={"a": "b"})),
    "a refresh: with what may be too many": (GROUPS, refreshed(maxHealthyPercentage=150)),
    "a group: that lives for ever": (GROUPS, {**LAUNCHING, "maxInstanceLifetime": 0}),
    "a group: that a function ends": (
        GROUPS,
        {
            **LAUNCHING,
            "terminationPolicies": ["arn:aws:lambda:us-east-1:123456789012:function:end:live"],
        },
    ),
    "an alarm: whose other series say nothing": (
        ALARM_TYPE,
        {
            **ALARM,
            "metricQueries": [
                {
                    "id": "m",
                    "metric": {"metricName": "a", "namespace": "b", "period": 60, "stat": "Sum"},
                },
                {"id": "e", "expression": "m * 2", "returnData": True},
            ],
        },
    ),
    "a table: with an index of its own": (
        TABLES,
        {
            **TABLE,
            "rangeKey": "at",
            "attributes": [{"name": "pk", "type": "S"}, {"name": "at", "type": "S"}],
            "localSecondaryIndexes": [
                {"name": "by-time", "rangeKey": "at", "projectionType": "KEYS_ONLY"}
            ],
        },
    ),
    "a flag: written as a word": (BLOCK, {"bucket": "b", "blockPublicAcls": "true"}),
    "a number: written as a text": (QUEUE, {"name": "q", "visibilityTimeoutSeconds": "30"}),
    "a setting: of a versioned bucket": (
        VERSIONS,
        {"bucket": "a-bucket", "versioningConfiguration": {"status": "Suspended"}},
    ),
}
