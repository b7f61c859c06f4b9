"""Tables, buckets, snapshots and the export of the bill."""

from __future__ import annotations

from typing import Any

from local.refusals.calls import Parameters, reads
from local.refusals.catalogue.parameters import Inputs, pick
from local.refusals.documents import as_list, parse, text
from local.refusals.model import input_shape
from local.shapes import coerce


def _key_schema(inputs: Inputs) -> list[Parameters]:
    if inputs.get("keySchemas"):
        return [
            {"AttributeName": key["attributeName"], "KeyType": key["keyType"]}
            for key in inputs["keySchemas"]
        ]
    keys = (("hashKey", "HASH"), ("rangeKey", "RANGE"))
    return [{"AttributeName": inputs[k], "KeyType": kind} for k, kind in keys if inputs.get(k)]


def index(wanted: Inputs) -> Parameters:
    """Return an index of a table as CreateTable takes it."""
    projection = {"ProjectionType": wanted.get("projectionType", "ALL")}
    if wanted.get("nonKeyAttributes"):
        projection["NonKeyAttributes"] = wanted["nonKeyAttributes"]
    return {
        "IndexName": wanted["name"],
        "KeySchema": _key_schema(wanted),
        "Projection": projection,
    }


@reads("attributes", "globalSecondaryIndexes", "hashKey", "localSecondaryIndexes", "rangeKey")
def table(inputs: Inputs) -> Parameters:
    indexes = [index(each) for each in inputs.get("globalSecondaryIndexes") or ()]
    own = {"hashKey": inputs.get("hashKey")}
    local = [index({**own, **each}) for each in inputs.get("localSecondaryIndexes") or ()]
    return {
        "KeySchema": _key_schema(inputs),
        "AttributeDefinitions": [
            {"AttributeName": each["name"], "AttributeType": each["type"]}
            for each in inputs.get("attributes") or ()
        ],
        "GlobalSecondaryIndexes": indexes or None,
        "LocalSecondaryIndexes": local or None,
    }


@reads("item")
def item(inputs: Inputs) -> Parameters:
    item = parse(inputs["item"]) or {}
    return {"Item": {key: value for key, value in item.items() if isinstance(value, dict)}}


@reads("export")
def export(inputs: Inputs) -> Parameters:
    export = inputs["export"]
    query = export["dataQueries"][0]
    destination = export["destinationConfigurations"][0]["s3Destinations"][0]
    output = destination["s3OutputConfigurations"][0]
    return {
        "Export": {
            "Name": export["name"],
            "DataQuery": {
                "QueryStatement": query["queryStatement"],
                "TableConfigurations": query.get("tableConfigurations") or {},
            },
            "DestinationConfigurations": {
                "S3Destination": {
                    "S3Bucket": destination["s3Bucket"],
                    "S3Prefix": destination["s3Prefix"],
                    "S3Region": destination["s3Region"],
                    "S3OutputConfigurations": {
                        "OutputType": output["outputType"],
                        "Format": output["format"],
                        "Compression": output["compression"],
                        "Overwrite": output["overwrite"],
                    },
                }
            },
            "RefreshCadence": {"Frequency": export["refreshCadences"][0]["frequency"]},
        }
    }


def _pairs(tags: Any) -> list[Parameters]:
    return [{"Key": key, "Value": value} for key, value in (tags or {}).items()]


@reads("policyDetails")
def snapshots(inputs: Inputs) -> Parameters:
    details = dict(inputs["policyDetails"])
    targets = _pairs(details.pop("targetTags", None))
    schedules = [
        {
            **schedule,
            "tagsToAdd": _pairs(schedule.get("tagsToAdd")),
            "shareRules": as_list(schedule.get("shareRule") or []),
            "variableTags": _pairs(schedule.get("variableTags")),
            "createRule": {
                **(schedule.get("createRule") or {}),
                "times": as_list((schedule.get("createRule") or {}).get("times") or []),
            },
        }
        for schedule in details.pop("schedules", ())
    ]
    shape = input_shape("dlm", "CreateLifecyclePolicy").members["PolicyDetails"]
    given = coerce(shape, {**details, "schedules": schedules})
    return {"PolicyDetails": {**given, "TargetTags": targets}}


@reads("rules")
def lifecycle(inputs: Inputs) -> Parameters:
    shape = input_shape("s3", "PutBucketLifecycleConfiguration").members["LifecycleConfiguration"]
    rules = [{**rule, "filter": _filter(rule.get("filter") or {})} for rule in inputs["rules"]]
    return {"LifecycleConfiguration": coerce(shape, {"rules": rules})}


def _filter(chosen: Inputs) -> Inputs:
    joined = chosen.get("and")
    return {**chosen, "and": {**joined, "tags": _pairs(joined.get("tags"))}} if joined else chosen


@reads("rules")
def encryption(inputs: Inputs) -> Parameters:
    rules = []
    for rule in inputs["rules"]:
        default = rule.get("applyServerSideEncryptionByDefault") or {}
        chosen = {"SSEAlgorithm": default.get("sseAlgorithm", "AES256")}
        if default.get("kmsMasterKeyId"):
            chosen["KMSMasterKeyID"] = default["kmsMasterKeyId"]
        kept = bool(rule.get("bucketKeyEnabled"))
        rules.append({"ApplyServerSideEncryptionByDefault": chosen, "BucketKeyEnabled": kept})
    return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


_VERSIONING = input_shape("s3", "PutBucketVersioning").members["VersioningConfiguration"]
_BLOCKED = {
    "blockPublicAcls": "BlockPublicAcls",
    "blockPublicPolicy": "BlockPublicPolicy",
    "ignorePublicAcls": "IgnorePublicAcls",
    "restrictPublicBuckets": "RestrictPublicBuckets",
}
_DATABASE = (
    *("createTableDefaultPermissions", "description", "federatedDatabase", "locationUri"),
    *("name", "parameters", "targetDatabase"),
)


@reads(*_DATABASE)
def database(inputs: Inputs) -> Parameters:
    shape = input_shape("glue", "CreateDatabase").members["DatabaseInput"]
    given = {key: inputs[key] for key in _DATABASE if inputs.get(key) not in (None, "")}
    permissions = given.pop("createTableDefaultPermissions", ())
    renamed = [{**each, "principal": each.get("principal") or {}} for each in permissions]
    return {"DatabaseInput": coerce(shape, {**given, "createTableDefaultPermissions": renamed})}


@reads("policy")
def bucket_policy(inputs: Inputs) -> Parameters:
    """Return a bucket's policy as text."""
    return {"Policy": text(inputs["policy"])}


@reads(*_BLOCKED)
def public_access_block(inputs: Inputs) -> Parameters:
    """Return what of the public a bucket keeps out."""
    return {"PublicAccessBlockConfiguration": pick(inputs, _BLOCKED)}


@reads("versioningConfiguration")
def versioning(inputs: Inputs) -> Parameters:
    """Return whether a bucket keeps versions."""
    return {"VersioningConfiguration": coerce(_VERSIONING, inputs["versioningConfiguration"])}
