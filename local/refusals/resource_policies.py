"""Checks what a policy on a queue, a topic, a bucket or a key must say to be stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.refusals.documents import listed, parsed
from local.refusals.limits import limit
from local.refusals.policies import TOP, VERSIONS, is_condition, is_principal, of_parts
from local.refusals.refusal import Refusal, Wanted

_IAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/"


@dataclass(frozen=True, slots=True)
class Policed:
    """Whose policy it is, how the service refuses it, and which actions it may name."""

    service: str
    operation: str
    code: str
    message: str
    # None: any of the service's own, also all of them at once.
    actions: frozenset[str] | None = None


# SNS user guide, "Access policy": the actions of one topic.
_OF_A_TOPIC = frozenset(
    {
        *("addpermission", "deletetopic", "getdataprotectionpolicy", "gettopicattributes"),
        *("listsubscriptionsbytopic", "listtagsforresource", "publish", "putdataprotectionpolicy"),
        *("receive", "removepermission", "settopicattributes", "subscribe"),
    }
)
# SQS developer guide, "Amazon SQS API permissions": the actions of one queue.
_OF_A_QUEUE = frozenset(
    {
        *("addpermission", "changemessagevisibility", "changemessagevisibilitybatch"),
        *("createqueue", "deletemessage", "deletemessagebatch", "deletequeue"),
        *("getqueueattributes", "getqueueurl", "listdeadlettersourcequeues", "listqueuetags"),
        *("purgequeue", "receivemessage", "removepermission", "sendmessage", "sendmessagebatch"),
        *("setqueueattributes", "tagqueue", "untagqueue", "cancelmessagemovetask"),
        *("listmessagemovetasks", "startmessagemovetask"),
    }
)
_POLICIES: Mapping[str, Policed] = {
    "aws:sqs/queuePolicy:QueuePolicy": Policed(
        "sqs",
        "SetQueueAttributes",
        "InvalidAttributeValue",
        "Invalid value for the parameter Policy.",
        _OF_A_QUEUE,
    ),
    "aws:sns/topicPolicy:TopicPolicy": Policed(
        "sns",
        "SetTopicAttributes",
        "InvalidParameter",
        "Invalid parameter: Policy statement action out of service scope!",
        _OF_A_TOPIC,
    ),
    "aws:s3/bucketPolicy:BucketPolicy": Policed(
        "s3",
        "PutBucketPolicy",
        "MalformedPolicy",
        "Policies must be valid JSON and the first byte must be '{'",
    ),
}


# A queue and a topic may bring their policy themselves.
_BRINGING = {
    "aws:sns/topic:Topic": "aws:sns/topicPolicy:TopicPolicy",
    "aws:sqs/queue:Queue": "aws:sqs/queuePolicy:QueuePolicy",
}


@limit(
    "s3/bucketPolicy:BucketPolicy",
    "sns/topic:Topic",
    "sns/topicPolicy:TopicPolicy",
    "sqs/queue:Queue",
    "sqs/queuePolicy:QueuePolicy",
    source=f"{_IAM}access_policies_identity-vs-resource.html",
)
def policy_of_a_resource(wanted: Wanted) -> Iterator[Refusal]:
    """JSON whose statements name a principal, the service's own actions, and this resource."""
    policed = _POLICIES[_BRINGING.get(wanted.type, wanted.type)]
    if wanted.type in _BRINGING and not wanted.inputs.get("policy"):
        return
    document = parsed(wanted.inputs["policy"])
    statements = listed((document or {}).get("Statement"))
    wrong = policed.message if document is None or not statements else ""
    if set(document or {}) - TOP or (document or {}).get("Version", "2008-10-17") not in VERSIONS:
        wrong = policed.message
    named = _named(wanted)
    for statement in statements:
        if not isinstance(statement, dict):
            statement = {}  # noqa: PLW2901  # refused as one that says nothing
        wrong = wrong or _of_a_statement(statement, policed, named)
    sids = [e["Sid"] for e in statements if isinstance(e, dict) and e.get("Sid")]
    # Of S3 nobody has been told that a Sid must be there once.
    if policed.service != "s3" and len(set(sids)) < len(sids):
        wrong = wrong or f"{policed.message} Every policy statement must have a unique ID"
    if wrong:
        yield Refusal(policed.operation, policed.code, wrong, "policy")


