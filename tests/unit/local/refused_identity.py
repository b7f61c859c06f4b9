"""Who may act: services that roles trust, managed policies, policies of secrets and buckets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import BUCKET_POLICY, KEYS, ROLES, policy
from tests.unit.local.refused_policies import AWS_POLICY, BUCKET, LISTED, on_a_bucket
from tests.unit.local.seeded_inputs import ROLE
from tests.unit.local.test_refused_parts import MALFORMED, READS, ROLE_ARN, trusting

SECRET, PERMISSION = "secretsmanager/secret:Secret", "lambda/permission:Permission"
SYNTAX = "MalformedPolicyDocumentException"
# Services whose principals no table of AWS's lists together.
SERVICES = (
    *("application-autoscaling", "autoscaling", "backup", "bcm-data-exports", "billingreports"),
    *("cloudtrail", "config", "delivery.logs", "dlm", "dynamodb.application-autoscaling"),
    *("ec2fleet", "ecs-tasks", "edgelambda", "eks", "eks-fargate-pods", "eks-nodegroup", "events"),
    *("export.rds", "kafkaconnect", "logs.us-east-1", "monitoring.rds", "ops.apigateway"),
    *("ops.emr-serverless", "pipes", "pods.eks", "scheduler", "spotfleet", "states.us-east-1"),
    *("transitgateway", "vpc-flow-logs"),
)


def role(**changed: Any) -> Mapping[str, Any]:
    return {**ROLE, **changed}


def on_a_secret(**changed: Any) -> Mapping[str, Any]:
    told = {
        "Sid": "A",
        "Effect": "Allow",
        "Principal": {"AWS": ROLE_ARN},
        "Action": "secretsmanager:GetSecretValue",
        "Resource": "*",
        **changed,
    }
    kept = {key: value for key, value in told.items() if value is not None}
    return {"name": "s", "policy": policy([kept])}


def by_a_service(principal: str) -> Mapping[str, Any]:
    return {
        "function": "f",
        "action": "lambda:InvokeFunction",
        "principal": principal,
        "statementId": "s",
    }


def bucket(action: str, resource: str, *keys: str) -> Mapping[str, Any]:
    condition = {"StringEquals": dict.fromkeys(keys, "x")} if keys else None
    return on_a_bucket(Action=action, Resource=resource, Condition=condition)


def policies(count: int) -> list[str]:
    return [f"arn:aws:iam::123456789012:policy/p{number}" for number in range(count)]


OBJECTS = f"{LISTED}/*"
OWN = {"Effect": "Allow", "Principal": {"AWS": ROLE_ARN}, "Action": "kms:Decrypt", "Resource": "*"}
REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    **{
        f"a trust in {name}": (
            ROLES,
            trusting(Principal={"Service": f"{name}.amazonaws.com"}),
            MALFORMED,
        )
        for name in ("lamda", "eks2", "kafkaconect", "pod.ekss", "us-east-1", "sqss.us-east-1")
    },
    "a permission of a service there is not": (
        PERMISSION,
        by_a_service("event.amazonaws.com"),
        "InvalidParameterValueException",
    ),
    "a role that lists a policy of AWS's there is not": (
        ROLES,
        role(managedPolicyArns=[f"{AWS_POLICY}AmazonNoSuchPolicy"]),
        "NoSuchEntity",
    ),
    "a role that lists a policy by name": (
        ROLES,
        role(managedPolicyArns=["ReadOnlyAccess"]),
        "InvalidInput",
    ),
    "a role that lists eleven policies": (
        ROLES,
        role(managedPolicyArns=policies(11)),
        "LimitExceeded",
    ),
    **{
        f"a secret's policy with {what}": (SECRET, on_a_secret(**changed), SYNTAX)
        for what, changed in (
            ("no principal", {"Principal": None}),
            ("a name for a principal", {"Principal": {"AWS": "root"}}),
            ("a small effect", {"Effect": "allow"}),
            ("no action", {"Action": None}),
            ("no resource", {"Resource": None}),
            ("another service's resource", {"Resource": "arn:aws:s3:::b"}),
            ("an operator there is not", {"Condition": {"StringEqual": {"aws:a": "b"}}}),
            ("20,481 characters", {"Action": ["secretsmanager:GetSecretValue"] * 700}),
        )
    },
    "a secret's policy that is no JSON": (SECRET, {"name": "s", "policy": "{"}, SYNTAX),
    "a secret's policy of no statement": (SECRET, {"name": "s", "policy": "{}"}, SYNTAX),
    **{
        f"a bucket's action s3:{name}": (BUCKET_POLICY, bucket(f"s3:{name}", OBJECTS), BUCKET)
        for name in (
            *("CopyObject", "DeleteObjects", "GetObjects", "HeadObject", "ListObjectsV2"),
            *("ListAllMyBuckets", "PutObjekt", "ReadObject"),
        )
    },
    **{
        f"a bucket's action s3:{name} on {resource}": (
            BUCKET_POLICY,
            bucket(f"s3:{name}", resource),
            BUCKET,
        )
        for name, resource in (
            *(("AbortMultipartUpload", LISTED), ("ListMultipartUploadParts", LISTED)),
            *(("ListBucketMultipartUploads", OBJECTS), ("GetLifecycleConfiguration", OBJECTS)),
            *(("PutEncryptionConfiguration", f"{LISTED}/x"), ("ReplicateObject", LISTED)),
        )
    },
    **{
        f"a bucket's condition {key}": (
            BUCKET_POLICY,
            bucket("s3:ListBucket", LISTED, key),
            BUCKET,
        )
        for key in ("s3:prefx", "s3:x-amz-acls", "s3:TlsVersions", "s3:ExistingTag/a")
    },
    **{
        f"a bucket's condition {key} on objects": (
            BUCKET_POLICY,
            bucket("s3:GetObject", OBJECTS, key),
            BUCKET,
        )
        for key in ("s3:prefix", "s3:delimiter", "s3:max-keys")
    },
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{
        f"a trust in {name}": (ROLES, trusting(Principal={"Service": f"{name}.amazonaws.com"}))
        for name in SERVICES
    },
    "a permission of a rule": (PERMISSION, by_a_service("events.amazonaws.com")),
    "a permission of an account": (PERMISSION, by_a_service("123456789012")),
    "a role that lists ten policies": (ROLES, role(managedPolicyArns=policies(10))),
    "a role that lists AWS's": (
        ROLES,
        role(managedPolicyArns=[f"{AWS_POLICY}AmazonEKSWorkerNodePolicy"]),
    ),
    "a role with a policy of its own": (
        ROLES,
        role(inlinePolicies=[{"name": "p", "policy": policy([READS])}]),
    ),
    "a key that locks its makers out on purpose": (
        KEYS,
        {"policy": json.dumps({"Statement": [OWN]}), "bypassPolicyLockoutSafetyCheck": True},
    ),
    "a secret's policy": (SECRET, on_a_secret()),
    "a secret that only an endpoint reaches": (
        SECRET,
        on_a_secret(
            Effect="Deny",
            Principal="*",
            Condition={"StringNotEquals": {"aws:SourceVpce": "vpce-0123456789abcdef0"}},
        ),
    ),
    **{
        f"a bucket's action {action} on {resource}": (BUCKET_POLICY, bucket(action, resource))
        for action, resource in (
            *(("s3:AbortMultipartUpload", OBJECTS), ("s3:ListBucketMultipartUploads", LISTED)),
            *(("s3:GetLifecycleConfiguration", LISTED), ("s3:ListBucket", f"{LISTED}*")),
            *(("s3:Get*", OBJECTS), ("s3:*", OBJECTS), ("s3:getobject", OBJECTS)),
            *(("s3:BypassGovernanceRetention", OBJECTS), ("s3:ReplicateDelete", OBJECTS)),
        )
    },
    **{
        f"a bucket's condition {key}": (BUCKET_POLICY, bucket(action, resource, key))
        for key, action, resource in (
            *(("s3:prefix", "s3:ListBucket", LISTED), ("s3:max-keys", "s3:List*", LISTED)),
            *((each, "s3:PutObject", OBJECTS) for each in ("s3:x-amz-acl", "s3:if-none-match")),
            ("s3:RequestObjectTag/a", "s3:PutObject", OBJECTS),
            ("s3:x-amz-server-side-encryption-aws-kms-key-id", "s3:PutObject", OBJECTS),
            ("s3:ExistingObjectTag/a", "s3:GetObject", OBJECTS),
            *((e, "s3:GetObject", OBJECTS) for e in ("s3:TlsVersion", "s3:signatureversion")),
            *((e, "s3:GetObject", OBJECTS) for e in ("aws:PrincipalOrgID", "aws:PrincipalTag/a")),
        )
    },
}
