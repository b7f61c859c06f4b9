"""Says what each call needs: IAM's actions, the ARN of what each is about, and its own keys.

One entry per operation that a role of ours makes, by botocore's names. A call without one is
refused by the guard and named in the twin's log: nobody may do here what nobody looked up.
Source: AWS service authorization reference, "Actions, resources, and condition keys" per service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

KINDS = {
    "ami": "image",
    "cr": "capacity-reservation",
    "eni": "network-interface",
    "fleet": "fleet",
    "i": "instance",
    "lt": "launch-template",
    "sg": "security-group",
    "snap": "snapshot",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
}
# What belongs to no account in its ARN.
WITHOUT_ACCOUNT = {"image", "snapshot"}
# Parameter -> what it names, for calls that act on what is there.
ON_EXISTING: Mapping[str, Sequence[str]] = {
    "AssignPrivateIpAddresses": ["NetworkInterfaceId"],
    "AttachVolume": ["InstanceId", "VolumeId"],
    "DeleteLaunchTemplate": ["LaunchTemplateId"],
    "DeleteNetworkInterface": ["NetworkInterfaceId"],
    "DeleteSnapshot": ["SnapshotId"],
    "DeleteVolume": ["VolumeId"],
    "DetachVolume": ["InstanceId", "VolumeId"],
    "ModifyVolume": ["VolumeId"],
    "TerminateInstances": ["InstanceIds"],
    "UnassignPrivateIpAddresses": ["NetworkInterfaceId"],
}
# What a call makes, and the parameters that name what it makes it from.
MAKING: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "CreateFleet": (["fleet"], []),
    "CreateLaunchTemplate": (["launch-template"], []),
    "CreateNetworkInterface": (["network-interface"], ["SubnetId", "Groups"]),
    "CreateReplaceRootVolumeTask": (
        ["replace-root-volume-task", "volume"],
        ["InstanceId", "ImageId"],
    ),
    "CreateSnapshot": (["snapshot"], ["VolumeId"]),
    "CreateVolume": (["volume"], ["SnapshotId"]),
    "RunInstances": (
        ["instance", "network-interface", "volume"],
        ["ImageId", "SubnetId", "SecurityGroupIds"],
    ),
}


def _ec2_needs(call: Call, facts: AccountFacts) -> Iterator[Need]:
    """Return what a call of EC2 _ec2_needs."""
    operation, given = call.operation, call.parameters
    action = f"ec2:{operation}"
    if operation.startswith("Describe") or operation == "GetInstanceTypesFromInstanceRequirements":
        yield Need(action=action)
    elif operation in ON_EXISTING:
        for id_ in _ids(given, ON_EXISTING[operation]):
            yield _on(action, id_, call, facts)
    elif operation in MAKING:
        yield from _making(action, call, facts)
    elif operation in ("CreateTags", "DeleteTags"):
        tags = {tag["Key"]: tag.get("Value", "") for tag in given.get("Tags", [])}
        for id_ in given["Resources"]:
            yield _on(action, id_, call, facts, request_tag_keys(tags))
    else:
        raise UnmappedCall(f"ec2:{operation}")


def _making(action: str, call: Call, facts: AccountFacts) -> Iterator[Need]:
    made, sources = MAKING[call.operation]
    tags = {
        each["ResourceType"]: {tag["Key"]: tag.get("Value", "") for tag in each.get("Tags", [])}
        for each in call.parameters.get("TagSpecifications", [])
    }
    for kind in made:
        yield Need(
            action=action,
            resource=_resource(call.region, kind, "*"),
            keys=request_tag_keys(tags.get(kind, {})),
        )
    for id_ in _ids(call.parameters, sources):
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
    kind = KINDS.get(id_.partition("-")[0])
    if kind is None:
        raise UnmappedCall(f"{action} on {id_}")
    resource = _resource(call.region, kind, id_)
    tags = facts.tags(call.region, resource)
    keys = {**resource_tag_keys(tags), **resource_tag_keys(tags, "ec2"), **(more or {})}
    return Need(action=action, resource=resource, keys=keys)


def _resource(region: str, kind: str, id_: str) -> str:
    if kind in WITHOUT_ACCOUNT:
        return arn("ec2", region, f"{kind}/{id_}", account="")
    return arn("ec2", region, f"{kind}/{id_}")


# Operations that look and take no resource.
READS_ALL: Mapping[str, re.Pattern[str]] = {
    "autoscaling": re.compile(r"Describe\w+"),
    "cloudwatch": re.compile(r"GetMetricData|ListMetrics"),
    "elbv2": re.compile(r"Describe\w+"),
    "iam": re.compile(r"ListInstanceProfiles"),
    "pricing": re.compile(r"GetProducts"),
    "sts": re.compile(r"GetCallerIdentity"),
}
# IAM's prefix where it is not botocore's name.
PREFIXES = {"elbv2": "elasticloadbalancing"}
ON_A_GROUP = {
    "CompleteLifecycleAction",
    "RecordLifecycleActionHeartbeat",
    "SetDesiredCapacity",
    "SetInstanceProtection",
    "TerminateInstanceInAutoScalingGroup",
    "UpdateAutoScalingGroup",
}
ON_A_TARGET_GROUP = {"DeregisterTargets", "RegisterTargets"}
OF_A_QUEUE = {
    "ChangeMessageVisibility",
    "DeleteMessage",
    "GetQueueAttributes",
    "GetQueueUrl",
    "ReceiveMessage",
    "SendMessage",
}
OF_AN_OBJECT = {
    "AbortMultipartUpload": "AbortMultipartUpload",
    "CompleteMultipartUpload": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "DeleteObject": "DeleteObject",
    "GetObject": "GetObject",
    "HeadObject": "GetObject",
    "PutObject": "PutObject",
    "UploadPart": "PutObject",
}
OF_A_BUCKET = {
    "GetBucketLocation": "GetBucketLocation",
    "HeadBucket": "ListBucket",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
}
OF_A_TABLE = {"DeleteItem", "DescribeTable", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"}

# What is named by parameters alone, as in {name}.
NAMED = {
    "eks:DescribeCluster": "cluster/{name}",
    "eks:DescribeNodegroup": "nodegroup/{clusterName}/{nodegroupName}/*",
    "iam:GetInstanceProfile": "instance-profile/{InstanceProfileName}",
    "logs:CreateLogStream": "log-group:{logGroupName}:log-stream:{logStreamName}",
    "logs:PutLogEvents": "log-group:{logGroupName}:log-stream:{logStreamName}",
}
WITHOUT_REGION = {"iam"}


def needs(call: Call, facts: AccountFacts) -> list[Need]:
    """Return what a call needs; raises UnmappedCall where nothing here says it."""
    reads = READS_ALL.get(call.service)
    if reads is not None and reads.fullmatch(call.operation):
        return [Need(action=f"{PREFIXES.get(call.service, call.service)}:{call.operation}")]
    action = f"{call.service}:{call.operation}"
    if action in NAMED:
        region = "" if call.service in WITHOUT_REGION else call.region
        resource = arn(call.service, region, NAMED[action].format_map(call.parameters))
        return [Need(action=action, resource=resource)]
    service = SERVICES.get(call.service)
    found = list(service(call, facts)) if service is not None else []
    if not found:
        raise UnmappedCall(action)
    return found


def _autoscaling(call: Call, facts: AccountFacts) -> Iterator[Need]:
    if call.operation in ON_A_GROUP:
        given = call.parameters
        name = given.get("AutoScalingGroupName") or facts.group_of(
            call.region, given.get("InstanceId", "")
        )
        resource = facts.group_arn(call.region, name)
        keys = resource_tag_keys(facts.tags(call.region, resource))
        yield Need(action=f"autoscaling:{call.operation}", resource=resource, keys=keys)


def _balancers(call: Call, facts: AccountFacts) -> Iterator[Need]:
    if call.operation in ON_A_TARGET_GROUP:
        resource = call.parameters["TargetGroupArn"]
        keys = resource_tag_keys(facts.tags(call.region, resource))
        yield Need(action=f"elasticloadbalancing:{call.operation}", resource=resource, keys=keys)


def _queues(call: Call, facts: AccountFacts) -> Iterator[Need]:  # noqa: ARG001
    # A batch needs what its single call needs.
    action = call.operation.removesuffix("Batch")
    if action in OF_A_QUEUE:
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
    if call.operation not in OF_A_TABLE:
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
    if operation in OF_AN_OBJECT:
        yield Need(action=f"s3:{OF_AN_OBJECT[operation]}", resource=f"{bucket}/{given['Key']}")
    elif operation in OF_A_BUCKET:
        asked = {
            f"s3:{key}": (str(given[name]),)
            for key, name in {"prefix": "Prefix", "delimiter": "Delimiter"}.items()
            if given.get(name)
        }
        yield Need(action=f"s3:{OF_A_BUCKET[operation]}", resource=bucket, keys=asked)
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
