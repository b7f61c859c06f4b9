"""Checks what a policy on a queue, a topic, a bucket or a secret must say to be stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.iam.conditions import like
from local.refusals import bucket_policies
from local.refusals.documents import as_list, parse, text
from local.refusals.limits import limit
from local.refusals.policies import TOP, VERSIONS, is_principal, of_parts
from local.refusals.refusal import Refusal, Wanted

_IAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/"


@dataclass(frozen=True, slots=True)
class PolicyOwner:
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
_POLICIES: Mapping[str, PolicyOwner] = {
    "aws:sqs/queuePolicy:QueuePolicy": PolicyOwner(
        "sqs",
        "SetQueueAttributes",
        "InvalidAttributeValue",
        "Invalid value for the parameter Policy.",
        _OF_A_QUEUE,
    ),
    "aws:sns/topicPolicy:TopicPolicy": PolicyOwner(
        "sns",
        "SetTopicAttributes",
        "InvalidParameter",
        "Invalid parameter: Policy statement action out of service scope!",
        _OF_A_TOPIC,
    ),
    "aws:s3/bucketPolicy:BucketPolicy": PolicyOwner(
        "s3",
        "PutBucketPolicy",
        "MalformedPolicy",
        "Policies must be valid JSON and the first byte must be '{'",
    ),
    "aws:secretsmanager/secret:Secret": PolicyOwner(
        "secretsmanager",
        "PutResourcePolicy",
        "MalformedPolicyDocumentException",
        "This resource policy contains a syntax error.",
    ),
}
# Secrets Manager user guide, "Quotas": characters of a secret's policy.
POLICY_OF_A_SECRET = 20_480


# A secret, a queue and a topic may bring their policy themselves.
_BRINGING = {
    "aws:secretsmanager/secret:Secret": "aws:secretsmanager/secret:Secret",
    "aws:sns/topic:Topic": "aws:sns/topicPolicy:TopicPolicy",
    "aws:sqs/queue:Queue": "aws:sqs/queuePolicy:QueuePolicy",
}


@limit(
    "s3/bucketPolicy:BucketPolicy",
    "secretsmanager/secret:Secret",
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
    document = parse(wanted.inputs["policy"])
    statements = as_list((document or {}).get("Statement"))
    wrong = policed.message if document is None or not statements else ""
    if set(document or {}) - TOP or (document or {}).get("Version", "2008-10-17") not in VERSIONS:
        wrong = policed.message
    named = _policy_target(wanted)
    for statement in statements:
        if not isinstance(statement, dict):
            statement = {}  # noqa: PLW2901  # refused as one that says nothing
        wrong = wrong or _of_a_statement(statement, policed, named)
    sids = [e["Sid"] for e in statements if isinstance(e, dict) and e.get("Sid")]
    # Of S3 nobody has been told that a Sid must be there once.
    if policed.service != "s3" and len(set(sids)) < len(sids):
        wrong = wrong or f"{policed.message} Every policy statement must have a unique ID"
    if policed.service == "secretsmanager" and len(text(wanted.inputs["policy"])) > (
        POLICY_OF_A_SECRET
    ):
        wrong = wrong or f"A secret's policy may have {POLICY_OF_A_SECRET} characters."
    if wrong:
        yield Refusal(policed.operation, policed.code, wrong, "policy")


def _policy_target(wanted: Wanted) -> str:
    """Return the name of what the policy is on; empty where it is not known."""
    inputs = wanted.inputs
    if wanted.type.endswith(":BucketPolicy"):
        return str(inputs.get("bucket") or "")
    found = str(inputs.get("arn") or inputs.get("queueUrl") or "")
    return re.split("[:/]", found)[-1]


def _of_a_statement(statement: Any, policed: PolicyOwner, named: str) -> str:
    s3 = policed.service == "s3"
    unsaid = statement.get("Effect") not in {"Allow", "Deny"}
    if unsaid or of_parts(statement) or ("Action" in statement) == ("NotAction" in statement):
        return policed.message
    principal = statement.get("Principal", statement.get("NotPrincipal"))
    if principal is None:
        return "Missing required field Principal" if s3 else policed.message
    if not is_principal(principal):
        return "Invalid principal in policy" if s3 else f"{policed.message} PrincipalNotFound"
    actions = [str(each).lower() for each in as_list(statement.get("Action"))]
    if s3 and (strange := bucket_policies.strange_action(actions)):
        return strange
    if not all(_is_action(each, policed) for each in actions):
        return "Policy has invalid action" if s3 else policed.message
    resources = [str(e) for e in as_list(statement.get("Resource", statement.get("NotResource")))]
    wrong = _of_resources(resources, policed, named)
    return wrong or (bucket_policies.wrong(statement, actions, resources) if s3 else "")


def _is_action(action: str, policed: PolicyOwner) -> bool:
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
    return any(like(name, each) for each in policed.actions)


def _of_resources(resources: list[str], policed: PolicyOwner, named: str) -> str:
    if policed.service == "secretsmanager":
        arns = all(each == "*" or ":secretsmanager:" in each for each in resources)
        return "" if arns and resources else policed.message
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
    return not named or like(parts[5], named)


def _of_another_bucket(resource: str, bucket: str) -> bool:
    named = re.fullmatch(r"arn:aws[a-z-]*:s3:::([^/*?]+)(/.*)?", resource)
    if named is not None:
        return bool(bucket) and named[1] != bucket
    return re.fullmatch(r"arn:aws[a-z-]*:s3:::.+|\*", resource) is None
