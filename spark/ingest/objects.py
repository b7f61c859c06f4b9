"""Opens files in Arrow: on this machine's disk, or in S3 with whatever rights its process has.

Commands and drivers list an export with it, and every worker reads its share through it. Apart
from the other files, since it needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO
from urllib.parse import urlsplit

import pyarrow.fs as pf  # type: ignore[import-untyped] # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped] # the same

from spark.file_systems import S3, file_system
from spark.ingest.files import version


def is_known(address: str) -> bool:
    """Say whether an address can be opened here: an absolute path, file:// or S3."""
    return address.startswith("/") or urlsplit(address).scheme in ("file", *S3)


def parquet(address: str, numbered: tuple[str, ...] = ()) -> pq.ParquetFile:
    """Open a Parquet file; of the columns named in `numbered` texts stay numbers of a dictionary.

    Raises OSError for what is not there or may not be read, ArrowException for what is no Parquet.
    """
    files, path = file_system(address)
    # Ranges of a row group are fetched together: S3 answers each in tens of milliseconds.
    is_far = not isinstance(files, pf.LocalFileSystem)
    opened = partial(pq.ParquetFile, path, filesystem=files, pre_buffer=is_far)
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
    files, path = file_system(address)
    with files.open_input_file(path) as stream:
        yield stream


class S3Files:
    """S3 without Hadoop, as spark.ingest.files.Files."""

    def below(self, folder: str, suffix: str) -> list[str]:
        return sorted(name for name in self.versions(folder) if name.endswith(suffix))

    def versions(self, place: str) -> dict[str, str]:
        files, path = file_system(place)
        selector = pf.FileSelector(path, recursive=True, allow_not_found=True)
        found = files.get_file_info([path] if self.is_file(place) else selector)
        return {
            f"s3://{info.path}": version(info.size, info.mtime_ns)
            for info in found
            if info.type == pf.FileType.File
        }

    def is_file(self, address: str) -> bool:
        return bool(_kind(address) == pf.FileType.File)

    def is_folder(self, address: str) -> bool:
        return bool(_kind(address) == pf.FileType.Directory)

    def read(self, address: str, limit: int | None = None) -> bytes:
        with opened(address) as stream:
            return stream.read() if limit is None else stream.read(limit)


def _kind(address: str) -> object:
    files, path = file_system(address)
    return files.get_file_info(path).type
