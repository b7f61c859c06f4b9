"""Reads from moto who an access key is, what a resource is, and which policies both have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.awslambda.models import lambda_backends
from moto.dynamodb.models import dynamodb_backends
from moto.ec2.models import ec2_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends
from moto.kms.models import kms_backends
from moto.s3.models import s3_backends
from moto.secretsmanager.models import secretsmanager_backends
from moto.sns.models import sns_backends
from moto.sqs.models import sqs_backends
from moto.sts.models import sts_backends

from local.environment import ACCOUNT, ADMIN_USER, PARTITION
from local.iam.policy import Document, Policies, Principal
from local.iam.requests import arn
from local.locks import IDENTITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who an access key belongs to; `role` or `user` is a name."""

    principal: Principal
    user_id: str
    secret: str = ""
    session_token: str | None = None
    role: str = ""
    user: str = ""
    session_policy: str = ""

    def as_key_owner(self) -> dict[str, str | None]:
        """Return what whoever has the access key's id asks for: the rest."""
        return {
            "secret": self.secret,
            "arn": self.principal.arn,
            "account": self.principal.account,
            "user_id": self.user_id,
            "session_token": self.session_token,
        }

    @property
    def administrator(self) -> bool:
        return self.user == ADMIN_USER


def caller(access_key: str) -> Caller | None:
    """Return who an access key belongs to, or None for one nobody was given."""
    with IDENTITY:
        session = sts_backends[ACCOUNT][PARTITION].get_assumed_role_from_access_key(access_key)
        if session is not None:
            return Caller(
                principal=Principal(
                    arn=session.arn, account=session.account_id, role_arn=session.role_arn
                ),
                user_id=session.user_id,
                secret=session.secret_access_key,
                session_token=session.session_token,
                role=session.role_arn.rpartition("/")[2],
                session_policy=session.policy or "",
            )
        for user in iam_backends[ACCOUNT][PARTITION].users.values():
            for key in user.access_keys:
                if key.access_key_id == access_key and key.status == "Active":
                    return Caller(
                        principal=Principal(arn=user.arn, account=user.account_id),
                        user_id=user.id,
                        secret=key.secret_access_key,
                        user=user.name,
                    )
    return None


def session_of(role_arn: str, name: str) -> Caller:
    """Return a role as a service of AWS acts under it."""
    account, role = role_arn.split(":")[4], role_arn.rpartition("/")[2]
    arn_of_session = f"arn:{PARTITION}:sts::{account}:assumed-role/{role}/{name}"
    return Caller(
        principal=Principal(arn=arn_of_session, account=account, role_arn=role_arn),
        user_id=f"AROA{role.upper()}:{name}",
        role=role,
    )


def policies(who: Caller, resource: str) -> Policies:
    """Return what is asked about a call: the caller's policies, their bounds, the resource's."""
    iam = iam_backends[ACCOUNT][PARTITION]
    with IDENTITY:
        owners = iam.roles.values() if who.role else iam.users.values()
        owner = next((each for each in owners if each.name == (who.role or who.user)), None)
        if owner is None:
            return Policies()
        attached = [_current(each) for each in owner.managed_policies.values()]
        bound = getattr(owner, "permissions_boundary_arn", None)
        boundary = _current(iam.managed_policies[bound]) if bound else None
        return Policies(
            identity=[_document(text) for text in (*owner.policies.values(), *attached)],
            resource=resource_policy(resource),
            boundary=_document(boundary) if boundary else None,
            session=_document(who.session_policy) if who.session_policy else None,
        )


def trust_of(role_arn: str) -> Document | None:
    """Return the trust policy of a role, or None where there is no such role."""
    with IDENTITY:
        for role in iam_backends[ACCOUNT][PARTITION].roles.values():
            if role.arn == role_arn:
                return _document(role.assume_role_policy_document)
    return None


