"""Makes what keeps things: tables and their items, buckets, queues, secrets."""

from __future__ import annotations

import json
from typing import Any

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    TagCalls,
    adapts,
    has_changed,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.catalogue import queue_attributes
from local.values import Properties


@adapts("dynamodb/table:Table")
class TableAdapter(Adapter):
    """A table that is billed by request: no program of ours provisions what it reads and writes."""

    name_property = "name"
    replaces = frozenset({"hashKey", "rangeKey", "localSecondaryIndexes"})
    lookup = CallById("dynamodb", "describe_table", "TableName")
    deletion = CallById("dynamodb", "delete_table", "TableName")
    tagging = TagCalls("dynamodb", "tag_resource", "untag_resource", "ResourceArn", by="arn")

    @staticmethod
    def _settings(aws: Aws, name: str, inputs: Properties) -> None:
        dynamodb = aws.client("dynamodb")
        ttl = inputs.get("ttl") or {}
        if ttl.get("attributeName"):
            dynamodb.update_time_to_live(
                TableName=name,
                TimeToLiveSpecification={
                    "Enabled": bool(ttl.get("enabled", True)),
                    "AttributeName": ttl["attributeName"],
                },
            )
        recovery = inputs.get("pointInTimeRecovery")
        if recovery:
            enabled = {"PointInTimeRecoveryEnabled": bool(recovery["enabled"])}
            dynamodb.update_continuous_backups(
                TableName=name, PointInTimeRecoverySpecification=enabled
            )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = self.make(aws, inputs)["TableDescription"]
        self._settings(aws, inputs["name"], inputs)
        return State(inputs["name"], {"arn": made["TableArn"]})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        if has_changed(existing, inputs, "deletionProtectionEnabled"):
            aws.client("dynamodb").update_table(
                TableName=existing.id,
                DeletionProtectionEnabled=bool(inputs.get("deletionProtectionEnabled")),
            )
        if has_changed(existing, inputs, "ttl", "pointInTimeRecovery"):
            self._settings(aws, existing.id, inputs)
        return super().update(aws, existing, inputs)


@adapts("dynamodb/tableItem:TableItem")
class TableItemAdapter(Adapter):
    replaces = frozenset({"tableName", "hashKey", "rangeKey"})

    @staticmethod
    def _key(inputs: Properties) -> dict[str, Any]:
        item = json.loads(inputs["item"])
        names = (inputs["hashKey"], inputs.get("rangeKey"))
        return {name: item[name] for name in names if name}

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self.make(aws, inputs)
        key = "|".join(str(next(iter(each.values()))) for each in self._key(inputs).values())
        return State(f"{inputs['tableName']}|{key}", {})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        self.make(aws, inputs)
        if self._key(existing.inputs) != self._key(inputs):
            self.delete(aws, existing)
        return {}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        answer = aws.client("dynamodb").get_item(
            TableName=existing.inputs["tableName"], Key=self._key(existing.inputs)
        )
        return {} if "Item" in answer else None

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("dynamodb").delete_item(
            TableName=existing.inputs["tableName"], Key=self._key(existing.inputs)
        )


@adapts("s3/bucket:Bucket")
class BucketAdapter(Adapter):
    name_property = "bucket"
    lookup = CallById("s3", "head_bucket", "Bucket")

    @staticmethod
    def _tags(aws: Aws, bucket: str, inputs: Properties) -> None:
        s3 = aws.client("s3")
        tags = tag_list(tags_of(inputs))
        if tags:
            s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
        else:
            s3.delete_bucket_tagging(Bucket=bucket)

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        bucket = inputs["bucket"]
        aws.client("s3").create_bucket(Bucket=bucket)
        if tags_of(inputs):
            self._tags(aws, bucket, inputs)
        return State(
            bucket,
            {
                "arn": f"arn:aws:s3:::{bucket}",
                "bucketDomainName": f"{bucket}.s3.amazonaws.com",
                "bucketRegionalDomainName": f"{bucket}.s3.{aws.region}.amazonaws.com",
                "bucketRegion": aws.region,
            },
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        self._tags(aws, existing.id, inputs)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        s3 = aws.client("s3")
        if existing.inputs.get("forceDestroy"):
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=existing.id):
                found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
                keys = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in found]
                if keys:
                    s3.delete_objects(Bucket=existing.id, Delete={"Objects": keys, "Quiet": True})
        s3.delete_bucket(Bucket=existing.id)


@adapts("sqs/queue:Queue")
class QueueAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"fifoQueue"})
    lookup = CallById("sqs", "get_queue_attributes", "QueueUrl")
    deletion = CallById("sqs", "delete_queue", "QueueUrl")
    tagging = TagCalls("sqs", "tag_queue", "untag_queue", "QueueUrl", mapped=True)

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        url = self.make(aws, inputs)["QueueUrl"]
        return State(url, {"url": url, "arn": aws.arn("sqs", inputs["name"])})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        sqs = aws.client("sqs")
        old, new = queue_attributes(existing.inputs), queue_attributes(inputs)
        # An attribute the program no longer sets goes back to what a new queue has.
        back = {name: "" for name in ("Policy", "RedrivePolicy") if name in old and name not in new}
        difference = {k: v for k, v in new.items() if old.get(k) != v} | back
        if difference:
            sqs.set_queue_attributes(QueueUrl=existing.id, Attributes=difference)
        return super().update(aws, existing, inputs)


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
        if has_changed(existing, inputs, "description"):
            aws.client("secretsmanager").update_secret(
                SecretId=existing.id, Description=inputs.get("description") or ""
            )
        return super().update(aws, existing, inputs)

    def delete(self, aws: Aws, existing: Existing) -> None:
        days = int(existing.inputs.get("recoveryWindowInDays", 30))
        # No window at all is another parameter to the API.
        how = {"RecoveryWindowInDays": days} if days else {"ForceDeleteWithoutRecovery": True}
        aws.client("secretsmanager").delete_secret(SecretId=existing.id, **how)
