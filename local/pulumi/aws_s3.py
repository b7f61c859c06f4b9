"""Buckets and the settings that pulumi-aws makes resources of their own."""

from __future__ import annotations

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    PutAdapter,
    adapts,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.values import Properties


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


class _Setting(PutAdapter):
    """A put of one setting of a bucket; deleting it puts the bucket's own default back."""

    identity = "{bucket}"
    replaces = frozenset({"bucket"})

    def delete(self, aws: Aws, existing: Existing) -> None:
        if self.deletion is not None:
            self.deletion(aws, existing.inputs["bucket"])


@adapts("s3/bucketVersioning:BucketVersioning")
class BucketVersioning(_Setting):
    """It can be suspended, and never taken away."""


@adapts("s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration")
class BucketEncryption(_Setting):
    deletion = CallById("s3", "delete_bucket_encryption", "Bucket")


@adapts("s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration")
class BucketLifecycle(_Setting):
    deletion = CallById("s3", "delete_bucket_lifecycle", "Bucket")


@adapts("s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
class BucketPublicAccessBlock(_Setting):
    deletion = CallById("s3", "delete_public_access_block", "Bucket")


@adapts("s3/bucketPolicy:BucketPolicy")
class BucketPolicy(_Setting):
    deletion = CallById("s3", "delete_bucket_policy", "Bucket")
