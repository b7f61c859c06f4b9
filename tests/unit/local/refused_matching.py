"""What is matched and computed: events, filters, templates and alarms' expressions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import RULE_TARGET, SUBSCRIBED, SUBSCRIPTION, TARGETED, TOPIC_ARN
from tests.unit.local.seeded_inputs import ALARM
from tests.unit.local.test_refused_parts import (
    ALARM_TYPE,
    METRIC,
    QUEUE,
    ROLE_ARN,
    RULE_TYPE,
    SERIES,
)

PATTERN, ERROR, PARAMETER = "InvalidEventPatternException", "ValidationError", "InvalidParameter"
_IN_ONE_REGION = "us-east-1:123456789012"

# Ways of matching that event-ruler turns down, and their nearest neighbours.
WRONG_LEAVES: tuple[Any, ...] = (
    *({"numeric": each} for each in ([], [5], 5, [">", "5"], [">", 5, "<"], [">", True])),
    *({"numeric": each} for each in (["!=", 5], ["=", 1e10], [">", 5, ">", 6])),
    *({"numeric": each} for each in (["=", 1, "<", 5], [">", 5, "<", 3], ["<", 5, ">", 3])),
    *({"cidr": each} for each in ("10.0.0/24", "10.0.0.0/33", "10.0.0.0", 5, ["10.0.0.0/8"])),
    *({"anything-but": each} for each in ({}, [], None, [None], True, [["a"]], ["a", 1])),
    *({"anything-but": {match: 5}} for match in ("prefix", "wildcard", "equals-ignore-case")),
    *({"anything-but": {"prefix": each}} for each in ("", [], ["a", 1])),
    *({"anything-but": each} for each in ({"exists": True}, {"cidr": "10.0.0.0/8"})),
    *({"anything-but": each} for each in ({"numeric": ["=", 5]}, {"wildcard": "a**b"})),
    {"anything-but": {"prefix": "a", "suffix": "b"}},
    *({match: each} for match in ("prefix", "suffix") for each in (5, ["a"], {})),
    {"prefix": {"wildcard": "a"}},
    {"prefix": {"equals-ignore-case": 5}},
    {"suffix": {"prefix": "a"}},
    *({"exists": each} for each in ("true", 1, [True])),
    *({"equals-ignore-case": each} for each in (5, ["a"], {"prefix": "a"})),
    *({"wildcard": each} for each in (5, ["a*"], "a**", "a\\b", "a\\", {"prefix": "a"})),
    *({match: "a"} for match in ("regex", "contains", "between")),
    {"prefix": "a", "suffix": "b"},
)
RIGHT_LEAVES: tuple[Any, ...] = (
    *({"numeric": each} for each in ([">", 5], [">=", 0, "<", 5], ["=", 3.5], ["<", 5e9])),
    *({"cidr": each} for each in ("10.0.0.0/24", "2001:db8::/32")),
    *({"anything-but": each} for each in ("a", 5, ["a", "b"], [1, 2])),
    *(
        {"anything-but": {match: each}}
        for match in ("prefix", "suffix", "wildcard", "equals-ignore-case")
        for each in ("a", ["a", "b"])
    ),
    *({match: {"equals-ignore-case": "a"}} for match in ("prefix", "suffix")),
    *({"wildcard": each} for each in ("a*b", "a\\*b", "a\\\\b")),
    *({"exists": each} for each in (True, False)),
    *("a", "", 5, True, None),
)
# Expressions that CloudWatch cannot compute, or not for an alarm.
WRONG_MATH = (
    *("SEARCH('{AWS/EC2,InstanceId} x', 'Sum', 300)", "SUM(SEARCH('{AWS/EC2} x', 'Sum'))"),
    *("m1+(m2", "m1+m2)", "(m1", "[m1,m2", "AVG(m1", "SUM([m1,m2]", '"m1', "()"),
    *("m1 +", "* m1", "m1 m2", "m1 ++", "100 +", "m1 > > 2", "m1,m2", "m1 'x'", "SUM[m1]"),
    *("m1 % m2", "m1 = 1", "m1 & m2", "FOO(m1)", "sum(m1)"),
    *("IF(m1)", "IF(m1>", "FILL(m1)", "RATE()", "ABS(m1, m2)"),
    *("METRICS()", "[m1,m2]", "FILL(METRICS(),0)", "[m1,m2] / 2"),
    "e1 + 1",
)
RIGHT_MATH = (
    *("100*(m1/m2)", "-m1^2", "m1*1e-3", "(m1)", "m1 != m2", "m1>=m2 OR m1<=1"),
    *("IF(m1>10,m1,0)", "IF(m1,1)", "IF(m1>0 && m2 > 0 || m1 == 2, 1, 0)"),
    *("FILL(m1,0)", "FILL(m1,REPEAT)", "FILL(m1, LINEAR)", "RATE(m1)", "TIME_SERIES(5)"),
    *("SUM([m1,m2])", "SUM(METRICS())", 'AVG(METRICS("m"))', "MAX([m1,m2]) / 2"),
    *("PERIOD(m1)*m1", "METRIC_COUNT(METRICS())*m1", "ANOMALY_DETECTION_BAND(m1,2)"),
    *("FIRST(SORT([m1,m2],AVG,DESC,1))", "INSIGHT_RULE_METRIC('r','Sum')"),
)
WRONG_ACTIONS = (
    *("arn:aws:s3:::b", QUEUE, ROLE_ARN, "arn:aws:automate:us-east-1:ec2:explode"),
    *("arn:aws:sns:us-east-1:topic", f"arn:aws:dynamodb:{_IN_ONE_REGION}:table/t"),
    f"arn:aws:ssm:{_IN_ONE_REGION}:opsitem:9",
)
RIGHT_ACTIONS = (
    *(TOPIC_ARN, "arn:aws:automate:us-east-1:ec2:stop", "arn:aws:automate:us-east-1:ec2:recover"),
    *(f"arn:aws:lambda:{_IN_ONE_REGION}:function:f{tail}" for tail in ("", ":live", ":7")),
    f"arn:aws:ssm:{_IN_ONE_REGION}:opsitem:1#CATEGORY=Cost",
    "arn:aws:ssm-incidents::123456789012:response-plan/x",
    f"arn:aws:autoscaling:{_IN_ONE_REGION}:scalingPolicy:0e:autoScalingGroupName/g:policyName/p",
)


def rule(leaf: Any) -> Mapping[str, Any]:
    return {"name": "r", "eventPattern": json.dumps({"source": [leaf]})}


def computed(expression: str, **more: Any) -> Mapping[str, Any]:
    metrics = [{"id": name, "metric": METRIC} for name in ("m1", "m2")]
    returned = {"id": "e1", "expression": expression, "returnData": True}
    return {**ALARM, "metricQueries": [*metrics, returned, *more.pop("queries", ())], **more}


def acting(action: str) -> Mapping[str, Any]:
    return {**ALARM, **SERIES, "alarmActions": [action]}


def filtered(scope: str = "MessageBody", **pattern: Any) -> Mapping[str, Any]:
    return {**SUBSCRIBED, "filterPolicy": json.dumps(pattern), "filterPolicyScope": scope}


def sent(template: str) -> Mapping[str, Any]:
    told = {"inputPaths": {"a": "$.a"}, "inputTemplate": template}
    return {**TARGETED, "inputTransformer": told}


def subscribed(protocol: str, endpoint: str) -> Mapping[str, Any]:
    return {**SUBSCRIBED, "protocol": protocol, "endpoint": endpoint}


FUNCTION_ARN = f"arn:aws:lambda:{_IN_ONE_REGION}:function:f"
REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    **{f"an event: {json.dumps(e)}": (RULE_TYPE, rule(e), PATTERN) for e in WRONG_LEAVES},
    **{f"an alarm computes {e}": (ALARM_TYPE, computed(e), ERROR) for e in WRONG_MATH},
    **{f"an alarm calls {e}": (ALARM_TYPE, acting(e), ERROR) for e in WRONG_ACTIONS},
    "expressions in a circle": (
        ALARM_TYPE,
        computed("e2 + 1", queries=[{"id": "e2", "expression": "e1 + m1"}]),
        ERROR,
    ),
    "a threshold that is no band": (
        ALARM_TYPE,
        {
            **{key: value for key, value in ALARM.items() if key != "threshold"},
            "comparisonOperator": "GreaterThanUpperThreshold",
            "thresholdMetricId": "e1",
            "metricQueries": [
                {"id": "m1", "metric": METRIC, "returnData": True},
                {"id": "e1", "expression": "m1 + 1"},
            ],
        },
        ERROR,
    ),
    **{
        f"a subscription by {protocol} of {endpoint}": (
            SUBSCRIPTION,
            subscribed(protocol, endpoint),
            PARAMETER,
        )
        for protocol, endpoint in (
            *(("sms", "call me"), ("lambda", QUEUE), ("sqs", FUNCTION_ARN)),
            *(("https", "https://"), ("firehose", QUEUE), ("application", TOPIC_ARN)),
        )
    },
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{f"an event: {json.dumps(e)}": (RULE_TYPE, rule(e)) for e in RIGHT_LEAVES},
    **{f"an alarm computes {e}": (ALARM_TYPE, computed(e)) for e in RIGHT_MATH},
    **{f"an alarm calls {e}": (ALARM_TYPE, acting(e)) for e in RIGHT_ACTIONS},
    "expressions in a chain": (
        ALARM_TYPE,
        computed("e2 + 1", queries=[{"id": "e2", "expression": "m1 + 1"}]),
    ),
    "several series that another expression adds up": (
        ALARM_TYPE,
        computed("SUM(e2)", queries=[{"id": "e2", "expression": "METRICS()"}]),
    ),
    "an alarm on a query": (
        ALARM_TYPE,
        {
            **ALARM,
            "metricQueries": [
                {
                    "id": "q1",
                    "expression": 'SELECT AVG(CPUUtilization) FROM SCHEMA("AWS/EC2", InstanceId)',
                    "period": 60,
                    "returnData": True,
                }
            ],
        },
    ),
    "a filter of 150 values": (SUBSCRIPTION, filtered(a=["x"] * 150)),
    "a filter of 125 combinations": (
        SUBSCRIPTION,
        filtered(**{key: list("vwxyz") for key in "abc"}),
    ),
    "a filter below a body's key": (SUBSCRIPTION, filtered(a={"b": ["x"]})),
    "a subscription by telephone": (SUBSCRIPTION, subscribed("sms", "+14155552671")),
    "a subscription of a function": (SUBSCRIPTION, subscribed("lambda", FUNCTION_ARN)),
    **{
        f"a template {template}": (RULE_TARGET, sent(template))
        for template in (
            *('{"x": <a>, "y": "see <a>"}', '"instance <a> stopped"', "<a>"),
            '"instance <a>"\n"stopped"',
        )
    },
}
