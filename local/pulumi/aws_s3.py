"""Buckets and the settings that pulumi-aws makes resources of their own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    PutAdapter,
    adapts,
    as_text,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.shapes import coerce
from local.values import Properties


@adapts("s3/bucket:Bucket", "s3/bucketV2:BucketV2")
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


class _Setting(PutAdapter):
    """A put of one setting of a bucket; deleting it puts the bucket's own default back."""

    replaces = frozenset({"bucket"})
    operation: ClassVar[str]
    remove: ClassVar[str | None] = None

    @abstractmethod
    def body(self, inputs: Properties) -> dict[str, Any]:
        """Return the setting as the put takes it, beside the bucket's name."""

    def put(self, aws: Aws, inputs: Properties) -> None:
        s3 = aws.client("s3")
        operation = "".join(part.capitalize() for part in self.operation.split("_"))
        shape = s3.meta.service_model.operation_model(operation).input_shape
        wanted = {"Bucket": inputs["bucket"], **self.body(inputs)}
        getattr(s3, self.operation)(**coerce(shape, wanted))

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self.put(aws, inputs)
        return State(inputs["bucket"], {})

    def delete(self, aws: Aws, existing: Existing) -> None:
        if self.remove is not None:
            getattr(aws.client("s3"), self.remove)(Bucket=existing.inputs["bucket"])


@adapts("s3/bucketVersioning:BucketVersioning", "s3/bucketVersioningV2:BucketVersioningV2")
class BucketVersioning(_Setting):
    operation = "put_bucket_versioning"

    def body(self, inputs: Properties) -> dict[str, Any]:
        return {"VersioningConfiguration": inputs["versioningConfiguration"]}


@adapts(
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "s3/bucketServerSideEncryptionConfigurationV2:BucketServerSideEncryptionConfigurationV2",
)
class BucketEncryption(_Setting):
    operation = "put_bucket_encryption"
    remove = "delete_bucket_encryption"

    def body(self, inputs: Properties) -> dict[str, Any]:
        rules = []
        for rule in inputs["rules"]:
            default = rule.get("applyServerSideEncryptionByDefault") or {}
            api: dict[str, Any] = {"SSEAlgorithm": default.get("sseAlgorithm", "AES256")}
            if default.get("kmsMasterKeyId"):
                api["KMSMasterKeyID"] = default["kmsMasterKeyId"]
            rules.append(
                {
                    "ApplyServerSideEncryptionByDefault": api,
                    "BucketKeyEnabled": bool(rule.get("bucketKeyEnabled")),
                }
            )
        return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


@adapts("s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration")
class BucketLifecycle(_Setting):
    operation = "put_bucket_lifecycle_configuration"
    remove = "delete_bucket_lifecycle"

    def body(self, inputs: Properties) -> dict[str, Any]:
        return {"LifecycleConfiguration": {"Rules": inputs["rules"]}}


@adapts("s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
class BucketPublicAccessBlock(_Setting):
    operation = "put_public_access_block"
    remove = "delete_public_access_block"

    def body(self, inputs: Properties) -> dict[str, Any]:
        return {"PublicAccessBlockConfiguration": inputs}


@adapts("s3/bucketPolicy:BucketPolicy")
class BucketPolicy(_Setting):
    operation = "put_bucket_policy"
    remove = "delete_bucket_policy"

    def body(self, inputs: Properties) -> dict[str, Any]:
        return {"Policy": as_text(inputs["policy"])}
