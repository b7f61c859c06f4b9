"""Lists, reads and opens files, on this machine's disk or in S3 with its process's rights.

An address is a path, or a URI (s3://, s3a://, file://). Commands and drivers list a delivery, and
every worker opens its share of it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pf  # type: ignore[import-untyped] # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped] # the same

from core.ground.errors import InvalidInput

S3 = ("s3", "s3a", "s3n")
_URI = re.compile(r"^[a-z][a-z0-9+.-]*://")
FILE = "file:/"
FINGERPRINT_DIGITS = 16


class Files(Protocol):
    """What ingest needs of a file system."""

    def below(self, folder: str, suffix: str) -> list[str]:
        """Return the addresses of the files below a folder whose names end so, in order."""
        ...

    def versions(self, place: str) -> Mapping[str, str]:
        """Return, of one file or of all below a folder, what tells each from another of its name.

        That is its size, and when it was written.
        """
        ...

    def is_file(self, address: str) -> bool: ...
    def is_folder(self, address: str) -> bool: ...
    def read(self, address: str, limit: int | None = None) -> bytes:
        """Return a file's first bytes, or all of them."""
        ...


def fingerprint(versions: Mapping[str, str], place: str, addresses: Iterable[str]) -> str:
    """Return what tells these files, all of one place, from others of their names.

    Empty where one of them is gone. The place itself does not count: a copy that keeps its files'
    times is the same.
    """
    lines = []
    for address in sorted(addresses):
        if address not in versions:
            return ""
        lines.append(f"{address.removeprefix(place)} {versions[address]}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:FINGERPRINT_DIGITS]


def version(size_bytes: int, written_at_ns: int) -> str:
    """Return what tells a file from another of its name, alike for every file system."""
    return f"{size_bytes}-{written_at_ns}"


def files_of(address: str) -> Files:
    """Return the file system of an address: this machine's, or S3 as Arrow reads it."""
    if not _URI.match(address):
        return LocalFiles()
    if not address.startswith("s3"):
        problem = f"{address} is neither a path of this machine nor in S3; copy it to one of them."
        raise InvalidInput([problem])
    return S3Files()


def address_of(path: str | Path) -> str:
    """Return a bill's address: a URI as it is, a path as an absolute one."""
    written = str(path)
    if written.startswith(FILE):
        written = unquote(urlsplit(written).path)
    return written.rstrip("/") if _URI.match(written) else str(Path(written).resolve())


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


def _real(place: str, name: str) -> str:
    return os.path.realpath(f"{place}/{name}")


class LocalFiles:
    """This machine's disk."""

    def below(self, folder: str, suffix: str) -> list[str]:
        """Follow links as well, and each folder once: one may lead back to where it stands."""
        found, seen = [], {os.path.realpath(folder)}
        for place, folders, names in os.walk(folder, followlinks=True):
            apart = [each for each in folders if _real(place, each) not in seen]
            seen.update(_real(place, each) for each in apart)
            folders[:] = apart
            found += [f"{place}/{name}" for name in names if name.endswith(suffix)]
        return sorted(path for path in found if Path(path).is_file())

    def versions(self, place: str) -> dict[str, str]:
        found = [place] if self.is_file(place) else self.below(place, "")
        known = {path: Path(path).stat() for path in found}
        return {path: version(stat.st_size, stat.st_mtime_ns) for path, stat in known.items()}

    def is_file(self, address: str) -> bool:
        return Path(address).is_file()

    def is_folder(self, address: str) -> bool:
        return Path(address).is_dir()

    def read(self, address: str, limit: int | None = None) -> bytes:
        with Path(address).open("rb") as stream:
            return stream.read() if limit is None else stream.read(limit)


class S3Files:
    """S3 as Arrow reads it."""

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
