"""Packs what EMR runs: the Spark jobs as a zip, and the wheels that its Python needs beside Spark.

The same sources make the same bytes, on any machine, at any time. The zip holds spark/ and core/
(without cluster/, which needs pydantic) and is pure Python; EMR takes it by --py-files. pip fetches
the wheels, pinned by hash: with pyarrow, numpy and pandas the workers add a bill up in columns
(spark.ingest.arrow). A wheel is a zip that any Spark unpacks, so it goes to the bucket as it was
published.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from core.ground.errors import StillwaterError
from infra.functions.packaging import (
    LEFT_OUT,
    ROOT,
    SUFFIXES,
    archive,
    cache_directory,
    own_price_file,
)
from infra.versions import EMR_ARCHITECTURE, EMR_PYTHON

# Spark puts .zip, .egg and .jar on the path of workers; a .whl only the driver would find.
NAME = "stillwater-jobs-0.1.0.zip"
SOURCES = ("core", "spark")
# What spark-submit runs; everything else is in the zip.
LAUNCHER = "from spark.entry import main\n\nmain()\n"


def build(directory: Path | None = None, *, own_prices: Path | None = None) -> Path:
    """Write the zip into a folder named by its content, unless it is there; return its path.

    `own_prices` is the price file of the directory that is built from.
    """
    content = archive(_contents(own_prices))
    digest = hashlib.sha256(content).hexdigest()[:16]
    target = (directory or cache_directory().with_name("jobs")) / digest / NAME
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(f".{hashlib.sha256(str(id(content)).encode()).hexdigest()[:8]}")
        part.write_bytes(content)
        part.replace(target)
    return target


def _contents(own_prices: Path | None) -> dict[str, bytes]:
    files = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for package in SOURCES
        for path in (ROOT / package).rglob("*")
        if path.suffix in SUFFIXES
    }
    files = {name: data for name, data in files.items() if not name.startswith(LEFT_OUT)}
    return {**files, **own_price_file(own_prices)}


# `make lock` writes it: hashes, no addresses. Where packages come from is pip's own setting.
REQUIREMENTS = Path(__file__).with_name("emr-requirements.txt")
# Where no EMR reads them, as in the twin: `never`.
SWITCH, NEVER = "STILLWATER_EMR_WHEELS", "never"
# EMR's images are Amazon Linux 2023, with glibc 2.34.
_GLIBC = ("2_34", "2_28", "2_27", "2_17")
_MACHINE = {"ARM64": "aarch64", "X86_64": "x86_64"}[EMR_ARCHITECTURE]
FETCH_SECONDS = 300
WITHOUT = (
    "Reports on EMR read bills line by line, several times slower, until `stillwater up` runs "
    "where pip finds them."
)
REASON_CHARACTERS = 300


class WheelsNotFetched(StillwaterError):
    """Says why there are no wheels; the job runs without them, by the slower reader."""


def fetch_wheels(directory: Path | None = None) -> Mapping[str, Path]:
    """Return the wheels by their packages' names, from the cache or by pip.

    Each stands in a folder named by its content. None are returned where SWITCH says so. Raises
    WheelsNotFetched, and then nothing is kept of what pip may have fetched.
    """
    if os.environ.get(SWITCH) == NEVER:
        return {}
    root = directory or cache_directory().with_name("emr-wheels")
    target = root / _digest(REQUIREMENTS.read_bytes() + " ".join(_pip_target()).encode())
    try:
        if not target.is_dir():
            root.mkdir(parents=True, exist_ok=True)
            _fetch(root, target)
        found = {path.name.partition("-")[0]: path for path in target.glob("*/*.whl")}
        return dict(sorted(found.items()))
    except OSError as error:
        problem = f"The wheels for EMR's Python cannot be kept in {root} ({error.strerror})."
        raise WheelsNotFetched(problem) from None


def _fetch(root: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetched-", dir=root) as scratch:
        _download(Path(scratch))
        made = Path(scratch) / "wheels"
        for wheel in sorted(Path(scratch).glob("*.whl")):
            folder = made / _digest(wheel.read_bytes())
            folder.mkdir(parents=True)
            wheel.rename(folder / wheel.name)
        # Whole or not at all; another program may have been as quick.
        if not target.is_dir():
            made.rename(target)


def _download(folder: Path) -> None:
    command = [
        *(sys.executable, "-m", "pip", "download", "--dest", str(folder)),
        *("--requirement", str(REQUIREMENTS), "--require-hashes", "--no-deps"),
        *("--only-binary", ":all:", *_pip_target()),
        *("--quiet", "--no-input", "--disable-pip-version-check", "--retries", "2"),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        reason = f"pip took longer than {FETCH_SECONDS} s"
    else:
        if done.returncode == 0:
            return
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR: ")]
        said = (errors or lines or ["pip gave no reason"])[-1]
        reason = said.removeprefix("ERROR: ").rstrip(".")[:REASON_CHARACTERS]
    raise WheelsNotFetched(
        f"pip did not fetch pyarrow, numpy and pandas for EMR's Python {EMR_PYTHON} on {_MACHINE}: "
        f"{reason}."
    )


def _pip_target() -> Sequence[str]:
    platforms = (f"manylinux_{glibc}_{_MACHINE}" for glibc in _GLIBC)
    return (
        *("--implementation", "cp", "--python-version", EMR_PYTHON),
        *(word for platform in platforms for word in ("--platform", platform)),
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
