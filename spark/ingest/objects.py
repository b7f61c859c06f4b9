"""Opens files in Arrow: on this machine's disk, or in S3 with whatever rights its process has.

Commands and drivers list an export with it, and every worker reads its share through it. Apart
from the other files, since it needs pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pf  # type: ignore[import-untyped] # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped] # the same

from spark.ingest.files import version

S3 = ("s3", "s3a", "s3n")


def is_known(address: str) -> bool:
    """Say whether an address can be opened here: an absolute path, file:// or S3."""
    return address.startswith("/") or urlsplit(address).scheme in ("file", *S3)


def parquet(address: str, numbered: tuple[str, ...] = ()) -> pq.ParquetFile:
    """Open a Parquet file; of the columns named in `numbered` texts stay numbers of a dictionary.

    Raises OSError for what is not there or may not be read, ArrowException for what is no Parquet.
    """
    uri = urlsplit(address)
    if uri.scheme in S3:
        # Ranges of a row group are fetched together: S3 answers each in tens of milliseconds.
        path = f"{uri.netloc}{uri.path}"
        opened = partial(pq.ParquetFile, path, filesystem=_s3(uri.netloc), pre_buffer=True)
    else:
        path = uri.path if uri.scheme else address
        opened = partial(pq.ParquetFile, path, memory_map=True)
    try:
        return opened(read_dictionary=list(numbered))
    except KeyError:
        # Other months' files have a column that this one lacks, or a map's parts by other names.
        found = opened().metadata
        there = {found.schema.column(number).path for number in range(found.num_columns)}
        return opened(read_dictionary=[name for name in numbered if name in there])


@contextmanager
def opened(address: str) -> Iterator[IO[bytes]]:
    """Yield a file's bytes, which can be looked up at any place."""
    uri = urlsplit(address)
    if uri.scheme in S3:
        with _s3(uri.netloc).open_input_file(f"{uri.netloc}{uri.path}") as stream:
            yield stream
    else:
        with Path(unquote(uri.path) if uri.scheme else address).open("rb") as stream:
            yield stream


class S3Files:
    """S3 without Hadoop, as spark.ingest.files.Files."""

    def below(self, folder: str, suffix: str) -> list[str]:
        return sorted(name for name in self.versions(folder) if name.endswith(suffix))

    def versions(self, place: str) -> dict[str, str]:
        selector = pf.FileSelector(_path(place), recursive=True, allow_not_found=True)
        asked = [_path(place)] if self.is_file(place) else selector
        return {
            f"s3://{info.path}": version(info.size, info.mtime_ns)
            for info in self._system(place).get_file_info(asked)
            if info.type == pf.FileType.File
        }

    def is_file(self, address: str) -> bool:
        return bool(self._kind(address) == pf.FileType.File)

    def is_folder(self, address: str) -> bool:
        return bool(self._kind(address) == pf.FileType.Directory)

    def read(self, address: str, limit: int | None = None) -> bytes:
        with self._system(address).open_input_file(_path(address)) as stream:
            return bytes(stream.read() if limit is None else stream.read(limit))

    def _kind(self, address: str) -> object:
        return self._system(address).get_file_info(_path(address)).type

    def _system(self, address: str) -> pf.S3FileSystem:
        return _s3(urlsplit(address).netloc)


def _path(address: str) -> str:
    uri = urlsplit(address)
    return f"{uri.netloc}{uri.path}".rstrip("/")


@cache
def _s3(bucket: str) -> pf.S3FileSystem:
    # Arrow reads AWS's other variables by itself, but not these.
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None and endpoint is None:
        region = pf.resolve_s3_region(bucket)
    return pf.S3FileSystem(region=region, endpoint_override=endpoint)
