"""Tables, exports, endpoints, balancers, clusters: what is refused beyond their models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    ADDED,
    ADDON,
    EXPORTS,
    FORWARD,
    ITEM,
    LISTENING,
    OF_NODES,
    QUEUES,
    ROUTE,
    SECURITY_GROUP,
    TABLES,
    TARGETS,
)
from tests.unit.local.refused_watching import PODS
from tests.unit.local.refused_words import OFFERED, SERVICE
from tests.unit.local.seeded_inputs import (
    EXPORT,
    HOOK,
    INGRESS,
    RULE,
    TABLE,
    TARGET_GROUP,
)
from tests.unit.local.test_refused_parts import (
    CLUSTER,
    ENDPOINT,
    KUBERNETES,
    LIFECYCLE,
    LISTENER,
    NODE_GROUP,
    QUEUE,
    ROLE_ARN,
    TERMINATING,
    expiring,
)

VALIDATION, PARAMETER = "ValidationException", "InvalidParameterValueException"
ERROR, EKS = "ValidationError", "InvalidParameterException"
APPLICATION_BALANCER = FORWARD.replace("targetgroup", "loadbalancer/app")
SDK = "arn:aws:scheduler:::aws-sdk"
REACHED = {"vpcId": "vpc-0123456789abcdef0", "vpcEndpointType": "Interface"}
PARTS = "InvalidConfigurationRequest"


def exported(query: str, **told: str) -> Mapping[str, Any]:
    changed = json.loads(json.dumps(EXPORT))
    view = {"BILLING_VIEW_ARN": "arn:aws:billing::123456789012:billingview/primary"}
    asked = changed["export"]["dataQueries"][0]
    asked["queryStatement"] = query
    asked["tableConfigurations"] = {"COST_AND_USAGE_REPORT": {**view, **told}}
    return dict(changed)


def region(name: str) -> Mapping[str, Any]:
    written = json.dumps(exported("SELECT line_item_usage_type FROM COST_AND_USAGE_REPORT"))
    return dict(json.loads(written.replace('"us-east-1"', f'"{name}"')))


def item(**values: Any) -> Mapping[str, Any]:
    return {"tableName": "ttt", "hashKey": "pk", "item": json.dumps({"pk": {"S": "x"}, **values})}


def indexed(**index: Any) -> Mapping[str, Any]:
    whole = {"name": "idx", "hashKey": "pk", "projectionType": "ALL", **index}
    return {**TABLE, "globalSecondaryIndexes": [whole]}


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "capacity of a table paid per request": (
        TABLES,
        {**TABLE, "readCapacity": 5, "writeCapacity": 5},
        VALIDATION,
    ),
    "an index that includes nothing": (TABLES, indexed(projectionType="INCLUDE"), VALIDATION),
    "an index of all and more": (TABLES, indexed(nonKeyAttributes=["a"]), VALIDATION),
    "a local index without a range": (
        TABLES,
        {
            **TABLE,
            "localSecondaryIndexes": [{"name": "l", "rangeKey": "pk", "projectionType": "ALL"}],
        },
        VALIDATION,
    ),
    "a number in letters": (ITEM, item(n={"N": "abc"}), VALIDATION),
    "a number of 39 digits": (ITEM, item(n={"N": "1" * 39}), VALIDATION),
    "an empty set": (ITEM, item(n={"SS": []}), VALIDATION),
    "a set with one value twice": (ITEM, item(n={"SS": ["a", "a"]}), VALIDATION),
    "an empty set in a map": (ITEM, item(n={"M": {"a": {"NS": []}}}), VALIDATION),
    "a group of a VPC's own name": (
        SECURITY_GROUP,
        {"name": "default", "description": "d"},
        "InvalidGroup.Reserved",
    ),
    "every protocol on one port": (
        INGRESS,
        {**RULE, "ipProtocol": "-1"},
        "InvalidParameterValue",
    ),
    "a route to a host in a network": (
        ROUTE,
        {"routeTableId": "rtb-1", "destinationCidrBlock": "10.0.0.1/8", "gatewayId": "igw-1"},
        "Invalid Attribute Value",
    ),
    "an endpoint of no service": (
        ENDPOINT,
        {**REACHED, "serviceName": "com.amazonaws.us-east-1.autoscale"},
        "InvalidServiceName",
    ),
    "a gateway to a service that has none": (
        ENDPOINT,
        {"vpcId": "vpc-1", "serviceName": "com.amazonaws.us-east-1.sqs"},
        "InvalidParameter",
    ),
    "an interface with route tables": (
        ENDPOINT,
        {**REACHED, "serviceName": "com.amazonaws.us-east-1.sqs", "routeTableIds": ["rtb-1"]},
        "InvalidParameter",
    ),
    "a service on an application balancer": (
        SERVICE,
        {
            **OFFERED,
            "networkLoadBalancerArns": [APPLICATION_BALANCER],
        },
        "InvalidParameter",
    ),
    "a service on nothing": (
        SERVICE,
        {"acceptanceRequired": False, "networkLoadBalancerArns": []},
        "InvalidParameter",
    ),
    "a cluster of 1.99": (CLUSTER, {**KUBERNETES, "version": "1.99"}, EKS),
    "a cluster of 1.20": (CLUSTER, {**KUBERNETES, "version": "1.20"}, EKS),
    "an add-on that there is not": (ADDON, {**ADDED, "addonName": "ebs-csi"}, EKS),
    "a release of one's own image": (
        NODE_GROUP,
        {**OF_NODES, "amiType": "CUSTOM", "releaseVersion": "1.35.0-20260101"},
        EKS,
    ),
    "two places to forward to": (
        LISTENER,
        {**LISTENING, "defaultActions": LISTENING["defaultActions"] * 2},  # type: ignore[operator]
        ERROR,
    ),
    "a TLS policy over TCP": (
        LISTENER,
        {**LISTENING, "sslPolicy": "ELBSecurityPolicy-TLS13-1-2-2021-06"},
        ERROR,
    ),
    "forwarded nowhere": (LISTENER, {**LISTENING, "defaultActions": [{"type": "forward"}]}, ERROR),
    "a page without its slash": (
        TARGETS,
        {**TARGET_GROUP, "healthCheck": {"protocol": "HTTP", "path": "health"}},
        ERROR,
    ),
    "a queue's own dead letters": (
        QUEUES,
        {
            "name": "q",
            "redrivePolicy": json.dumps({"deadLetterTargetArn": QUEUE, "maxReceiveCount": 3}),
        },
        "InvalidParameterValue",
    ),
    "an export of another region": (EXPORTS, region("us-east-9"), VALIDATION),
    "an export of a column": (
        EXPORTS,
        exported("SELECT foo FROM COST_AND_USAGE_REPORT"),
        VALIDATION,
    ),
    "an export of a table": (EXPORTS, exported("SELECT line_item_usage_type FROM CUR"), VALIDATION),
    "an export by the minute": (
        EXPORTS,
        exported(
            "SELECT line_item_usage_type FROM COST_AND_USAGE_REPORT", TIME_GRANULARITY="MINUTELY"
        ),
        VALIDATION,
    ),
    "an export with a setting": (
        EXPORTS,
        exported("SELECT line_item_usage_type FROM COST_AND_USAGE_REPORT", INCLUDE_X="TRUE"),
        VALIDATION,
    ),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a table: an index of some": (
        TABLES,
        indexed(projectionType="INCLUDE", nonKeyAttributes=["a"]),
    ),
    "an item: numbers as they are written": (
        ITEM,
        item(a={"N": "-1.5e10"}, b={"NS": ["1", "2"]}, c={"L": [{"N": ".5"}]}),
    ),
    "a hook: a note of 1,024 characters": (
        # 1,023 were the most once.
        HOOK,
        {**TERMINATING, "notificationMetadata": "x" * 1024},
    ),
    "a hook: to a queue": (
        HOOK,
        {**TERMINATING, "roleArn": ROLE_ARN, "notificationTargetArn": QUEUE},
    ),
    "an endpoint: to sessions": (
        ENDPOINT,
        {**REACHED, "serviceName": "com.amazonaws.us-east-1.ssmmessages"},
    ),
    "an endpoint: to somebody's service": (
        ENDPOINT,
        {**REACHED, "serviceName": "com.amazonaws.vpce.us-east-1.vpce-svc-0123456789abcdef0"},
    ),
    "a cluster: the oldest that is supported": (CLUSTER, {**KUBERNETES, "version": "1.31"}),
    "a rule: every port of every protocol": (
        INGRESS,
        {**RULE, "ipProtocol": "-1", "fromPort": -1, "toPort": -1},
    ),
    "a listener: two groups of one action": (
        LISTENER,
        {
            **LISTENING,
            "defaultActions": [
                {
                    "type": "forward",
                    "forward": {"targetGroups": [{"arn": FORWARD}, {"arn": f"{FORWARD}2"}]},
                }
            ],
        },
    ),
    "a record: of another zone's name": (
        # The provider puts the zone's name behind it.
        "route53/record:Record",
        {
            "zoneId": "Z0123456789ABCDEFGHIJ",
            "name": "kafka.example.com",
            "type": "A",
            "ttl": 60,
            "records": ["10.0.0.1"],
        },
    ),
    "a secret: six letters behind a hyphen": (
        # Secrets Manager only advises against it.
        "secretsmanager/secret:Secret",
        {"name": "abc-AbCdEf"},
    ),
    "a lifecycle: a tag and a size": (
        LIFECYCLE,
        expiring(
            filter={"and": {"prefix": "x", "tags": {"a": "b"}}},
            expiration={"days": 3},
        ),
    ),
    "an export: of every kind of column": (
        EXPORTS,
        exported(
            "SELECT line_item_usage_type, resource_tags['user_team'] AS team, product, "
            "CONCAT(bill_payer_account_id, 'x') FROM COST_AND_USAGE_REPORT "
            "WHERE line_item_usage_amount > 0",
            TIME_GRANULARITY="HOURLY",
        ),
    ),
    "a pod's identity": (
        PODS,
        {"clusterName": "c", "namespace": "n", "serviceAccount": "s", "roleArn": ROLE_ARN},
    ),
}
