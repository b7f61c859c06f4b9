"""The Spark jobs as a zip: the same sources make the same bytes, on any machine, at any time.

It holds spark/ and core/ (without cluster/, which needs pydantic), is pure Python, and needs no
package that Spark does not bring. EMR takes it by --py-files.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from infra.functions.packaging import (
    LEFT_OUT,
    ROOT,
    SUFFIXES,
    archive,
    cache_directory,
    own_price_file,
)

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
