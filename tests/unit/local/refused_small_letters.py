"""Small print of what is sent, kept and called: just beyond it, and the nearest within."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    ITEM,
    QUEUES,
    RULE_TARGET,
    SCHEDULE,
    SCHEDULED,
    SUBSCRIBED,
    TABLES,
    TARGETED,
)
from tests.unit.local.seeded_inputs import (
    ALARM,
    FUNCTION,
    LAMBDA,
    TABLE,
)
from tests.unit.local.test_refused_parts import (
    ALARM_TYPE,
    LIFECYCLE,
    ROLE_ARN,
    RULE_TYPE,
    expiring,
)

BUCKET, OBJECT = "s3/bucket:Bucket", "s3/bucketObjectv2:BucketObjectv2"
VALUE, KIND = "InvalidParameterValue", "Incorrect attribute value type"
ERROR, VALIDATION, PARAMETER = "ValidationError", "ValidationException", "InvalidParameter"
PARAMETER_OF_TAGS = "InvalidParameterException"
DLQ = "arn:aws:sqs:us-east-1:12345:letters"
ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/gate:1"


def cron(fields: str) -> Mapping[str, Any]:
    return {"name": "r", "scheduleExpression": f"cron({fields})"}


def pattern(**told: Any) -> Mapping[str, Any]:
    return {"name": "r", "eventPattern": json.dumps(told)}


def alternatives(times: int) -> Mapping[str, Any]:
    return pattern(**{f"k{n}": {"$or": [{"a": [1]}, {"b": [2]}]} for n in range(times)})


def watched(**changed: Any) -> Mapping[str, Any]:
    told = {"metricName": "M", "namespace": "N", "statistic": "Sum", "period": 60}
    return {**ALARM, **told, **changed}


def told_by(**paths: str) -> Mapping[str, Any]:
    names = "".join(f"<{name}>" for name in paths)
    return {**TARGETED, "inputTransformer": {"inputPaths": paths, "inputTemplate": f'"{names}"'}}


def indexed(name: str) -> Mapping[str, Any]:
    attributes = [{"name": each, "type": "S"} for each in ("pk", "sk", "l")]
    local = {"name": "by-l", "rangeKey": "l", "projectionType": "ALL"}
    wide = {"name": name, "hashKey": "l", "projectionType": "ALL"}
    told = {"localSecondaryIndexes": [local], "globalSecondaryIndexes": [wide]}
    return {**TABLE, "rangeKey": "sk", "attributes": attributes, **told}


def item(**values: Any) -> Mapping[str, Any]:
    return {
        "tableName": "incidents",
        "hashKey": "pk",
        "item": json.dumps({"pk": {"S": "a"}, **values}),
    }


def redriven(arn: str) -> Mapping[str, Any]:
    policy = {"deadLetterTargetArn": arn, "maxReceiveCount": 3}
    return {"name": "q", "redrivePolicy": json.dumps(policy)}


def subscribed(**more: Any) -> Mapping[str, Any]:
    return {**SUBSCRIBED, **more}


def archived(days: int) -> Mapping[str, Any]:
    policy = json.dumps({"MessageRetentionPeriod": days})
    return {"name": "t.fifo", "fifoTopic": True, "archivePolicy": policy}


def put(**more: Any) -> Mapping[str, Any]:
    return {"bucket": "orders", "key": "k", "content": "x", **more}


def of_sizes(**sizes: int) -> Mapping[str, Any]:
    return expiring(filter=sizes, expiration={"days": 1})


def image(uri: str) -> Mapping[str, Any]:
    return {"name": "f", "role": ROLE_ARN, "packageType": "Image", "imageUri": uri}


# A name -> the type, what is refused, with which code, and the nearest that is taken.
Row = tuple[str, Mapping[str, Any], str, Mapping[str, Any]]
ROWS: Mapping[str, Row] = {
    "how a function was started, told to it": (
        LAMBDA,
        {**FUNCTION, "environment": {"variables": {"AWS_LAMBDA_INITIALIZATION_TYPE": "x"}}},
        "InvalidParameterValueException",
        {
            **FUNCTION,
            "environment": {"variables": {"AWS_LAMBDA_EXEC_WRAPPER": "/opt/x", "TZ": "UTC"}},
        },
    ),
    "dead letters to an account of five digits": (
        QUEUES,
        redriven(DLQ),
        VALUE,
        redriven(DLQ.replace("12345", "012345678901")),
    ),
    "1,024 combinations of a pattern": (
        RULE_TYPE,
        alternatives(10),
        "InvalidEventPatternException",
        alternatives(9),
    ),
    "an infinite number in a pattern": (
        RULE_TYPE,
        pattern(a=[float("inf")]),
        "InvalidEventPatternException",
        pattern(a=[1e300]),
    ),
    "a path of 257 characters": (
        RULE_TARGET,
        {**TARGETED, "inputPath": f"$.{'a' * 255}"},
        VALIDATION,
        {**TARGETED, "inputPath": f"$.{'a' * 254}"},
    ),
    "a path's name with a dot": (
        RULE_TARGET,
        told_by(**{"a.b": "$.detail"}),
        VALIDATION,
        told_by(a_b="$.detail"),
    ),
    "a threshold that is no number": (
        ALARM_TYPE,
        watched(threshold=float("nan")),
        KIND,
        watched(threshold=-1e9),
    ),
    "a threshold without end": (
        ALARM_TYPE,
        watched(threshold=float("inf")),
        KIND,
        watched(threshold="0.5"),
    ),
    "a wide index called as a local one": (TABLES, indexed("by-l"), VALIDATION, indexed("wide")),
    "a number twice in a set": (
        ITEM,
        item(v={"NS": ["1", "1.0"]}),
        VALIDATION,
        item(v={"NS": ["1", "1.1"]}),
    ),
    "a bucket called as in an account's own namespace": (
        BUCKET,
        {"bucket": "orders-123456789012-us-east-1-an"},
        "InvalidBucketName",
        {"bucket": "orders-plan"},
    ),
    "an attribute defined twice": (
        TABLES,
        {**TABLE, "attributes": [{"name": "pk", "type": kind} for kind in "SN"]},
        VALIDATION,
        TABLE,
    ),
    "a value of no name": (ITEM, item(**{"": {"S": "x"}}), VALIDATION, item(x={"S": ""})),
    "an object in a bucket in capitals": (
        OBJECT,
        {**put(), "bucket": "Orders"},
        "InvalidBucketName",
        put(),
    ),
    "a queue in a region there is not": (
        QUEUES,
        {"name": "q", "region": "us-east-7"},
        "Invalid Attribute Value",
        {"name": "q", "region": "eu-south-2"},
    ),
    "a tag with a line break": (
        QUEUES,
        {"name": "q", "tags": {"team": "a\nb"}},
        PARAMETER_OF_TAGS,
        {"name": "q", "tags": {"team": "a\u3000b"}},
    ),
    "a bucket's rules that are none": (
        LIFECYCLE,
        {"bucket": "orders", "rules": []},
        "MalformedXML",
        expiring(expiration={"days": 1}),
    ),
    "a FIFO queue's name that is drawn from 50 characters": (
        QUEUES,
        {"fifoQueue": True, "namePrefix": "q" * 50},
        VALUE,
        {"fifoQueue": True, "namePrefix": "q" * 49},
    ),
    **{
        f"a cron of {fields}": (RULE_TYPE, cron(fields), VALIDATION, cron(taken))
        for fields, taken in (
            ("L * * * ? *", "0 0 L * ? *"),
            ("0 L * * ? *", "0 0 LW * ? *"),
            ("0 0 ? * MONW *", "0 0 15W * ? *"),
            ("0 0 1#2 * ? *", "0 0 ? * MON#2 *"),
            ("0 0 ? * 3#1,6#3 *", "0 0 ? * 3,6 *"),
            ("0 0 1-2-3 * ? *", "0 0 1-3 * ? *"),
            ("0 0 1,,2 * ? *", "0 0 1,2 * ? *"),
            ("0 0 1- * ? *", "0 0 1-31 * ? *"),
            ("0/ 0 * * ? *", "0/5 0 * * ? *"),
            ("*/0 * * * ? *", "*/59 * * * ? *"),
            ("0 0 ? * LW *", "0 0 ? * 6L *"),
            ("0 0 -1 * ? *", "0 0 L-3 * ? *"),
            ("0 0 ? L ? *", "0 0 ? DEC MON-FRI 2199"),
        )
    },
    "a schedule's cron in words": (
        SCHEDULE,
        {**SCHEDULED, "scheduleExpression": "cron(0 0 ? JANUARY * *)"},
        VALIDATION,
        {**SCHEDULED, "scheduleExpression": "cron(0 0 ? jan * *)"},
    ),
}
