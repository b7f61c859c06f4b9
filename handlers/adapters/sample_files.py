"""The folder of a bucket that holds samples, where the report's job looks for them."""

from __future__ import annotations

from collections.abc import Collection

import boto3

from core.ground.naming import SAMPLES_FOLDER
from handlers.adapters.calls import CLIENT


class S3SampleFiles:
    """A folder of one S3 bucket."""

    def __init__(self, bucket: str, region: str) -> None:
        self._bucket = bucket
        self._s3 = boto3.client("s3", region_name=region, config=CLIENT)

    def after(self, name: str) -> Collection[str]:
        """Return the names of files that come after a name."""
        folder = f"{SAMPLES_FOLDER}/"
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=folder, StartAfter=f"{folder}{name}"
        )
        return {
            entry["Key"].removeprefix(folder)
            for page in pages
            for entry in page.get("Contents", ())
        }

    def store(self, name: str, content: bytes) -> None:
        """Write one file; the same name again replaces it."""
        self._s3.put_object(
            Bucket=self._bucket,
            Key=f"{SAMPLES_FOLDER}/{name}",
            Body=content,
            ContentType="application/gzip",
        )
