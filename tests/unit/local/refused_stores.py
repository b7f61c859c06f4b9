"""Policies, keys, buckets, tables, snapshots: what each service refuses beyond its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    BUCKET_POLICY,
    DETAILS,
    ENCRYPTION,
    EXPORTS,
    ITEM,
    KEPT,
    KEY,
    KEYS,
    ROLES,
    SNAPSHOTS,
    TABLES,
    policy,
)
from tests.unit.local.seeded_inputs import EXPORT, ROLE, TABLE
from tests.unit.local.test_refused_parts import INLINE, LIFECYCLE, READS, expiring, inline, trusting

REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a policy: json": (
        INLINE,
        {"role": "r", "name": "p", "policy": "{"},
        "MalformedPolicyDocument",
    ),
    "a policy: list": (
        INLINE,
        {"role": "r", "name": "p", "policy": "[]"},
        "MalformedPolicyDocument",
    ),
    "a policy: statement str": (
        INLINE,
        {"role": "r", "name": "p", "policy": policy("x")},
        "MalformedPolicyDocument",
    ),
    "a trust policy: json": (
        ROLES,
        {"name": "r", "assumeRolePolicy": "{"},
        "MalformedPolicyDocument",
    ),
    "a policy: condition": (
        INLINE,
        inline(Condition={"StringEqual": {"aws:x": "y"}}),
        "MalformedPolicyDocument",
    ),
    "a policy: condition scalar": (
        INLINE,
        inline(Condition={"StringEquals": "y"}),
        "MalformedPolicyDocument",
    ),
    "a policy: unknown key": (INLINE, inline(Actions="x"), "MalformedPolicyDocument"),
    "a policy: top key": (
        INLINE,
        {"role": "r", "name": "p", "policy": policy([READS], Comment="x")},
        "MalformedPolicyDocument",
    ),
    "a policy: empty": (
        INLINE,
        {"role": "r", "name": "p", "policy": policy([])},
        "MalformedPolicyDocument",
    ),
    "a policy: both resources": (INLINE, inline(NotResource="*"), "MalformedPolicyDocument"),
    "a trust policy: service": (
        ROLES,
        trusting(Principal={"Service": "lambda"}),
        "MalformedPolicyDocument",
    ),
    "a trust policy: aws": (ROLES, trusting(Principal={"AWS": "me"}), "MalformedPolicyDocument"),
    "a trust policy: kind": (ROLES, trusting(Principal={"User": "me"}), "MalformedPolicyDocument"),
    "a trust policy: action": (ROLES, trusting(Action="s3:GetObject"), "MalformedPolicyDocument"),
    "a trust policy: star str": (
        ROLES,
        trusting(Principal="lambda.amazonaws.com"),
        "MalformedPolicyDocument",
    ),
    "a role: name é": (ROLES, {**ROLE, "name": "é"}, "ValidationError"),
    "a key: lockout": (
        KEYS,
        {
            "policy": policy(
                [
                    {
                        "Effect": "Allow",
                        "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
                        "Action": "kms:Decrypt",
                        "Resource": "*",
                    }
                ]
            )
        },
        "MalformedPolicyDocumentException",
    ),
    "a key: json": (KEYS, {"policy": "{"}, "MalformedPolicyDocumentException"),
    "a key: rotate hmac": (
        KEYS,
        {
            "keyUsage": "GENERATE_VERIFY_MAC",
            "customerMasterKeySpec": "HMAC_256",
            "enableKeyRotation": True,
        },
        "UnsupportedOperationException",
    ),
    "a bucket: policy json": (BUCKET_POLICY, {"bucket": "b", "policy": "{"}, "MalformedPolicy"),
    "a bucket: policy principal": (
        BUCKET_POLICY,
        {
            "bucket": "b",
            "policy": policy(
                [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"}]
            ),
        },
        "MalformedPolicy",
    ),
    "a bucket: policy action": (
        BUCKET_POLICY,
        {
            "bucket": "b",
            "policy": policy(
                [
                    {
                        "Effect": "Allow",
                        "Principal": "*",
                        "Action": "ec2:Run",
                        "Resource": "arn:aws:s3:::b/*",
                    }
                ]
            ),
        },
        "MalformedPolicy",
    ),
    "a bucket: policy other": (
        BUCKET_POLICY,
        {
            "bucket": "b",
            "policy": policy(
                [
                    {
                        "Effect": "Allow",
                        "Principal": "*",
                        "Action": "s3:GetObject",
                        "Resource": "arn:aws:s3:::c/*",
                    }
                ]
            ),
        },
        "MalformedPolicy",
    ),
    "a lifecycle: class": (
        LIFECYCLE,
        expiring(transitions=[{"days": 90, "storageClass": "COLD"}]),
        "InvalidArgument",
    ),
    "a table: same key": (TABLES, {**TABLE, "rangeKey": "pk"}, "ValidationException"),
    "a table: gsi twice": (
        TABLES,
        {
            **TABLE,
            "globalSecondaryIndexes": [{"name": "idx", "hashKey": "pk", "projectionType": "ALL"}]
            * 2,
        },
        "ValidationException",
    ),
    "a table: item plain": (
        ITEM,
        {"tableName": "ttt", "hashKey": "pk", "item": json.dumps({"pk": "x"})},
        "ValidationException",
    ),
    "a table: item json": (
        ITEM,
        {"tableName": "ttt", "hashKey": "pk", "item": "{"},
        "ValidationException",
    ),
    "a table: item empty key": (
        ITEM,
        {"tableName": "ttt", "hashKey": "pk", "item": json.dumps({"pk": {"S": ""}})},
        "ValidationException",
    ),
    "a table: item type": (
        ITEM,
        {
            "tableName": "ttt",
            "hashKey": "pk",
            "item": json.dumps({"pk": {"S": "x"}, "n": {"N": 5}}),
        },
        "ValidationException",
    ),
    "snapshots: both": (
        SNAPSHOTS,
        {
            **KEPT,
            "policyDetails": {
                **KEPT["policyDetails"],
                "schedules": [
                    {
                        "name": "s",
                        "createRule": {"interval": 24, "cronExpression": "cron(0 3 * * ? *)"},
                        "retainRule": {"count": 1},
                    }
                ],
            },
        },
        "InvalidRequestException",
    ),
    "an export: compression": (
        EXPORTS,
        json.loads(json.dumps(EXPORT).replace('"compression": "PARQUET"', '"compression": "GZIP"')),
        "ValidationException",
    ),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a policy: with conditions": (
        INLINE,
        inline(
            Condition={
                "StringEqualsIfExists": {"a:b": "c"},
                "ForAnyValue:StringLike": {"a:b": ["c*"]},
                "Null": {"a:b": "true"},
            }
        ),
    ),
    "a trust policy: of pods": (
        ROLES,
        trusting(
            Principal={"Service": "pods.eks.amazonaws.com"},
            Action=["sts:AssumeRole", "sts:TagSession"],
        ),
    ),
    "a trust policy: of an account": (ROLES, trusting(Principal={"AWS": "123456789012"})),
    "a key: kept by its account": (
        KEYS,
        {
            "enableKeyRotation": True,
            "policy": policy(
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
                    "Action": "kms:*",
                    "Resource": "*",
                }
            ),
        },
    ),
    "a bucket: denies plain HTTP": (
        BUCKET_POLICY,
        {
            "bucket": "b",
            "policy": policy(
                [
                    {
                        "Effect": "Deny",
                        "Principal": "*",
                        "Action": "s3:*",
                        "Resource": ["arn:aws:s3:::b", "arn:aws:s3:::b/*"],
                    }
                ]
            ),
        },
    ),
    "a lifecycle: colder, then gone": (
        LIFECYCLE,
        expiring(
            transitions=[{"days": 30, "storageClass": "STANDARD_IA"}], expiration={"days": 90}
        ),
    ),
    "an encryption: by a key": (
        ENCRYPTION,
        {
            "bucket": "b",
            "rules": [
                {
                    "applyServerSideEncryptionByDefault": {
                        "sseAlgorithm": "aws:kms",
                        "kmsMasterKeyId": KEY,
                    }
                }
            ],
        },
    ),
    "a table: an item of every kind": (
        ITEM,
        {
            "tableName": "ttt",
            "hashKey": "pk",
            "item": json.dumps(
                {"pk": {"S": "x"}, "n": {"N": "5"}, "l": {"L": []}, "b": {"BOOL": True}}
            ),
        },
    ),
    "snapshots: by a cron": (
        SNAPSHOTS,
        {
            **KEPT,
            "policyDetails": {
                **DETAILS,
                "schedules": [
                    {
                        "name": "s",
                        "createRule": {"cronExpression": "cron(0 3 * * ? *)"},
                        "retainRule": {"count": 1},
                    }
                ],
            },
        },
    ),
}
