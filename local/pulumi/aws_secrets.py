"""Secrets Manager: secrets and the one version of each that a program writes."""

from __future__ import annotations

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    TagCalls,
    adapts,
    has_changed,
)
from local.pulumi.provider import Existing, Resource, State
from local.values import Properties


@adapts("secretsmanager/secret:Secret")
class SecretAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"name"})
    lookup = CallById("secretsmanager", "describe_secret", "SecretId")
    tagging = TagCalls("secretsmanager", "tag_resource", "untag_resource", "SecretId")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = self.make(aws, inputs)
        return State(made["ARN"], {"arn": made["ARN"]})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        secrets, arn = aws.client("secretsmanager"), existing.id
        if has_changed(existing, inputs, "description"):
            secrets.update_secret(SecretId=arn, Description=inputs.get("description") or "")
        self.tagging.bring(aws, arn, existing, inputs)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        days = int(existing.inputs.get("recoveryWindowInDays", 30))
        # No window at all is another parameter to the API.
        how = {"RecoveryWindowInDays": days} if days else {"ForceDeleteWithoutRecovery": True}
        aws.client("secretsmanager").delete_secret(SecretId=existing.id, **how)


@adapts("secretsmanager/secretVersion:SecretVersion")
class SecretVersionAdapter(Adapter):
    replaces = frozenset({"secretId"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = self.make(aws, inputs)
        version = made["VersionId"]
        return State(f"{made['ARN']}|{version}", {"arn": made["ARN"], "versionId": version})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        if not has_changed(existing, inputs, "secretString"):
            return {}
        return self.create(aws, existing.resource, inputs).outputs

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        arn, _, version = existing.id.partition("|")
        aws.client("secretsmanager").get_secret_value(SecretId=arn, VersionId=version)
        return {}