def _named(wanted: Wanted) -> str:
    """Return the name of what the policy is on; empty where it is not known."""
    inputs = wanted.inputs
    if wanted.type.endswith(":BucketPolicy"):
        return str(inputs.get("bucket") or "")
    found = str(inputs.get("arn") or inputs.get("queueUrl") or "")
    return re.split("[:/]", found)[-1]


def _of_a_statement(statement: Any, policed: Policed, named: str) -> str:
    s3 = policed.service == "s3"
    unsaid = statement.get("Effect") not in {"Allow", "Deny"}
    if unsaid or of_parts(statement) or ("Action" in statement) == ("NotAction" in statement):
        return policed.message
    principal = statement.get("Principal", statement.get("NotPrincipal"))
    if principal is None:
        return "Missing required field Principal" if s3 else policed.message
    if not is_principal(principal):
        return "Invalid principal in policy" if s3 else f"{policed.message} PrincipalNotFound"
    actions = [str(each).lower() for each in listed(statement.get("Action"))]
    if not all(_is_action(each, policed) for each in actions):
        return "Policy has invalid action" if s3 else policed.message
    resources = [str(e) for e in listed(statement.get("Resource", statement.get("NotResource")))]
    wrong = _of_resources(resources, policed, named)
    if s3:
        wrong = wrong or _of_conditions(statement) or _of_scope(actions, resources)
    return wrong


def _is_action(action: str, policed: Policed) -> bool:
    service, _, name = action.partition(":")
    if action == "*":
        return policed.service != "sns"
    if service != policed.service:
        return False
    if policed.actions is None:
        return bool(re.fullmatch(r"[a-z0-9*?]+", name))
    if policed.service == "sns":
        # SNS takes no wildcard over all of its actions.
        return name in policed.actions
    pattern = re.escape(name).replace(r"\*", ".*").replace(r"\?", ".")
    return any(re.fullmatch(pattern, each) for each in policed.actions)


def _of_resources(resources: list[str], policed: Policed, named: str) -> str:
    if policed.service == "s3":
        other = any(_of_another_bucket(each, named) for each in resources)
        return "Policy has invalid resource" if other or not resources else ""
    # A queue's policy may say "*", a topic's as well; an ARN must be of the queue or topic itself.
    other = any(each != "*" and not _is_of(each, policed.service, named) for each in resources)
    if not other:
        return ""
    sns = policed.service == "sns"
    return "Invalid parameter: Policy Error: null" if sns else policed.message


def _is_of(resource: str, service: str, named: str) -> bool:
    parts = resource.split(":")
    if len(parts) != 6 or parts[2] != service:
        return False
    pattern = re.escape(parts[5]).replace(r"\*", ".*").replace(r"\?", ".")
    return not named or re.fullmatch(pattern, named) is not None


def _of_another_bucket(resource: str, bucket: str) -> bool:
    named = re.fullmatch(r"arn:aws[a-z-]*:s3:::([^/*?]+)(/.*)?", resource)
    if named is not None:
        return bool(bucket) and named[1] != bucket
    return re.fullmatch(r"arn:aws[a-z-]*:s3:::.+|\*", resource) is None


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


def _of_conditions(statement: Mapping[str, Any]) -> str:
    conditions = statement.get("Condition") or {}
    for operator, keys in conditions.items() if isinstance(conditions, dict) else ():
        if not is_condition(operator) or not isinstance(keys, dict):
            return "Policy has an invalid condition"
        for key in keys:
            lowered = str(key).lower().partition("/")[0]
            if lowered.startswith("aws:") and lowered not in _GLOBAL_KEYS:
                return "Policy has an invalid condition key"
    return ""


def _of_scope(actions: list[str], resources: list[str]) -> str:
    """Say where an action is about none of a statement's resources.

    Actions with wildcards are not judged.
    """
    kinds = {_kind(each) for each in actions}
    buckets = any("/" not in each for each in resources)
    objects = any("/" in each or each.endswith("*") for each in resources)
    if ("bucket" in kinds and not buckets) or ("object" in kinds and not objects):
        return "Action does not apply to any resource(s) in statement"
    return ""


def _kind(action: str) -> str:
    name = action.partition(":")[2]
    if "*" in name or "?" in name:
        return "any"
    if "bucket" in name or name.startswith("list"):
        return "bucket" if "bucket" in name else "any"
    return "object" if re.match(r"(get|put|delete|restore)object", name) else "any"
