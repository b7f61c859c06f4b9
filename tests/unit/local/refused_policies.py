"""Policies: what IAM and the services that keep one on a resource refuse to store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    BUCKET_POLICY,
    POLICED,
    QUEUE_POLICY,
    ROLES,
    TOPIC_ARN,
    TOPIC_POLICY,
    policy,
)
from tests.unit.local.test_refused_parts import INLINE, MALFORMED, QUEUE, inline, trusting

ATTACHMENT, LISTED = "iam/rolePolicyAttachment:RolePolicyAttachment", "arn:aws:s3:::b"
AWS_POLICY = "arn:aws:iam::aws:policy/"
VALUE, INVALID, BUCKET = "InvalidAttributeValue", "InvalidParameter", "MalformedPolicy"


def _statement(**changed: Any) -> dict[str, Any]:
    plain = {"Sid": "A", "Effect": "Allow", "Principal": "*"}
    return {key: value for key, value in {**plain, **changed}.items() if value is not None}


def on_a_queue(**changed: Any) -> Mapping[str, Any]:
    told = _statement(**{"Action": "sqs:SendMessage", "Resource": QUEUE, **changed})
    return {**POLICED, "policy": policy([told])}


def on_a_topic(**changed: Any) -> Mapping[str, Any]:
    told = _statement(**{"Action": "sns:Publish", "Resource": TOPIC_ARN, **changed})
    return {"arn": TOPIC_ARN, "policy": policy([told])}


def on_a_bucket(**changed: Any) -> Mapping[str, Any]:
    told = _statement(**{"Action": "s3:GetObject", "Resource": f"{LISTED}/*", **changed})
    return {"bucket": "b", "policy": policy([told])}


def attached(arn: str) -> Mapping[str, Any]:
    return {"role": "r", "policyArn": arn}


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a service with a wildcard": (INLINE, inline(Resource="arn:aws:s*:::x"), MALFORMED),
    "no action in a list": (INLINE, inline(Action=[]), MALFORMED),
    "no resource in a list": (INLINE, inline(Resource=[]), MALFORMED),
    "an action with a space": (INLINE, inline(Action="s3:Get Object"), MALFORMED),
    "an action of any service": (INLINE, inline(Action="*:Get"), MALFORMED),
    "a variable never closed": (
        INLINE,
        inline(Resource="arn:aws:s3:::${aws:x"),
        MALFORMED,
    ),
    "an ARN cut short": (INLINE, inline(Resource="arn:aws:s3::b"), MALFORMED),
    "a partition there is not": (INLINE, inline(Resource="arn:amazon:s3:::b"), MALFORMED),
    "a condition in blocks": (
        INLINE,
        inline(Condition={"StringEquals": {"a:b": {"c": "d"}}}),
        MALFORMED,
    ),
    "conditions in a list": (INLINE, inline(Condition=[{"a": "b"}]), MALFORMED),
    "a trust in no service": (ROLES, trusting(Principal={"Service": []}), MALFORMED),
    "a trust in nothing": (ROLES, trusting(Principal={}), MALFORMED),
    "a trust's misspelt action": (ROLES, trusting(Action="sts:AsumeRole"), MALFORMED),
    "a policy of AWS's that there is not": (
        ATTACHMENT,
        attached(f"{AWS_POLICY}AmazonEBSCSIDriverPolicyV9"),
        "NoSuchEntity",
    ),
    "a policy of AWS's under another path": (
        ATTACHMENT,
        attached(f"{AWS_POLICY}AWSLambdaBasicExecutionRole"),
        "NoSuchEntity",
    ),
    "a policy by its name": (ATTACHMENT, attached("ReadOnlyAccess"), "InvalidInput"),
    "a queue's unknown action": (QUEUE_POLICY, on_a_queue(Action="sqs:Send"), VALUE),
    "a queue's policy on another": (QUEUE_POLICY, on_a_queue(Resource=f"{QUEUE}-other"), VALUE),
    "a queue's account of five digits": (
        QUEUE_POLICY,
        on_a_queue(Principal={"AWS": "arn:aws:iam::12345:root"}),
        VALUE,
    ),
    "a queue's statement twice": (
        QUEUE_POLICY,
        {
            **POLICED,
            "policy": policy([_statement(Action="sqs:SendMessage", Resource=QUEUE)] * 2),
        },
        VALUE,
    ),
    "every action on a topic": (TOPIC_POLICY, on_a_topic(Action="sns:*"), INVALID),
    "a topic's policy on another": (TOPIC_POLICY, on_a_topic(Resource=f"{TOPIC_ARN}-x"), INVALID),
    "a topic's action of a queue": (TOPIC_POLICY, on_a_topic(Action="sqs:SendMessage"), INVALID),
    "a list of what is in an object": (BUCKET_POLICY, on_a_bucket(Action="s3:ListBucket"), BUCKET),
    "an object that is the bucket": (BUCKET_POLICY, on_a_bucket(Resource=LISTED), BUCKET),
    "one action of two for nothing": (
        BUCKET_POLICY,
        on_a_bucket(Action=["s3:ListBucket", "s3:GetObject"]),
        BUCKET,
    ),
    "a bucket's account of five digits": (
        BUCKET_POLICY,
        on_a_bucket(Principal={"AWS": "arn:aws:iam::12345:root"}),
        BUCKET,
    ),
    "a bucket's key of a condition": (
        BUCKET_POLICY,
        on_a_bucket(Condition={"Bool": {"aws:SecureTransports": "false"}}),
        BUCKET,
    ),
    "a bucket's operator": (
        BUCKET_POLICY,
        on_a_bucket(Condition={"Boolean": {"aws:SecureTransport": "false"}}),
        BUCKET,
    ),
    "a bucket's policy on a queue": (BUCKET_POLICY, on_a_bucket(Resource=QUEUE), BUCKET),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a policy: a variable in a resource": (
        INLINE,
        inline(Resource=["arn:aws:s3:::b/${aws:username}/*", "arn:aws:s3:::b/${*}"]),
    ),
    "a policy: every ARN of a service": (INLINE, inline(Resource="arn:aws:logs:*:*:*")),
    "a policy: a wildcard at the end": (INLINE, inline(Resource="arn:aws:iam::*")),
    "a trust policy: every way to assume": (ROLES, trusting(Action="sts:AssumeRole*")),
    "an attachment: under its path": (
        ATTACHMENT,
        attached(f"{AWS_POLICY}service-role/AWSLambdaBasicExecutionRole"),
    ),
    "an attachment: of one's own": (
        ATTACHMENT,
        attached("arn:aws:iam::123456789012:policy/team/reads"),
    ),
    "an attachment: in China": (
        ATTACHMENT,
        attached("arn:aws-cn:iam::aws:policy/AmazonEKSClusterPolicy"),
    ),
    "a queue: every action": (QUEUE_POLICY, on_a_queue(Action="sqs:*", Resource="*")),
    "a queue: a service": (
        QUEUE_POLICY,
        on_a_queue(Principal={"Service": "events.amazonaws.com"}),
    ),
    "a topic: its reader": (
        TOPIC_POLICY,
        on_a_topic(Action=["SNS:Subscribe", "sns:Receive"], Principal={"AWS": "123456789012"}),
    ),
    "a bucket: itself and what is in it": (
        BUCKET_POLICY,
        on_a_bucket(
            Action=["s3:ListBucket", "s3:GetObject"],
            Resource=[LISTED, f"{LISTED}/*"],
            Condition={"StringEquals": {"aws:PrincipalTag/team": "a"}},
        ),
    ),
}
