"""Lists and reads the small files of a delivery, on this machine's disk or wherever Spark reaches.

A bill's address is a path, or a URI (s3://, s3a://, file://) that Spark's own Hadoop can open: on
EMR that is S3, with the job's role and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from core.ground.errors import InvalidInput, passed_on

_URI = re.compile(r"^[a-z][a-z0-9+.-]*://")
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


def files_of(session: SparkSession, address: str) -> Files:
    """Return the file system that an address belongs to.

    S3 is Hadoop's where Spark was given it, as on EMR; elsewhere Arrow reads it.
    """
    if not _URI.match(address):
        return LocalFiles()
    hadoop = HadoopFiles(session)
    if address.startswith("s3") and not hadoop.knows(address):
        try:
            from spark.ingest.objects import S3Files  # noqa: PLC0415 - needs pyarrow
        except ImportError:
            return hadoop
        return S3Files()
    return hadoop


def address_of(path: str | Path) -> str:
    """Return a bill's address: a URI as it is, a path as an absolute one."""
    written = str(path)
    return written.rstrip("/") if _URI.match(written) else str(Path(written).resolve())


def _address_as_typed(address: str) -> str:
    """Return an address as a user writes it: Hadoop says file:/folder for file:///folder."""
    return re.sub(r"^file:/(?!/)", "file:///", address)


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


class HadoopFiles:
    """Whatever file system Spark's Hadoop knows by the address's scheme."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session._jvm  # noqa: SLF001 - pyspark has no other way to Hadoop's files
        context: Any = session._jsc  # noqa: SLF001 - the same
        self._jvm, self._configuration = jvm, context.hadoopConfiguration()

    def knows(self, address: str) -> bool:
        """Say whether there is a file system for an address's scheme at all."""
        scheme = address.split(":", 1)[0]
        try:
            kind = self._jvm.org.apache.hadoop.fs.FileSystem
            kind.getFileSystemClass(scheme, self._configuration)
        except Py4JJavaError:
            return False
        return True

    def below(self, folder: str, suffix: str) -> list[str]:
        found = self.versions(folder) if self.is_folder(folder) else {}
        return sorted(name for name in found if name.endswith(suffix))

    def versions(self, place: str) -> dict[str, str]:
        found = {}
        statuses = self._system(place).listFiles(self._path(place), True)  # noqa: FBT003 - Java's
        while statuses.hasNext():
            status = statuses.next()
            written_at_ns = int(status.getModificationTime()) * 1_000_000
            name = _address_as_typed(str(status.getPath().toString()))
            found[name] = version(int(status.getLen()), written_at_ns)
        return found

    def is_file(self, address: str) -> bool:
        system, path = self._system(address), self._path(address)
        return bool(system.exists(path)) and bool(system.getFileStatus(path).isFile())

    def is_folder(self, address: str) -> bool:
        system, path = self._system(address), self._path(address)
        return bool(system.exists(path)) and bool(system.getFileStatus(path).isDirectory())

    def read(self, address: str, limit: int | None = None) -> bytes:
        stream = self._system(address).open(self._path(address))
        try:
            if limit is None:
                return bytes(stream.readAllBytes())
            return bytes(stream.readNBytes(limit))
        finally:
            stream.close()

    def unzip(self, address: str, folder: str) -> list[str]:
        """Write every csv in a zip archive below a folder, without holding one in memory."""
        archive = self._jvm.java.util.zip.ZipInputStream(
            self._system(address).open(self._path(address))
        )
        targets: list[str] = []
        try:
            while (entry := archive.getNextEntry()) is not None:
                name = str(entry.getName())
                # A Mac puts a file of its own beside each.
                if not name.lower().endswith(".csv") or name.startswith("__MACOSX/"):
                    continue
                target = f"{folder}/{len(targets):05d}.csv"
                sink = self._system(target).create(self._path(target))
                self._jvm.org.apache.hadoop.io.IOUtils.copyBytes(archive, sink, CHUNK_BYTES, False)  # noqa: FBT003
                sink.close()
                targets.append(target)
        finally:
            archive.close()
        if not targets:
            raise InvalidInput(
                [f"{address} is not a zip archive, or holds no csv file; copy it again."]
            )
        return targets

    def _path(self, address: str) -> Any:
        path = self._jvm.org.apache.hadoop.fs.Path
        # A path of this machine may hold a colon, which Hadoop would take for a scheme.
        return path(address) if _URI.match(address) else path(Path(address).as_uri())

    def _system(self, address: str) -> Any:
        try:
            return self._path(address).getFileSystem(self._configuration)
        except Py4JJavaError as error:
            ours = f"Spark cannot reach {address}; see its spelling, or copy it to this machine."
            raise InvalidInput([passed_on(ours, error.java_exception.toString())]) from None
