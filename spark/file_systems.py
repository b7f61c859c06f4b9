"""Opens the file system of an address in Arrow: this machine's, or S3 with its process's rights."""

from __future__ import annotations

import os
from functools import cache
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pf  # type: ignore[import-untyped] # ships no types

S3 = ("s3", "s3a", "s3n")


def file_system(address: str) -> tuple[pf.FileSystem, str]:
    """Return the file system of a path, or of a file:// or S3 address, and the path in it."""
    uri = urlsplit(address)
    if uri.scheme in S3:
        return _s3(uri.netloc), f"{uri.netloc}{uri.path}".rstrip("/")
    return pf.LocalFileSystem(use_mmap=True), unquote(uri.path) if uri.scheme else address


@cache
def _s3(bucket: str) -> pf.S3FileSystem:
    # Arrow reads AWS's other variables by itself, but not these.
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None and endpoint is None:
        region = pf.resolve_s3_region(bucket)
    return pf.S3FileSystem(region=region, endpoint_override=endpoint)
