"""Lists and reads the small files of a delivery, on this machine's disk or in S3.

A bill's address is a path, or a URI (s3://, s3a://, file://). On EMR S3 is read with the job's role
and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from core.ground.errors import InvalidInput

_URI = re.compile(r"^[a-z][a-z0-9+.-]*://")
FILE = "file:/"
CHUNK_BYTES = 1 << 16
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
    from spark.ingest.objects import S3Files  # noqa: PLC0415 - needs pyarrow

    return S3Files()


def address_of(path: str | Path) -> str:
    """Return a bill's address: a URI as it is, a path as an absolute one."""
    written = str(path)
    if written.startswith(FILE):
        written = unquote(urlsplit(written).path)
    return written.rstrip("/") if _URI.match(written) else str(Path(written).resolve())


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
