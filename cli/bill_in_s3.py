"""Copies what a report is made from out of S3 to this machine, where its Spark can read it.

Spark's own package brings no S3 client; on EMR the release does, and reads the same addresses in
place. Of an export only what its newest manifests name is copied, of any other folder everything.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from cli.emr import below
from core.ground.errors import InvalidInput, StillwaterError, one_line
from spark.ingest import manifest
from spark.ingest.files import version
from spark.jobs import unread

if TYPE_CHECKING:
    from spark.tables import Store
    from spark.tag_keys import KafkaTags

SCHEMES = ("s3", "s3a")


def is_in_s3(address: str | None) -> bool:
    return address is not None and urlsplit(address).scheme in SCHEMES


class S3Files:
    """A bucket's objects as spark.ingest.files.Files has them."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3

    def below(self, folder: str, suffix: str) -> list[str]:
        return sorted(name for name in self._within(folder) if name.endswith(suffix))

    def versions(self, place: str) -> dict[str, str]:
        """Return what tells objects from others of their names, and their copies as well."""
        bucket, key = _parts(place)
        alone = [each for each in self._listed(bucket, key, most=1) if each["Key"] == key]
        found = {f"s3://{bucket}/{key}": each for each in alone} or self._within(place)
        return {
            address: version(each["Size"], _written_at_ns(each)) for address, each in found.items()
        }

    def is_file(self, address: str) -> bool:
        bucket, key = _parts(address)
        return any(each["Key"] == key for each in self._listed(bucket, key, most=1))

    def is_folder(self, address: str) -> bool:
        bucket, key = _parts(address)
        return any(True for _ in self._listed(bucket, f"{key}/", most=1))

    def read(self, address: str, limit: int | None = None) -> bytes:
        bucket, key = _parts(address)
        body = self._s3.get_object(Bucket=bucket, Key=key)["Body"]
        return bytes(body.read(limit))

    def copy(self, address: str, target: Path) -> None:
        bucket, key = _parts(address)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._s3.download_file(bucket, key, str(target))
        written_at_ns = _written_at_ns(self._s3.head_object(Bucket=bucket, Key=key))
        os.utime(target, ns=(written_at_ns, written_at_ns))

    def _within(self, folder: str) -> dict[str, Any]:
        bucket, key = _parts(folder)
        return {f"s3://{bucket}/{each['Key']}": each for each in self._listed(bucket, f"{key}/")}

    def _listed(self, bucket: str, prefix: str, most: int | None = None) -> Iterator[Any]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, PaginationConfig={"MaxItems": most}
        )
        return (each for page in pages for each in page.get("Contents", []))


def _written_at_ns(listed: Any) -> int:
    """Return an object's time in whole seconds, which is all that every answer of S3 has."""
    return int(listed["LastModified"].timestamp()) * 1_000_000_000


def copy_bill(s3: Any, address: str, folder: Path, months: Collection[str] = ()) -> Path:
    """Copy a bill, an export's newest deliveries or one file; return where it is now."""
    files, source = S3Files(s3), _plain(address)
    with reachable(address):
        if not files.is_folder(source):
            return _one_file(files, source, folder)
        export = manifest.pinned(files, source, months)
        for name in [*(month.manifest for month in export.months), *export.files]:
            _into(files, source, name, folder)
    return folder


def copy_everything(s3: Any, address: str, folder: Path) -> Path:
    """Copy one file, or all that stands below a folder; return where it is now."""
    files, source = S3Files(s3), _plain(address)
    with reachable(address):
        if not files.is_folder(source):
            return _one_file(files, source, folder)
        for name in files.below(source, ""):
            _into(files, source, name, folder)
    return folder


def months(s3: Any, address: str, month: str | None) -> list[str]:
    """Return the month asked for, or the newest, and, to compare it with, the one before.

    Of a bill that is one file none are named: it is read whole.
    """
    files = S3Files(s3)
    with reachable(address):
        is_export = files.is_folder(address)
        delivered = sorted(manifest.refreshes(files, _plain(address))[1]) if is_export else []
    if not delivered:
        return []
    asked = month or delivered[-1]
    try:
        before = f"{date.fromisoformat(f'{asked}-01') - timedelta(days=1):%Y-%m}"
    except ValueError:
        raise InvalidInput([f"--month {month} is no month; write YYYY-MM."]) from None
    if asked not in delivered:
        problem = f"The export {address} has no delivery of {asked}, only {', '.join(delivered)}."
        raise InvalidInput([problem])
    return [each for each in (before, asked) if each in delivered]


def months_to_copy(
    s3: Any, address: str, month: str | None, store: Store, kafka: KafkaTags
) -> tuple[list[str] | None, list[str]]:
    """Return which of the months that a report needs are to be copied, None for a bill as a whole.

    Beside them are those that are final and in the tables unchanged: they are read from there.
    """
    needed = months(s3, address, month)
    with reachable(address):
        again, kept = unread.of_files(S3Files(s3), _plain(address), store, kafka)
    if again is None or not needed:
        return again, kept
    return [each for each in needed if each in again], [each for each in kept if each in needed]


def existing_folder(s3: Any, folder: str | None) -> str | None:
    """Return a folder, or None for one that nothing is in yet."""
    if folder is None:
        return None
    with reachable(folder):
        return folder if S3Files(s3).is_folder(folder) else None


def _one_file(files: S3Files, source: str, folder: Path) -> Path:
    if not files.is_file(source):
        problem = f"There is nothing at {source}, neither an object nor anything below it."
        raise InvalidInput([problem])
    target = folder / source.rsplit("/", 1)[-1]
    files.copy(source, target)
    return target


def _into(files: S3Files, source: str, name: str, folder: Path) -> None:
    target = below(folder, name.removeprefix(f"{source}/"))
    if target is not None:
        files.copy(name, target)


def _plain(address: str) -> str:
    bucket, key = _parts(address)
    return f"s3://{bucket}/{key}"


def _parts(address: str) -> tuple[str, str]:
    split = urlsplit(address)
    return split.netloc, split.path.strip("/")


@contextmanager
def reachable(address: str) -> Iterator[None]:
    """Turn what S3 refuses into a sentence."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StillwaterError(
            f"{address} could not be read: {one_line(error)}. You need s3:ListBucket on the bucket "
            f"and s3:GetObject below that address."
        ) from None
