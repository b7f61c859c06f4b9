"""The functions' zip: the same sources make the same bytes, on any machine, at any time.

It holds handlers/ and core/ (without cluster/, which needs pydantic) and the few pure-Python
distributions they import; boto3 comes with the Lambda runtime. Files are stored, not deflated:
compressors differ between machines, and a hash that changes redeploys every function.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.metadata
import io
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.cost.pricing import BROUGHT
from core.errors import MissingPrerequisite

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("core", "handlers")
LEFT_OUT = "core/cluster/"
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
    files = {name: path.read_bytes() for name, path in _our_files()}
    for distribution in DISTRIBUTIONS:
        files.update((name, path.read_bytes()) for name, path in _vendored_files(distribution))
    return files


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


def _vendored_files(distribution: str) -> Iterable[tuple[str, Path]]:
    try:
        files = importlib.metadata.distribution(distribution).files
    except importlib.metadata.PackageNotFoundError:
        files = None
    if files is None:
        raise MissingPrerequisite(
            f"The Python package {distribution} is part of the functions' zip but is not "
            f"installed; run `pip install -r requirements.txt` in the program's environment."
        )
    for file in files:
        if file.suffix in COMPILED:
            raise MissingPrerequisite(
                f"The Python package {distribution} ships compiled code ({file}), which fits one "
                f"processor only; install its pure-Python release and run again."
            )
        # Scripts are listed as ../../bin/name; the .dist-info beside a package has no code.
        if file.suffix in SUFFIXES and _runs(file.parts):
            yield file.as_posix(), Path(str(file.locate()))


def _runs(parts: tuple[str, ...]) -> bool:
    folder = parts[0]
    return ".." not in parts and not folder.endswith(".dist-info") and folder not in OBSOLETE
