"""Tables, buckets, snapshots and the export of the bill."""

from __future__ import annotations

from typing import Any

from local.refusals.calls import Parameters, call, enter
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


def _table(inputs: Inputs) -> Parameters:
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


def _item(inputs: Inputs) -> Parameters:
    item = parse(inputs["item"]) or {}
    return {"Item": {key: value for key, value in item.items() if isinstance(value, dict)}}


def _export(inputs: Inputs) -> Parameters:
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


def _dlm(inputs: Inputs) -> Parameters:
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


def _lifecycle(inputs: Inputs) -> Parameters:
    shape = input_shape("s3", "PutBucketLifecycleConfiguration").members["LifecycleConfiguration"]
    rules = [{**rule, "filter": _filter(rule.get("filter") or {})} for rule in inputs["rules"]]
    return {"LifecycleConfiguration": coerce(shape, {"rules": rules})}


def _filter(chosen: Inputs) -> Inputs:
    joined = chosen.get("and")
    return {**chosen, "and": {**joined, "tags": _pairs(joined.get("tags"))}} if joined else chosen


def _encryption(inputs: Inputs) -> Parameters:
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


def _database(inputs: Inputs) -> Parameters:
    shape = input_shape("glue", "CreateDatabase").members["DatabaseInput"]
    given = {key: inputs[key] for key in _DATABASE if inputs.get(key) not in (None, "")}
    permissions = given.pop("createTableDefaultPermissions", ())
    renamed = [{**each, "principal": each.get("principal") or {}} for each in permissions]
    return {"DatabaseInput": coerce(shape, {**given, "createTableDefaultPermissions": renamed})}


enter("bcmdata/export:Export", call("bcm-data-exports", "CreateExport", "export", build=_export))
enter(
    "dlm/lifecyclePolicy:LifecyclePolicy",
    call("dlm", "CreateLifecyclePolicy", "policyDetails", build=_dlm),
)
enter(
    "dynamodb/table:Table",
    call(
        "dynamodb",
        "CreateTable",
        "attributes",
        "globalSecondaryIndexes",
        "hashKey",
        "localSecondaryIndexes",
        "rangeKey",
        names={"name": "TableName"},
        build=_table,
    ),
    pointInTimeRecovery="a call of its own with two values, both ours",
    ttl="a call of its own; the attribute's name has no limit of its own",
)
enter(
    "dynamodb/tableItem:TableItem",
    call("dynamodb", "PutItem", "item", build=_item),
    hashKey="names the key of the item for the provider",
    rangeKey="as hashKey",
)
enter(
    "glue/catalogDatabase:CatalogDatabase",
    call("glue", "CreateDatabase", *_DATABASE, build=_database),
)
enter(
    "s3/bucket:Bucket",
    call("s3", "CreateBucket"),
    forceDestroy="the provider's own: whether it empties the bucket",
)
enter(
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    call("s3", "PutBucketLifecycleConfiguration", "rules", build=_lifecycle),
)
enter(
    "s3/bucketObjectv2:BucketObjectv2",
    call("s3", "PutObject", names={}),
    content="the body",
    source="the body's file",
    overrideProvider="the provider's own: which default tags it lays on",
)
enter(
    "s3/bucketPolicy:BucketPolicy",
    call("s3", "PutBucketPolicy", "policy", build=lambda i: {"Policy": text(i["policy"])}),
)
enter(
    "s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    call(
        "s3",
        "PutPublicAccessBlock",
        *_BLOCKED,
        build=lambda i: {"PublicAccessBlockConfiguration": pick(i, _BLOCKED)},
    ),
)
enter(
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    call("s3", "PutBucketEncryption", "rules", build=_encryption),
)
enter(
    "s3/bucketVersioning:BucketVersioning",
    call(
        "s3",
        "PutBucketVersioning",
        "versioningConfiguration",
        build=lambda i: {
            "VersioningConfiguration": coerce(_VERSIONING, i["versioningConfiguration"])
        },
    ),
)
