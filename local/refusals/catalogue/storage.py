"""Tables, buckets, snapshots and the export of the bill."""

from __future__ import annotations

from typing import Any

from local.refusals.calls import Parameters, reads
from local.refusals.catalogue.parameters import Inputs, pick
from local.refusals.documents import as_list, parse
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
    """Return a table's keys, attributes and indexes."""
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
    """Return an item; what is no value of DynamoDB's is refused elsewhere."""
    item = parse(inputs["item"]) or {}
    return {"Item": {key: value for key, value in item.items() if isinstance(value, dict)}}


# An export's blocks, of which the provider takes a list of one -> the member that each is.
_SINGLE = {
    "dataQueries": "dataQuery",
    "destinationConfigurations": "destinationConfigurations",
    "refreshCadences": "refreshCadence",
    "s3Destinations": "s3Destination",
    "s3OutputConfigurations": "s3OutputConfigurations",
}


def _singled(told: Inputs) -> Inputs:
    return {
        _SINGLE.get(key, key): _singled(value[0]) if key in _SINGLE else value
        for key, value in told.items()
    }


@reads("export")
def export(inputs: Inputs) -> Parameters:
    """Return what is exported, and where to."""
    shape = input_shape("bcm-data-exports", "CreateExport").members["Export"]
    return {"Export": coerce(shape, _singled(inputs["export"]))}


def _pairs(tags: Any) -> list[Parameters]:
    return [{"Key": key, "Value": value} for key, value in (tags or {}).items()]


@reads("policyDetails")
def snapshots(inputs: Inputs) -> Parameters:
    """Return what is snapshotted, when, and for how long."""
    details = dict(inputs["policyDetails"])
    targets = _pairs(details.pop("targetTags", None))
    schedules = [
        {
            **schedule,
            "tagsToAdd": _pairs(schedule.get("tagsToAdd")),
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
    """Return a bucket's rules."""
    shape = input_shape("s3", "PutBucketLifecycleConfiguration").members["LifecycleConfiguration"]
    rules = [{**rule, "filter": _filter(rule.get("filter") or {})} for rule in inputs["rules"]]
    return {"LifecycleConfiguration": coerce(shape, {"rules": rules})}


def _filter(chosen: Inputs) -> Inputs:
    joined = chosen.get("and")
    return {**chosen, "and": {**joined, "tags": _pairs(joined.get("tags"))}} if joined else chosen


@reads("rules")
def encryption(inputs: Inputs) -> Parameters:
    """Return how a bucket encrypts what nobody has encrypted."""
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
_DATABASE = ("description", "locationUri", "name", "parameters")


@reads(*_DATABASE)
def database(inputs: Inputs) -> Parameters:
    """Return a database of the catalogue."""
    shape = input_shape("glue", "CreateDatabase").members["DatabaseInput"]
    return {"DatabaseInput": coerce(shape, {k: inputs[k] for k in _DATABASE if inputs.get(k)})}


@reads(*_BLOCKED)
def public_access_block(inputs: Inputs) -> Parameters:
    """Return what of the public a bucket keeps out."""
    return {"PublicAccessBlockConfiguration": pick(inputs, _BLOCKED)}


@reads("versioningConfiguration")
def versioning(inputs: Inputs) -> Parameters:
    """Return whether a bucket keeps versions."""
    return {"VersioningConfiguration": coerce(_VERSIONING, inputs["versioningConfiguration"])}
