"""Makes what keeps things, and what runs: tables and items, buckets, queues, secrets, functions."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from core.ground.errors import InvalidInput
from local.environment import PARTITION
from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    TagCalls,
    adapts,
    has_changed,
    request,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.catalogue import queue_attributes
from local.values import Asset, Properties


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


# The earliest date a zip can hold: the same sources make the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def zip_bytes(archive: Asset) -> bytes:
    """Return a folder as a zip; a file is passed on as it is."""
    path = Path(str(archive.content.get("path")))
    if not path.is_dir():
        try:
            return path.read_bytes()
        except OSError as error:
            problem = f"{path} cannot be read ({error.strerror}); build it before the update."
            raise InvalidInput([problem]) from None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for each in sorted(path.rglob("*")):
            if each.is_file():
                info = zipfile.ZipInfo(each.relative_to(path).as_posix(), _DATE)
                info.external_attr = 0o644 << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                target.writestr(info, each.read_bytes())
    return buffer.getvalue()


def _code(inputs: Properties) -> bytes:
    code = inputs.get("code")
    if not isinstance(code, Asset) or "path" not in code.content:
        problem = "The function's code must be a zip or a folder in the twin; S3 is not read."
        raise InvalidInput([problem])
    return zip_bytes(code)


@adapts("lambda/function:Function")
class FunctionAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"packageType"})
    lookup = CallById("lambda", "get_function", "FunctionName")
    deletion = CallById("lambda", "delete_function", "FunctionName")
    tagging = TagCalls(
        "lambda", "tag_resource", "untag_resource", "Resource", by="arn", mapped=True
    )

    @staticmethod
    def _outputs(aws: Aws, made: dict[str, Any], code: bytes) -> Properties:
        arn = aws.arn("lambda", f"function:{made['FunctionName']}")
        sha256 = base64.b64encode(hashlib.sha256(code).digest()).decode()
        invoke = f"arn:{PARTITION}:apigateway:{aws.region}:lambda:path/2015-03-31/functions/{arn}"
        return {
            "arn": arn,
            "invokeArn": f"{invoke}/invocations",
            "version": made.get("Version", "$LATEST"),
            "qualifiedArn": f"{arn}:{made.get('Version', '$LATEST')}",
            "lastModified": made.get("LastModified"),
            "codeSha256": sha256,
            "sourceCodeSize": len(code),
        }

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        code = _code(inputs)
        made = self.make(aws, inputs, Code={"ZipFile": code})
        self._concurrency(aws, inputs["name"], inputs)
        return State(inputs["name"], self._outputs(aws, made, code))

    @staticmethod
    def _concurrency(aws: Aws, name: str, inputs: Properties) -> None:
        reserved = inputs.get("reservedConcurrentExecutions")
        if reserved is not None and int(reserved) >= 0:
            aws.client("lambda").put_function_concurrency(
                FunctionName=name, ReservedConcurrentExecutions=int(reserved)
            )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        client, name = aws.client("lambda"), existing.id
        fresh = super().update(aws, existing, inputs)
        settings = {*existing.inputs, *inputs} - {"code", "tags", "tagsAll", "sourceCodeHash"}
        if has_changed(existing, inputs, *settings):
            parameters = request(client, "UpdateFunctionConfiguration", inputs)
            # Left out means unchanged to the API; to a program it means none.
            none: Properties = {"Environment": {"Variables": {}}}
            client.update_function_configuration(**{**none, **parameters, "FunctionName": name})
            self._concurrency(aws, name, inputs)
        if has_changed(existing, inputs, "code", "sourceCodeHash"):
            code = _code(inputs)
            made = client.update_function_code(FunctionName=name, ZipFile=code)
            fresh = self._outputs(aws, made, code)
        return fresh