def resource_policy(resource: str) -> Document | None:
    """Return the policy of the queue, bucket, topic or function an ARN names, if it has one."""
    if resource.count(":") < 5:
        return None
    service, region, account, name = resource.split(":", 5)[2:]
    text: Any = None
    if service == "sqs":
        queue = sqs_backends[account][region].queues.get(name)
        text = queue and queue.policy
    elif service == "s3":
        bucket = s3_backends[ACCOUNT][PARTITION].buckets.get(name.partition("/")[0])
        text = bucket and bucket.policy
    elif service == "sns":
        topic = sns_backends[account][region].topics.get(resource)
        text = topic and topic.policy
    elif service == "kms":
        key = kms_backends[account][region].keys.get(name.removeprefix("key/"))
        text = key and key.policy
    elif service == "lambda":
        kept = lambda_backends[account][region]._lambdas._functions  # noqa: SLF001  # moto's public lookup raises
        function = kept.get(name.removeprefix("function:").partition(":")[0], {}).get("latest")
        text = function and {"Statement": function.policy.statements}
    return _document(text) if text else None


def _current(policy: Any) -> str:
    """Return the document of a managed policy's default version."""
    versions = {each.version_id: each.document for each in policy.versions}
    return str(versions[policy.default_version_id])


def _document(text: Any) -> Document:
    document: Document = text if isinstance(text, Mapping) else json.loads(text)
    return document


class AccountFacts:
    """The account's resources as moto holds them."""

    def group_arn(self, region: str, name: str) -> str:
        """Return the ARN of an Auto Scaling group, its random part included."""
        group = autoscaling_backends[ACCOUNT][region].autoscaling_groups.get(name)
        if group is not None:
            return str(group.arn)
        return arn("autoscaling", region, f"autoScalingGroup:*:autoScalingGroupName/{name}")

    def group_of(self, region: str, instance_id: str) -> str:
        """Return the name of the group an instance is in, or an empty text."""
        for group in list(autoscaling_backends[ACCOUNT][region].autoscaling_groups.values()):
            if any(state.instance.id == instance_id for state in list(group.instance_states)):
                return str(group.name)
        return ""

    def secret_arn(self, region: str, name_or_arn: str) -> str:
        """Return a secret's ARN, its random end included."""
        secret = secretsmanager_backends[ACCOUNT][region].secrets.get(name_or_arn)
        if secret is not None:
            return str(secret.arn)
        named = name_or_arn.startswith("arn:")
        return name_or_arn if named else arn("secretsmanager", region, f"secret:{name_or_arn}")

    def role_of_profile(self, name: str) -> str:
        """Return the ARN of the role an instance profile gives to instances."""
        profiles = iam_backends[ACCOUNT][PARTITION].instance_profiles.values()
        roles = [role for each in list(profiles) if each.name == name for role in each.roles]
        return str(roles[0].arn) if roles else arn("iam", "", "role/none")

    def hash_key(self, region: str, table: str, index: str) -> str:
        """Return the name of a table's, or its index's, partition key."""
        found = dynamodb_backends[ACCOUNT][region].tables.get(table)
        if found is None:
            return ""
        if index:
            schema = next(i for i in found.all_indexes() if i.name == index).schema
            return next(str(k["AttributeName"]) for k in schema if k["KeyType"] == "HASH")
        return str(found.hash_key_attr)

    def key_of_topic(self, region: str, topic_arn: str) -> str:
        """Return the ARN of the key a topic encrypts with, or an empty text."""
        topic = sns_backends[ACCOUNT][region].topics.get(topic_arn)
        named = str(topic.kms_master_key_id or "") if topic else ""
        return (
            named if named.startswith("arn:") or not named else arn("kms", region, f"key/{named}")
        )

    def tags(self, region: str, resource: str) -> Mapping[str, str]:
        """Return the tags of what an ARN names."""
        service, name = resource.split(":")[2], resource.rpartition("/")[2]
        if service == "ec2":
            return dict(ec2_backends[ACCOUNT][region].tags.get(name, {}))
        if service == "elasticloadbalancing":
            found = elbv2_backends[ACCOUNT][region].tagging_service
            return dict(found.get_tag_dict_for_resource(resource))
        if service == "autoscaling":
            group = autoscaling_backends[ACCOUNT][region].autoscaling_groups.get(name)
            return {each["Key"]: each["Value"] for each in group.tags} if group else {}
        if service == "secretsmanager":
            secret = secretsmanager_backends[ACCOUNT][region].secrets.get(resource)
            return {each["Key"]: each["Value"] for each in (secret.tags or [])} if secret else {}
        return {}
