"""Limits from both sides: what is just beyond is refused, what is just within is taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    BALANCED,
    BALANCERS,
    CERTIFICATE,
    ENCRYPTION,
    ITEM,
    LAUNCHING,
    LISTENING,
    MAPPING,
    QUEUES,
    RECORD,
    RECORDED,
    SCHEDULE,
    SCHEDULED,
    TABLES,
    TARGETS,
    policy,
)
from tests.unit.local.seeded_inputs import FUNCTION, GROUP, INGRESS, LAMBDA, TABLE, TARGET_GROUP
from tests.unit.local.test_refused_parts import LIFECYCLE, QUEUE, ROLE_ARN

BUCKET_OBJECT, DATABASE = "s3/bucketObjectv2:BucketObjectv2", "glue/catalogDatabase:CatalogDatabase"
ENDPOINT_SERVICE = "ec2/vpcEndpointService:VpcEndpointService"
GRANT, ADDRESSES = "kms/grant:Grant", "lambda/functionUrl:FunctionUrl"
VALIDATION, VALUE = "ValidationException", "InvalidParameterValueException"
PROVIDER, ERROR, XML = "Invalid Attribute Value", "ValidationError", "MalformedXML"
SDK = "arn:aws:scheduler:::aws-sdk:"
LAYER = "arn:aws:lambda:us-east-1:123456789012:layer:l"
TLS = {**LISTENING, "protocol": "TLS", "certificateArn": CERTIFICATE.replace("/x", "/0a")}
STATEMENT = {
    "Effect": "Allow",
    "Principal": {"AWS": ROLE_ARN},
    "Action": "sqs:SendMessage",
    "Resource": QUEUE,
}


def function(**changed: Any) -> Mapping[str, Any]:
    return {**FUNCTION, **changed}


def mapped(**changed: Any) -> Mapping[str, Any]:
    return {"eventSourceArn": QUEUE, "functionName": "f", **changed}


def secret(**changed: Any) -> Mapping[str, Any]:
    return {"name": "s", **changed}


def database(**changed: Any) -> Mapping[str, Any]:
    return {"name": "d", **changed}


def calling(action: str, **told: Any) -> Mapping[str, Any]:
    target = {"arn": f"{SDK}{action}", "roleArn": ROLE_ARN, "input": json.dumps(told)}
    return {**SCHEDULED, "target": target}


def checked(protocol: str, matcher: str) -> Mapping[str, Any]:
    check = {"protocol": "HTTP", "path": "/", "matcher": matcher}
    return {**TARGET_GROUP, "targetType": "ip", "protocol": protocol, "healthCheck": check}


def sticky(protocol: str, **told: Any) -> Mapping[str, Any]:
    return {**TARGET_GROUP, "targetType": "ip", "protocol": protocol, "stickiness": told}


def kept(**rule: Any) -> Mapping[str, Any]:
    told = {"id": "a", "status": "Enabled", "filter": {"prefix": ""}, "expiration": {"days": 100}}
    return {"bucket": "b", "rules": [{**told, **rule}]}


def put(**changed: Any) -> Mapping[str, Any]:
    return {"bucket": "b", "key": "k", "content": "x", **changed}


def shared(principal: str) -> Mapping[str, Any]:
    balancer = (
        "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/n/0123456789abcdef"
    )
    return {
        "acceptanceRequired": False,
        "networkLoadBalancerArns": [balancer],
        "allowedPrincipals": [f"arn:aws:iam::111122223333:{principal}"],
    }


def item(length: int) -> Mapping[str, Any]:
    """Return an item whose names and keys take four bytes, and a text of this length."""
    told = {"pk": {"S": "k"}, "t": {"S": '"' * length}}
    return {"tableName": "t", "hashKey": "pk", "item": json.dumps(told)}


def written(kind: str, value: str) -> Mapping[str, Any]:
    return {**RECORDED, "ttl": 60, "type": kind, "records": [value]}


def pinged(kind: int) -> Mapping[str, Any]:
    return {**GROUP, "ipProtocol": "icmp", "fromPort": kind, "toPort": -1, "cidrIpv4": "10.0.0.0/8"}


def indexed(keys: int) -> Mapping[str, Any]:
    names = [f"k{number}" for number in range(keys)]
    index = {
        "name": "by-k",
        "projectionType": "ALL",
        "keySchemas": [{"attributeName": name, "keyType": "HASH"} for name in names],
    }
    attributes = [{"name": name, "type": "S"} for name in ("pk", *names)]
    return {**TABLE, "attributes": attributes, "globalSecondaryIndexes": [index]}


def hooked(*names: str) -> Mapping[str, Any]:
    launch = "autoscaling:EC2_INSTANCE_LAUNCHING"
    hooks = [{"name": name, "lifecycleTransition": launch} for name in names]
    return {**LAUNCHING, "initialLifecycleHooks": hooks}


def queue(statements: int) -> Mapping[str, Any]:
    said = [{**STATEMENT, "Sid": f"S{number}"} for number in range(statements)]
    return {"name": "q", "policy": policy(said)}


# What is refused with its code, and the nearest that is taken (None: tested elsewhere).
Edge = tuple[str, Mapping[str, Any], str, Mapping[str, Any] | None]
EDGES: Mapping[str, Edge] = {
    **{
        f"a function of {runtime}": (LAMBDA, function(runtime=runtime), VALUE, None)
        for runtime in ("go1.x", "java8", "nodejs14.x", "provided", "python3.7", "ruby2.7")
    },
    # The quotes within a text are a byte each, however the JSON around it writes them.
    "an item of 400 KB": (ITEM, item(409_597), VALIDATION, item(409_596)),
    "a layer in two versions": (
        LAMBDA,
        function(layers=[f"{LAYER}:1", f"{LAYER}:2"]),
        VALUE,
        function(layers=[f"{LAYER}:1", f"{LAYER}2:1"]),
    ),
    "a mapping of a queue that has a failure's destination": (
        MAPPING,
        mapped(destinationConfig={"onFailure": {"destinationArn": QUEUE}}),
        VALUE,
        None,
    ),
    "21 statements of a queue's own policy": (
        QUEUES,
        queue(21),
        "InvalidAttributeValue",
        queue(20),
    ),
    "a database's description of 2,049 characters": (
        DATABASE,
        database(description="x" * 2049),
        VALIDATION,
        database(description="Zürich's bill" + "x" * 2000),
    ),
    "a database's place of 1,025 characters": (
        DATABASE,
        database(locationUri="s3://" + "b" * 1020),
        VALIDATION,
        database(locationUri="s3://" + "b" * 1019),
    ),
    "a permission of a database": (
        DATABASE,
        database(createTableDefaultPermissions=[{"permissions": ["READ"]}]),
        VALIDATION,
        database(createTableDefaultPermissions=[{"permissions": ["ALL"]}]),
    ),
    "a schedule that sends to no queue": (
        SCHEDULE,
        calling("sqs:sendMessage", MessageBody="x"),
        VALIDATION,
        calling("sqs:sendMessage", MessageBody="x", QueueUrl="https://q"),
    ),
    "a schedule that stops no instance": (
        SCHEDULE,
        calling("ec2:stopInstances"),
        VALIDATION,
        calling("ec2:stopInstances", InstanceIds=["i-0123456789abcdef0"]),
    ),
    "a schedule's parameter there is not": (
        SCHEDULE,
        calling("sqs:sendMessage", MessageBody="x", QueueUrl="https://q", Bodies=1),
        VALIDATION,
        None,
    ),
    "a check that wants 500 of an application": (
        TARGETS,
        checked("HTTP", "200-500"),
        ERROR,
        checked("HTTP", "200-499"),
    ),
    "a check that wants 600": (TARGETS, checked("TCP", "600"), ERROR, checked("TCP", "200-599")),
    "an application's balancer in one subnet": (
        BALANCERS,
        {"name": "a", "loadBalancerType": "application", "subnets": ["subnet-1"]},
        ERROR,
        {**BALANCED, "subnets": ["subnet-1"]},
    ),
    "a type of ICMP": (INGRESS, pinged(256), "InvalidParameterValue", pinged(255)),
    **{
        f"a record's {kind} {beyond}": (
            RECORD,
            written(kind, beyond),
            "InvalidChangeBatch",
            written(kind, within),
        )
        for kind, beyond, within in (
            ("MX", "65536 mail.example.com", "65535 mail.example.com"),
            ("CAA", '256 issue "ca.example"', '255 issue "ca.example"'),
            ("SRV", "1 1 65536 h.example.com", "1 1 65535 h.example.com"),
        )
    },
    "a filter that joins one part": (
        LIFECYCLE,
        kept(filter={"and": {"prefix": "a"}}),
        XML,
        kept(filter={"and": {"prefix": "a", "tags": {"a": "b"}}}),
    ),
    "a filter of sizes from large to small": (
        LIFECYCLE,
        kept(filter={"and": {"objectSizeGreaterThan": 100, "objectSizeLessThan": 50}}),
        "InvalidRequest",
        kept(filter={"and": {"objectSizeGreaterThan": 50, "objectSizeLessThan": 100}}),
    ),
    "two rules of encryption": (
        ENCRYPTION,
        {
            "bucket": "b",
            "rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}] * 2,
        },
        XML,
        None,
    ),
    "an index of five hash keys": (TABLES, indexed(5), VALIDATION, indexed(4)),
    "a table twice in a region": (
        TABLES,
        {**TABLE, "replicas": [{"regionName": "eu-west-1"}, {"regionName": "eu-west-1"}]},
        VALIDATION,
        None,
    ),
}
REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    name: (token, beyond, code) for name, (token, beyond, code, _) in EDGES.items()
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    f"not quite {name}": (token, within)
    for name, (token, _, _, within) in EDGES.items()
    if within is not None
}
