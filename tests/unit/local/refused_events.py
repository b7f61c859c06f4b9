"""Functions, rules, schedules, alarms, dashboards: what is refused beyond their models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    FORWARD,
    MAPPING,
    RULE_TARGET,
    SCHEDULE,
    SCHEDULED,
    TARGETED,
    WATCHING,
    without,
)
from tests.unit.local.refused_watching import BODY, PATTERN, rule
from tests.unit.local.seeded_inputs import (
    ALARM,
    FUNCTION,
    LAMBDA,
)
from tests.unit.local.test_refused_parts import (
    ALARM_TYPE,
    DASHBOARD,
    METRIC,
    QUEUE,
    ROLE_ARN,
    RULE_TYPE,
)

VALIDATION, PARAMETER = "ValidationException", "InvalidParameterValueException"
ERROR, EKS = "ValidationError", "InvalidParameterException"
APPLICATION_BALANCER = FORWARD.replace("targetgroup", "loadbalancer/app")
SDK = "arn:aws:scheduler:::aws-sdk"
REACHED = {"vpcId": "vpc-0123456789abcdef0", "vpcEndpointType": "Interface"}
PARTS = "InvalidConfigurationRequest"


def fed(**changed: Any) -> Mapping[str, Any]:
    return {"eventSourceArn": QUEUE, "functionName": "f", **changed}


def filtered(*patterns: str) -> Mapping[str, Any]:
    return fed(filterCriteria={"filters": [{"pattern": each} for each in patterns]})


def calling(action: str, given: str = "{}") -> Mapping[str, Any]:
    return {
        **SCHEDULED,
        "target": {"arn": f"{SDK}:{action}", "roleArn": ROLE_ARN, "input": given},
    }


def computed(expression: str, stat: str = "Sum") -> Mapping[str, Any]:
    metric = {"id": "m1", "metric": {**METRIC, "stat": stat}, "returnData": False}
    returned = {"id": "e1", "expression": expression, "returnData": True}
    return {**ALARM, "metricQueries": [metric, returned]}


def shown(**times: str) -> Mapping[str, Any]:
    return {"dashboardName": "d", "dashboardBody": json.dumps({"widgets": [], **times})}


def templated(template: str, **paths: str) -> Mapping[str, Any]:
    return {**TARGETED, "inputTransformer": {"inputPaths": paths, "inputTemplate": template}}


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a runtime of long ago": (LAMBDA, {**FUNCTION, "runtime": "python2.7"}, PARAMETER),
    "a level of plain logs": (
        LAMBDA,
        {**FUNCTION, "loggingConfig": {"logFormat": "Text", "applicationLogLevel": "INFO"}},
        PARAMETER,
    ),
    "dead letters to a function": (
        LAMBDA,
        {
            **FUNCTION,
            "deadLetterConfig": {"targetArn": "arn:aws:lambda:us-east-1:123456789012:function:x"},
        },
        PARAMETER,
    ),
    "a function without a handler": (LAMBDA, without(FUNCTION, "handler"), PARAMETER),
    "a position in a queue": (MAPPING, fed(startingPosition="LATEST"), PARAMETER),
    "retries of a queue": (MAPPING, fed(maximumRetryAttempts=3), PARAMETER),
    "a stream from nowhere": (
        MAPPING,
        fed(eventSourceArn="arn:aws:kinesis:us-east-1:123456789012:stream/s"),
        PARAMETER,
    ),
    "a comparison with nothing": (RULE_TYPE, rule({"numeric": [">"]}), PATTERN),
    "a range upside down": (RULE_TYPE, rule({"numeric": [">", 5, "<", 1]}), PATTERN),
    "an address without its bits": (RULE_TYPE, rule({"cidr": "10.0.0.0"}), PATTERN),
    "anything but nothing": (RULE_TYPE, rule({"anything-but": []}), PATTERN),
    "a FIFO queue without a group": (
        RULE_TARGET,
        {**TARGETED, "arn": f"{QUEUE}.fifo"},
        VALIDATION,
    ),
    "a placeholder without its path": (RULE_TARGET, templated('"<b>"', a="$.detail"), VALIDATION),
    "a path of no JSON": (RULE_TARGET, templated('"<a>"', a="detail"), VALIDATION),
    "a schedule's window when it is off": (
        SCHEDULE,
        {**SCHEDULED, "flexibleTimeWindow": {"mode": "OFF", "maximumWindowInMinutes": 60}},
        VALIDATION,
    ),
    "a schedule that only reads": (SCHEDULE, calling("emrserverless:getJobRun"), VALIDATION),
    "a schedule of no service": (SCHEDULE, calling("emrless:startJobRun"), VALIDATION),
    "a schedule of no action": (SCHEDULE, calling("sqs:sendMessages"), VALIDATION),
    "a schedule's input that is no JSON": (
        SCHEDULE,
        calling("emrserverless:startJobRun", "{"),
        VALIDATION,
    ),
    "a schedule that ends before it begins": (
        SCHEDULE,
        {**SCHEDULED, "startDate": "2027-01-02T00:00:00Z", "endDate": "2027-01-01T00:00:00Z"},
        VALIDATION,
    ),
    "an alarm on p101": (
        ALARM_TYPE,
        {
            **ALARM,
            "metricQueries": [
                {"id": "m", "metric": {**METRIC, "stat": "p101"}, "returnData": True}
            ],
        },
        ERROR,
    ),
    "an alarm on Avg": (ALARM_TYPE, computed("m1 * 2", "Avg"), ERROR),
    "an expression of nothing": (ALARM_TYPE, computed("m1 + nothere"), ERROR),
    "a dashboard's period": (DASHBOARD, shown(periodOverride="always"), BODY),
    "a dashboard from three hours": (DASHBOARD, shown(start="3 hours"), BODY),
    "a dashboard with an end alone": (DASHBOARD, shown(end="2026-01-01T00:00:00Z"), BODY),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a function: levels of JSON": (
        LAMBDA,
        {**FUNCTION, "loggingConfig": {"logFormat": "JSON", "applicationLogLevel": "INFO"}},
    ),
    "a mapping: five filters": (
        MAPPING,
        filtered(*['{"body": {"a": [{"exists": true}]}}'] * 5),
    ),
    "a rule: a range": (RULE_TYPE, rule({"numeric": [">", 0, "<=", 5]}, {"cidr": "10.0.0.0/24"})),
    "a target: a FIFO queue's group": (
        RULE_TARGET,
        {**TARGETED, "arn": f"{QUEUE}.fifo", "sqsTarget": {"messageGroupId": "g"}},
    ),
    "a target: a rule's own name": (
        RULE_TARGET,
        templated('{"r": "<aws.events.rule-arn>", "a": <a>}', a="$.detail"),
    ),
    "a schedule: a job": (
        SCHEDULE,
        calling(
            "emrserverless:startJobRun",
            json.dumps({"ApplicationId": "a", "ExecutionRoleArn": ROLE_ARN}),
        ),
    ),
    "a schedule: text for a queue": (
        SCHEDULE,
        {**SCHEDULED, "target": {"arn": QUEUE, "roleArn": ROLE_ARN, "input": "hello"}},
    ),
    "an alarm: two metrics in one expression": (
        ALARM_TYPE,
        computed('IF(FILL(m1, 0) > 5 AND m1 < 9, SUM(METRICS("m")), 0)', "p99.9"),
    ),
    "an alarm: of one series": (ALARM_TYPE, WATCHING),
    "a dashboard: of a week": (DASHBOARD, shown(start="-P7D", periodOverride="inherit")),
    "a dashboard: of a day long ago": (
        DASHBOARD,
        shown(start="2026-01-01T00:00:00.000Z", end="2026-01-02T00:00:00.000Z"),
    ),
}
