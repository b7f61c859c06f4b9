"""Judges a resource by CloudFormation's schema of its type, which cfn-lint keeps and adds to.

Only cfn-lint's data is read. A schema's properties bear the names of the API's members; what it
requires is left to the API's own model, as inputs of other names are not matched.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.calls import TYPES
from local.refusals.documents import cfn_lint_data
from local.refusals.json_schema import Schema, referred, wrongs
from local.refusals.model import CODES
from local.refusals.refusal import Refusal, Wanted

# Where CloudFormation's name is not the provider's.
_NAMES: Mapping[str, str] = {
    "autoscaling/group:Group": "autoscaling::autoscalinggroup",
    "bcmdata/export:Export": "bcmdataexports::export",
    "cloudwatch/eventRule:EventRule": "events::rule",
    "cloudwatch/logGroup:LogGroup": "logs::loggroup",
    "cloudwatch/metricAlarm:MetricAlarm": "cloudwatch::alarm",
    "ec2/routeTableAssociation:RouteTableAssociation": "ec2::subnetroutetableassociation",
    "glue/catalogDatabase:CatalogDatabase": "glue::database",
    "iam/policy:Policy": "iam::managedpolicy",
    "lambda/functionUrl:FunctionUrl": "lambda::url",
    "lb/listener:Listener": "elasticloadbalancingv2::listener",
    "lb/loadBalancer:LoadBalancer": "elasticloadbalancingv2::loadbalancer",
    "lb/targetGroup:TargetGroup": "elasticloadbalancingv2::targetgroup",
    "route53/record:Record": "route53::recordset",
    "route53/zone:Zone": "route53::hostedzone",
    "sns/topicSubscription:TopicSubscription": "sns::subscription",
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule": "ec2::securitygroupegress",
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule": "ec2::securitygroupingress",
}
# Where the schema differs from the API: a taken example of the table says of each what is right.
_TAGS = frozenset({"Tags", "TagSpecifications"})
DIFFERENT: Mapping[str, frozenset[str]] = {
    "aws:autoscaling/group:Group": frozenset({"LaunchTemplate", "MixedInstancesPolicy"}),
    "aws:autoscaling/lifecycleHook:LifecycleHook": frozenset({"NotificationMetadata"}),
    "aws:ec2/vpcEndpoint:VpcEndpoint": frozenset({"DnsOptions"}),
    "aws:eks/cluster:Cluster": frozenset({"Logging"}),
    "aws:lambda/eventSourceMapping:EventSourceMapping": frozenset({"FilterCriteria"}),
}
# What must be given the API's own model says; inside a choice it tells the forms apart.
_GIVEN = frozenset({"required", "requiredOr", "requiredXor"})
_CHOICES = frozenset({"anyOf", "if", "not", "oneOf"})


@functools.cache
def _schema_files() -> Mapping[str, str]:
    folder = cfn_lint_data()
    known = (folder / "schemas/providers/us-east-1.json").read_text() if folder else "{}"
    return {name.lower(): file for name, file in json.loads(known).items()}


@functools.cache
def schemas(token: str) -> tuple[Schema, ...]:
    """Return CloudFormation's schema of a type, then cfn-lint's own; nothing: it has none."""
    module, _, name = token.removeprefix("aws:").partition("/")
    plain = f"{module}::{name.partition(':')[0]}".lower()
    wanted = f"aws::{_NAMES.get(token.removeprefix('aws:'), plain)}"
    file, folder = _schema_files().get(wanted), cfn_lint_data()
    if file is None or folder is None:
        return ()
    own = (folder / "schemas/extensions" / wanted.replace("::", "_")).glob("*.json")
    files = [folder / f"schemas/resources/{file}.json", *sorted(own)]
    judged, *added = (_without_required(json.loads(each.read_text())) for each in files)
    # Of the whole, an "anyOf" asks what must be given.
    whole = {key: each for key, each in judged.items() if key not in _CHOICES}
    return whole, *added


def refusals(wanted: Wanted) -> Iterator[Refusal]:
    """Yield what the schema of a resource's type rules out of it."""
    found = schemas(wanted.type)
    if not found:
        return
    first, judged = TYPES[wanted.type].calls[0], found[0]
    given = {first.names.get(key, key): value for key, value in wanted.inputs.items()}
    for call in TYPES[wanted.type].calls:
        if call.takes(wanted.inputs):
            parameters = call.parameters(wanted)
            attributes = parameters.get("Attributes")
            given |= parameters | (attributes if isinstance(attributes, dict) else {})
    value = _renamed(judged, given, judged)
    code = CODES.get(first.service, "ValidationException")
    for schema in found:
        defined = {
            "definitions": {**judged.get("definitions", {}), **schema.get("definitions", {})}
        }
        for at, said in wrongs({**schema, **defined}, value):
            top = at.partition(".")[0]
            if top not in _TAGS | DIFFERENT.get(wanted.type, frozenset()):
                message = f"1 validation error detected: Value at '{at}' failed to satisfy "
                message += f"constraint: {said}"
                yield Refusal(first.operation, code, message, top[:1].lower() + top[1:])


def _without_required(schema: Any) -> Any:
    """Return a schema that asks for nothing, as what is named otherwise here is not matched."""
    if isinstance(schema, list):
        return [_without_required(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: each if key in _CHOICES else _without_required(each)
        for key, each in schema.items()
        if key not in _GIVEN or isinstance(each, dict)
    }


def _renamed(schema: Any, value: Any, root: Schema) -> Any:
    """Return a value with its keys as the schema spells them, without those it does not know."""
    if isinstance(schema, dict) and "$ref" in schema:
        schema = referred(schema["$ref"], root)
    if not isinstance(schema, dict):
        return value
    if isinstance(value, Mapping) and "properties" in schema:
        names = {name.lower(): name for name in schema["properties"]}
        return {
            names[key.lower()]: _renamed(schema["properties"][names[key.lower()]], each, root)
            for key, each in value.items()
            if key.lower() in names and each is not None
        }
    if isinstance(value, list | tuple):
        return [_renamed(schema.get("items"), each, root) for each in value]
    if schema.get("type") == "array":
        return [_renamed(schema.get("items"), value, root)]
    return _of_the_kind(str(schema.get("type")), value)


def _of_the_kind(kind: str, value: Any) -> Any:
    """Return a plain value as a schema's kind has it: the API takes numbers and truths as text."""
    if kind in {"integer", "number"} and isinstance(value, str):
        return float(value) if value.replace(".", "", 1).lstrip("-").isdecimal() else value
    if kind == "boolean" and str(value).lower() in {"true", "false"}:
        return str(value).lower() == "true"
    if kind == "string" and isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else f"{value:g}"
    return value
