"""Checks what a statement of a bucket's policy may do, on what, and under which conditions."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from local.iam.conditions import like
from local.refusals.policies import is_condition
from local.refusals.principals import actions

# IAM user guide, "AWS global condition context keys"; each may end in a key of a tag.
_GLOBAL_KEYS = frozenset(
    {
        *("aws:assumedroot", "aws:calledvia", "aws:calledviafirst", "aws:calledvialast"),
        *("aws:chatbotsourcearn", "aws:currenttime", "aws:ec2instancesourceprivateipv4"),
        *("aws:ec2instancesourcevpc", "aws:epochtime", "aws:federatedprovider"),
        *("aws:multifactorauthage", "aws:multifactorauthpresent"),
        *("aws:principalaccount", "aws:principalarn", "aws:principalisawsservice"),
        *("aws:principalorgid", "aws:principalorgpaths", "aws:principalservicename"),
        *("aws:principalservicenameslist", "aws:principaltag", "aws:principaltype"),
        *("aws:referer", "aws:requestedregion", "aws:requesttag", "aws:resourceaccount"),
        *("aws:resourceorgid", "aws:resourceorgpaths", "aws:resourcetag", "aws:securetransport"),
        *("aws:sourceaccount", "aws:sourcearn", "aws:sourceidentity", "aws:sourceip"),
        *("aws:sourceorgid", "aws:sourceorgpaths", "aws:sourcevpc", "aws:sourcevpcarn"),
        *("aws:sourcevpce", "aws:tagkeys", "aws:tokenissuetime", "aws:useragent", "aws:userid"),
        *("aws:username", "aws:viaawsservice", "aws:vpceaccount", "aws:vpceorgid"),
        *("aws:vpceorgpaths", "aws:vpcsourceip"),
    }
)
# Service authorization reference, "Condition keys for Amazon S3", in lower case.
_S3_KEYS = frozenset(
    {
        *("accessgrantsinstancearn", "accessgrantscope", "accesspointnetworkorigin"),
        *("accesspointtag", "authtype", "buckettag", "dataaccesspointaccount"),
        *("dataaccesspointarn", "delimiter", "destinationregion", "existingjoboperation"),
        *("existingjobpriority", "existingobjecttag", "if-match", "if-none-match"),
        *("inventoryaccessibleoptionalfields", "isreplicationpauserequest"),
        *("jobsuspendedcause", "locationconstraint", "max-keys", "object-lock-legal-hold"),
        *("object-lock-mode", "object-lock-remaining-retention-days"),
        *("object-lock-retain-until-date", "objectcreationoperation", "prefix"),
        *("requestjoboperation", "requestjobpriority", "requestobjecttag"),
        *("requestobjecttagkeys", "resourceaccount", "signatureage", "signatureversion"),
        *("tlsversion", "versionid", "x-amz-acl", "x-amz-bucket-namespace"),
        *("x-amz-content-sha256", "x-amz-copy-source", "x-amz-grant-full-control"),
        *("x-amz-grant-read", "x-amz-grant-read-acp", "x-amz-grant-write"),
        *("x-amz-grant-write-acp", "x-amz-metadata-directive", "x-amz-object-ownership"),
        *("x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id"),
        *("x-amz-server-side-encryption-customer-algorithm", "x-amz-storage-class"),
        "x-amz-website-redirect-location",
    }
)
# Keys that only listings have, and the listings.
_OF_LISTINGS = frozenset({"s3:delimiter", "s3:max-keys", "s3:prefix"})
_LISTINGS = ("listbucket", "listbucketmultipartuploads", "listbucketversions")
_NOT_APPLIED = "Conditions do not apply to combination of actions and resources in statement"


@functools.cache
def _kinds() -> Mapping[str, frozenset[str]]:
    return actions("s3")


def strange_action(actions: Sequence[str]) -> str:
    """Return what is wrong with a statement's actions where S3 has no such one, or nothing.

    One with wildcards must match an action that there is.
    """
    for action in actions:
        if action.startswith("s3:") and _kinds() and not _kinds_of(action):
            return "Policy has invalid action"
    return ""


def _kinds_of(action: str) -> list[frozenset[str]]:
    """Return the kinds of resource of each action that one with wildcards matches."""
    return [kinds for name, kinds in _kinds().items() if _matches(action, name)]


def _matches(action: str, name: str) -> bool:
    return like(action.rpartition(":")[2], name)


def wrong(statement: Mapping[str, Any], actions: Sequence[str], resources: Sequence[str]) -> str:
    """Return what S3 refuses of a statement whose parts are in order, or nothing."""
    return _of_conditions(statement, actions) or _of_scope(actions, resources)


def _of_conditions(statement: Mapping[str, Any], actions: Sequence[str]) -> str:
    conditions = statement.get("Condition") or {}
    for operator, keys in conditions.items() if isinstance(conditions, dict) else ():
        if not is_condition(operator) or not isinstance(keys, dict):
            return "Policy has an invalid condition"
        for key in keys:
            lowered = str(key).lower().partition("/")[0]
            vendor, _, name = lowered.partition(":")
            if vendor == "aws" and lowered not in _GLOBAL_KEYS:
                return "Policy has an invalid condition key"
            if vendor == "s3" and name not in _S3_KEYS:
                return "Policy has an invalid condition key"
            if lowered in _OF_LISTINGS and actions and not any(map(_may_list, actions)):
                return _NOT_APPLIED
    return ""


def _may_list(action: str) -> bool:
    return any(_matches(action, each) for each in _LISTINGS)


def _of_scope(actions: Sequence[str], resources: Sequence[str]) -> str:
    """Say where an action, or all that it matches, is about none of a statement's resources."""
    buckets = any("/" not in each for each in resources)
    objects = any("/" in each or each.endswith("*") for each in resources)
    for action in actions:
        matched = _kinds_of(action) if action.startswith("s3:") else []
        kinds = frozenset().union(*matched)
        if matched and not (("bucket" in kinds and buckets) or ("object" in kinds and objects)):
            return "Action does not apply to any resource(s) in statement"
    return ""
