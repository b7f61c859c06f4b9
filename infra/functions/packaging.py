"""The functions' zip: the same sources make the same bytes, on any machine, at any time.

It holds handlers/ and core/ (without cluster/, which needs pydantic) and the few pure-Python
distributions they import, which are those of the hashed lock: a release brings them, made of wheels
that pip has compared with it, and in a checkout what is installed must be what the lock names.
boto3 comes with the Lambda runtime. Files are stored, not deflated: compressors differ between
machines, and a hash that changes redeploys every function.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.metadata
import io
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from core.cost.pricing import BROUGHT
from core.ground.errors import MissingPrerequisite

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("core", "handlers")
LEFT_OUT = "core/cluster/"
LOCK = ROOT / "requirements.txt"
# In a release alone (.ci/release): the distributions' files as they go into the zip.
BROUGHT_ALONG = Path(__file__).with_name("distributions.zip")
# Old names that distributions keep beside what is used.
OBSOLETE = frozenset({"slack"})
DISTRIBUTIONS = (
    "aws-lambda-powertools",
    "jmespath",
    "kafka-python",
    "slack-sdk",
    "typing_extensions",
    "urllib3",
)
# Everything else a distribution ships (type stubs, swagger pages, its own records) never runs.
SUFFIXES = frozenset({".py", ".json"})
COMPILED = frozenset({".so", ".pyd", ".dylib"})
# The earliest time a zip can say.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
UNIX = 3
KEPT_SECONDS = 7 * 24 * 3600
READABLE = 0o100644 << 16


@dataclass(frozen=True, slots=True)
class FunctionPackage:
    """A zip on disk, named after its content, and its hash as Lambda writes it."""

    path: Path
    source_code_hash: str


def cache_directory() -> Path:
    """Return where zips are kept: outside the tree, per user."""
    chosen = os.environ.get("STILLWATER_CACHE")
    if chosen:
        return Path(chosen) / "functions"
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "stillwater" / "functions"


def build(directory: Path | None = None, *, own_prices: Path | None = None) -> FunctionPackage:
    """Write the functions' zip unless the very same one is there already.

    `own_prices` is the price file of the directory that is built from, for those who reckon.
    """
    content = archive({**contents(), **own_price_file(own_prices)})
    digest = hashlib.sha256(content)
    target = (directory or cache_directory()) / f"{digest.hexdigest()}.zip"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        # Two programs may build at once; neither may see half a file.
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=".part")
        with os.fdopen(handle, "wb") as part:
            part.write(content)
        Path(name).replace(target)
        _forget_others(target)
    return FunctionPackage(target, base64.b64encode(digest.digest()).decode())


def _forget_others(newest: Path) -> None:
    """Remove zips nobody can still be deploying: every change of a source makes another."""
    for zipped in newest.parent.glob("*.zip"):
        with contextlib.suppress(FileNotFoundError):
            if newest.stat().st_mtime - zipped.stat().st_mtime > KEPT_SECONDS:
                zipped.unlink()


def contents() -> dict[str, bytes]:
    """Return every file of the zip by its name in it."""
    return {**{name: path.read_bytes() for name, path in _our_files()}, **_their_files()}


def _their_files() -> dict[str, bytes]:
    if BROUGHT_ALONG.exists():
        with zipfile.ZipFile(BROUGHT_ALONG) as brought:
            return {name: brought.read(name) for name in brought.namelist()}
    wanted = locked_versions(LOCK.read_text())
    return {
        name: content
        for distribution in DISTRIBUTIONS
        for name, content in _installed_files(distribution, wanted)
    }


def locked_versions(lock: str) -> dict[str, str]:
    """Return the version of each distribution that a lock names."""
    return {
        _plain(name): version
        for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)
    }


def bring_along(wheels: Path, target: Path) -> None:
    """Write the distributions' files for a release, from wheels that pip has checked by hash."""
    files: dict[str, bytes] = {}
    found = {_plain(path.name.partition("-")[0]): path for path in wheels.glob("*.whl")}
    for distribution in DISTRIBUTIONS:
        with zipfile.ZipFile(found[_plain(distribution)]) as wheel:
            for name in wheel.namelist():
                if _belongs(distribution, PurePosixPath(name)):
                    files[name] = wheel.read(name)
    target.write_bytes(archive(files))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def own_price_file(own_prices: Path | None) -> dict[str, bytes]:
    """Return a directory's own price file under the name by which core.cost.pricing finds it."""
    if own_prices is None:
        return {}
    return {BROUGHT.relative_to(ROOT).as_posix(): own_prices.read_bytes()}


def archive(files: Mapping[str, bytes]) -> bytes:
    """Zip files in the order of their names, with nothing of this machine or moment in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as target:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, TIMESTAMP)
            entry.create_system = UNIX
            entry.external_attr = READABLE
            target.writestr(entry, files[name])
    return buffer.getvalue()


def _our_files() -> Iterable[tuple[str, Path]]:
    for package in SOURCES:
        for path in (ROOT / package).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in SUFFIXES and not name.startswith(LEFT_OUT):
                yield name, path


def _installed_files(distribution: str, wanted: Mapping[str, str]) -> Iterable[tuple[str, bytes]]:
    try:
        installed = importlib.metadata.distribution(distribution)
        files = installed.files
    except importlib.metadata.PackageNotFoundError:
        files = None
    if files is None:
        raise MissingPrerequisite(
            f"The Python package {distribution} is part of the functions' zip but is not "
            f"installed; {_REMEDY}"
        )
    if installed.version != (locked := wanted[_plain(distribution)]):
        raise MissingPrerequisite(
            f"The Python package {distribution} is installed as {installed.version}, and the lock "
            f"names {locked}: the functions' zip is made of that alone; {_REMEDY}"
        )
    for file in files:
        if not _belongs(distribution, file):
            continue
        content = Path(str(file.locate())).read_bytes()
        if file.hash is None or file.hash.value != _recorded_hash(file.hash.mode, content):
            raise MissingPrerequisite(
                f"{file} of the Python package {distribution} is not as it was installed; {_REMEDY}"
            )
        yield file.as_posix(), content


_REMEDY = "run `pip install --require-hashes -r requirements.txt` in the program's environment."


def _recorded_hash(mode: str, content: bytes) -> str:
    """Return a file's hash as an installation's RECORD writes it."""
    return base64.urlsafe_b64encode(hashlib.new(mode, content).digest()).decode().rstrip("=")


def _belongs(distribution: str, file: PurePosixPath) -> bool:
    """Say whether a file goes into the zip: scripts, and what is beside a package, do not."""
    if file.suffix in COMPILED:
        raise MissingPrerequisite(
            f"The Python package {distribution} ships compiled code ({file}), which fits one "
            f"processor only; install its pure-Python release and run again."
        )
    folder = file.parts[0]
    beside = ".." in file.parts or folder.endswith((".dist-info", ".data")) or folder in OBSOLETE
    return not beside and file.suffix in SUFFIXES


if __name__ == "__main__":
    bring_along(Path(sys.argv[1]), Path(sys.argv[2]))
