"""Says what each call needs: IAM's actions, the ARN of what each is about, and its own keys.

What is a name is a row of resources.toml. A call without one is refused by the guard and named in
the twin's log: nobody may do here what nobody looked up.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from local.iam.accounts import AccountFacts
from local.iam.requests import (
    Call,
    Keys,
    Need,
    UnmappedCall,
    arn,
    request_tag_keys,
    resource_tag_keys,
)

TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("resources.toml").read_text())


def _ec2_needs(call: Call, facts: AccountFacts) -> Iterator[Need]:
    """Yield what a call of EC2 needs."""
    operation, given = call.operation, call.parameters
    action = f"ec2:{operation}"
    if operation.startswith("Describe") or operation == "GetInstanceTypesFromInstanceRequirements":
        yield Need(action=action)
    elif operation in TABLE["on_existing"]:
        for id_ in _ids(given, TABLE["on_existing"][operation]):
            yield _on(action, id_, call, facts)
    elif operation in TABLE["making"]:
        yield from _making(action, call, facts)
    elif operation in ("CreateTags", "DeleteTags"):
        tags = {tag["Key"]: tag.get("Value", "") for tag in given.get("Tags", [])}
        for id_ in given["Resources"]:
            yield _on(action, id_, call, facts, request_tag_keys(tags))
    else:
        raise UnmappedCall(f"ec2:{operation}")


def _making(action: str, call: Call, facts: AccountFacts) -> Iterator[Need]:
    making = TABLE["making"][call.operation]
    tags = {
        each["ResourceType"]: {tag["Key"]: tag.get("Value", "") for tag in each.get("Tags", [])}
        for each in call.parameters.get("TagSpecifications", [])
    }
    for kind in making["kinds"]:
        yield Need(
            action=action,
            resource=_resource(call.region, kind, "*"),
            keys=request_tag_keys(tags.get(kind, {})),
        )
    for id_ in _ids(call.parameters, making["sources"]):
        yield _on(action, id_, call, facts)
    for template in _templates(call.parameters):
        yield _on(action, template, call, facts)
    profile = call.parameters.get("IamInstanceProfile") or {}
    if profile:
        name = profile.get("Name") or str(profile["Arn"]).rpartition("/")[2]
        service = {"iam:PassedToService": ("ec2.amazonaws.com",)}
        yield Need(action="iam:PassRole", resource=facts.role_of_profile(name), keys=service)
    for kind, named in tags.items():
        keys = {**request_tag_keys(named), "ec2:CreateAction": (call.operation,)}
        yield Need(action="ec2:CreateTags", resource=_resource(call.region, kind, "*"), keys=keys)


def _templates(given: Mapping[str, Any]) -> Iterator[str]:
    alone = given.get("LaunchTemplate", {}).get("LaunchTemplateId")
    if alone:
        yield alone
    for each in given.get("LaunchTemplateConfigs", []):
        named = each.get("LaunchTemplateSpecification", {}).get("LaunchTemplateId")
        if named:
            yield named


def _ids(given: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        value = given.get(name) or []
        yield from [value] if isinstance(value, str) else value


def _on(action: str, id_: str, call: Call, facts: AccountFacts, more: Keys | None = None) -> Need:
    kind = TABLE["kinds"].get(id_.partition("-")[0])
    if kind is None:
        raise UnmappedCall(f"{action} on {id_}")
    resource = _resource(call.region, kind, id_)
    tags = facts.tags(call.region, resource)
    keys = {**resource_tag_keys(tags), **resource_tag_keys(tags, "ec2"), **(more or {})}
    return Need(action=action, resource=resource, keys=keys)


def _resource(region: str, kind: str, id_: str) -> str:
    if kind in TABLE["without_account"]:
        return arn("ec2", region, f"{kind}/{id_}", account="")
    return arn("ec2", region, f"{kind}/{id_}")


def needs(call: Call, facts: AccountFacts) -> list[Need]:
    """Return what a call needs; raises UnmappedCall where nothing here says it."""
    if re.fullmatch(TABLE["reads_all"].get(call.service, ""), call.operation):
        prefix = TABLE["prefixes"].get(call.service, call.service)
        return [Need(action=f"{prefix}:{call.operation}")]
    action = f"{call.service}:{call.operation}"
    if action in TABLE["named"]:
        region = "" if call.service == "iam" else call.region
        resource = arn(call.service, region, TABLE["named"][action].format_map(call.parameters))
        return [Need(action=action, resource=resource)]
    service = SERVICES.get(call.service)
    found = list(service(call, facts)) if service is not None else []
    if not found:
        raise UnmappedCall(action)
    return found


def _autoscaling(call: Call, facts: AccountFacts) -> Iterator[Need]:
    if call.operation in TABLE["on_a_group"]:
        given = call.parameters
        name = given.get("AutoScalingGroupName") or facts.group_of(
            call.region, given.get("InstanceId", "")
        )
        resource = facts.group_arn(call.region, name)
        keys = resource_tag_keys(facts.tags(call.region, resource))
        yield Need(action=f"autoscaling:{call.operation}", resource=resource, keys=keys)


def _balancers(call: Call, facts: AccountFacts) -> Iterator[Need]:
    if call.operation in TABLE["on_a_target_group"]:
        resource = call.parameters["TargetGroupArn"]
        keys = resource_tag_keys(facts.tags(call.region, resource))
        yield Need(action=f"elasticloadbalancing:{call.operation}", resource=resource, keys=keys)


def _queues(call: Call, facts: AccountFacts) -> Iterator[Need]:  # noqa: ARG001
    # A batch needs what its single call needs.
    action = call.operation.removesuffix("Batch")
    if action in TABLE["of_a_queue"]:
        given = call.parameters
        name = given.get("QueueName") or str(given["QueueUrl"]).rpartition("/")[2]
        yield Need(action=f"sqs:{action}", resource=arn("sqs", call.region, name))


def _topics(call: Call, facts: AccountFacts) -> Iterator[Need]:
    if call.operation != "Publish":
        return
    topic = call.parameters["TopicArn"]
    yield Need(action="sns:Publish", resource=topic)
    key = facts.key_of_topic(call.region, topic)
    # SNS encrypts in the publisher's name.
    through = {"kms:ViaService": (f"sns.{call.region}.amazonaws.com",)}
    for action in ("kms:GenerateDataKey", "kms:Decrypt") if key else ():
        yield Need(action=action, resource=key, keys=through)


def _tables(call: Call, facts: AccountFacts) -> Iterator[Need]:
    if call.operation not in TABLE["of_a_table"]:
        return
    given = call.parameters
    table, index = str(given["TableName"]).rpartition("/")[2], str(given.get("IndexName") or "")
    resource = f"table/{table}" + (f"/index/{index}" if index else "")
    key = facts.hash_key(call.region, table, index)
    leading = _leading_key(given, key)
    yield Need(
        action=f"dynamodb:{call.operation}",
        resource=arn("dynamodb", call.region, resource),
        keys={"dynamodb:LeadingKeys": (leading,)} if leading is not None else {},
    )


def _leading_key(given: Mapping[str, Any], key: str) -> str | None:
    """Return the value of the partition key a call names, or None."""
    item = given.get("Key") or given.get("Item") or {}
    if key in item:
        return str(next(iter(item[key].values())))
    names = given.get("ExpressionAttributeNames") or {}
    for name, value in re.findall(r"(#?\w+)\s*=\s*(:\w+)", given.get("KeyConditionExpression", "")):
        if names.get(name, name) == key:
            return str(next(iter(given["ExpressionAttributeValues"][value].values())))
    return None


def _secrets(call: Call, facts: AccountFacts) -> Iterator[Need]:
    if call.operation in ("DescribeSecret", "GetSecretValue"):
        resource = facts.secret_arn(call.region, call.parameters["SecretId"])
        keys = resource_tag_keys(facts.tags(call.region, resource))
        yield Need(action=f"secretsmanager:{call.operation}", resource=resource, keys=keys)


def _objects(call: Call, facts: AccountFacts) -> Iterator[Need]:  # noqa: ARG001
    given, operation = call.parameters, call.operation
    bucket = f"arn:aws:s3:::{given.get('Bucket', '')}"
    if operation in TABLE["of_an_object"]:
        yield Need(
            action=f"s3:{TABLE['of_an_object'][operation]}", resource=f"{bucket}/{given['Key']}"
        )
    elif operation in TABLE["of_a_bucket"]:
        asked = {
            f"s3:{key}": (str(given[name]),)
            for key, name in {"prefix": "Prefix", "delimiter": "Delimiter"}.items()
            if given.get(name)
        }
        yield Need(action=f"s3:{TABLE['of_a_bucket'][operation]}", resource=bucket, keys=asked)
    elif operation == "DeleteObjects":
        for each in given["Delete"]["Objects"]:
            yield Need(action="s3:DeleteObject", resource=f"{bucket}/{each['Key']}")


def _catalogue(call: Call, facts: AccountFacts) -> Iterator[Need]:  # noqa: ARG001
    """Glue asks for the catalog, the database and the table of every call about a table."""
    given = call.parameters
    database = given.get("DatabaseName") or given.get("Name", "")
    kinds = ["catalog", f"database/{database}"]
    if call.operation == "GetTables":
        kinds.append(f"table/{database}/*")
    elif call.operation in ("CreateTable", "GetTable", "UpdateTable"):
        kinds.append(f"table/{database}/{given.get('Name') or given['TableInput']['Name']}")
    elif call.operation != "GetDatabase":
        return
    for kind in kinds:
        yield Need(action=f"glue:{call.operation}", resource=arn("glue", call.region, kind))


def _jobs(call: Call, facts: AccountFacts) -> Iterator[Need]:  # noqa: ARG001
    if call.operation == "StartJobRun":
        given = call.parameters
        application = arn("emr-serverless", call.region, f"/applications/{given['applicationId']}")
        yield Need(action="emr-serverless:StartJobRun", resource=application)
        if given.get("tags"):
            runs = f"{application}/jobruns/*"
            yield Need(action="emr-serverless:TagResource", resource=runs)
        yield Need(
            action="iam:PassRole",
            resource=given["executionRoleArn"],
            keys={"iam:PassedToService": ("emr-serverless.amazonaws.com",)},
        )


SERVICES: Mapping[str, Callable[[Call, AccountFacts], Iterator[Need]]] = {
    "autoscaling": _autoscaling,
    "dynamodb": _tables,
    "ec2": _ec2_needs,
    "elbv2": _balancers,
    "emr-serverless": _jobs,
    "glue": _catalogue,
    "s3": _objects,
    "secretsmanager": _secrets,
    "sns": _topics,
    "sqs": _queues,
}
