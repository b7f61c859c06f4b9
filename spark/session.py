"""Says what a job needs of the cluster it runs on: its session's settings, and Python packages.

Packages that a job brings are archives, each unpacked into a folder, and are made importable here.
They are for one Python. Spark imports numpy wherever it finds one, and a job whose numpy is for
another Python ends there: what this Python cannot import must not be on any path, so paths are
made here, at the start of a job, and not by its settings.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession
from pyspark.sql.pandas.utils import (
    require_minimum_pandas_version,
    require_minimum_pyarrow_version,
)

from core.ground import naming

CONVENTIONS = {
    "spark.sql.session.timeZone": "UTC",
    # A number too large for its type is an error, never another number.
    "spark.sql.ansi.enabled": "true",
}
# Starts a session, or returns the one that there is.
Start = Callable[[], SparkSession]
# Returns the session that adds up a bill of about so many lines, or None for this process.
Engine = Callable[[int], SparkSession | None]
# Of fewer lines one process has added a bill up before Spark's workers would have started.
LINES_HERE = 20_000_000


def engine_of(start: Start) -> Engine:
    """Return the engine that starts Spark for bills that are too large for one process."""
    return lambda lines: None if lines < LINES_HERE else start()


ARCHIVES = "spark.archives"
# What adds a bill up in columns; the others that come are what these need.
NEEDED = ("numpy", "pandas", "pyarrow")
PATH = "PYTHONPATH"
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
REMEDY = (
    "on EMR Serverless `stillwater up` brings them, from a machine whose pip finds them; another "
    "cluster's Python needs them installed"
)
LACKING = f"The job's Python {{python}} lacks pyarrow, numpy or pandas ({{error}}): {REMEDY}."


def add_packages(start: Callable[[], SparkSession]) -> None:
    """Put a job's packages on the path of its driver and of the workers that it starts from now on.

    Where one of them cannot be imported none is there, and nothing is changed; nor is it where this
    Python has all of its own that Spark accepts, and Spark does not start for it.
    """
    if has_own():
        return
    context = start().sparkContext
    names = folders(context.getConf().get(ARCHIVES, ""), PYTHON)
    # Spark unpacks them here, and a driver that runs on the cluster starts beside them.
    roots = (Path(SparkFiles.getRootDirectory()), Path.cwd())
    if not names or not importable(names, roots):
        return
    # Workers start where their executor unpacked them.
    path = [f"./{name}" for name in names]
    before = context.environment.get(PATH)
    context.environment[PATH] = os.pathsep.join([*path, before] if before else path)


def has_own() -> bool:
    """Say whether this Python has what is needed without the job's packages."""
    try:
        importlib.import_module("numpy")
        require_minimum_pandas_version()
        require_minimum_pyarrow_version()
    except ImportError:
        return False
    return True


def folders(archives: str, python: str) -> list[str]:
    """Return the folders of those archives that hold a package for this version of Python.

    An archive is written ADDRESS#FOLDER (spark.archives), a package's folder as
    core.ground.naming does.
    """
    found = (archive.rpartition("#")[2].strip() for archive in archives.split(","))
    return [folder for folder in found if naming.is_package_folder(folder, python)]


def importable(names: Sequence[str], roots: Sequence[Path]) -> bool:
    """Import what is needed from where the folders are unpacked; say whether all of it could be."""
    places = [
        next((root / folder for root in roots if (root / folder).is_dir()), None)
        for folder in names
    ]
    if None in places:
        return False
    added = [str(place) for place in places]
    sys.path[:0] = added
    try:
        for package in NEEDED:
            importlib.import_module(package)
    except ImportError:
        sys.path[:] = [entry for entry in sys.path if entry not in added]
        importlib.invalidate_caches()
        return False
    return True
