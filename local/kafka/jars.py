"""Fetches the jars Kafka runs on, with Maven, once, into the per-user cache.

The key holds the pom and the Java that runs them, because the class archive beside the jars
(local.kafka.classes) is good for that Java alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

from core.ground.errors import StillwaterError
from local.kafka import classes
from local.place import cache_directory
from local.processes import Processes
from local.tools import prerequisites
from local.tools.build import OnProgress, Progress, ignore_progress, making

POM = Path(__file__).with_name("pom.xml")
NAME = "kafka"
ESTIMATE_SECONDS = 15 + classes.ESTIMATE_SECONDS


def version() -> str:
    """Return the Kafka version that the pom pins."""
    pinned = re.search(r"<kafka\.version>([^<]+)</kafka\.version>", POM.read_text())
    if pinned is None:
        raise StillwaterError(
            f"{POM} names no kafka.version; restore the file from the repository."
        )
    return pinned.group(1)


def home() -> Path:
    """Return where the jars of this pom belong, whether or not they are there yet."""
    java = shutil.which("java")
    built = Path(java).stat().st_mtime_ns if java else 0
    digest = hashlib.sha256(POM.read_bytes() + f"{os.path.realpath(java or '')} {built}".encode())
    return cache_directory() / NAME / f"{version()}-{digest.hexdigest()[:12]}"


def are_fetched() -> bool:
    """Say whether `fetch` has nothing left to do."""
    return home().is_dir() and classes.archive(home()).exists()


def directory() -> Path:
    """Return the folder of jars; raise StillwaterError when it has not been fetched yet."""
    if not home().is_dir():
        raise StillwaterError(
            f"Kafka's jars have not been fetched yet (looked at {home()}); run "
            f"`python -m local setup`."
        )
    return home()


def fetch(on_progress: OnProgress = ignore_progress) -> Path:
    """Fetch the jars and record their classes unless that is done; return the jars' folder.

    Raises MissingPrerequisite without Java or Maven, StillwaterError when Maven fails.
    """
    if are_fetched():
        on_progress(Progress(NAME, version(), "cached"))
        return home()
    prerequisites.require("Java", "Maven")
    on_progress(Progress(NAME, version(), "building", ESTIMATE_SECONDS))
    started = time.monotonic()
    waiting = Progress(NAME, version(), "waiting")
    with making(home(), lambda: on_progress(waiting)) as staging:
        if staging is not None:
            copy_dependencies(POM, staging, "Kafka's jars")
    if not are_fetched():  # recorded where the jars stay: an archive knows their paths
        with tempfile.TemporaryDirectory(dir=home().parent, prefix=".classes.") as work:
            classes.record(home(), Path(work), ".".join(version().split(".")[:2]))
    seconds = time.monotonic() - started
    on_progress(Progress(NAME, version(), "built", ESTIMATE_SECONDS, seconds))
    return home()


def copy_dependencies(pom: Path, target: Path, what: str, *options: str) -> None:
    """Let Maven copy what a pom names; it finds its repositories in the user's own settings."""
    work = target / "work"
    processes = Processes(work / "pids", work / "logs")
    try:
        child = processes.start(
            "maven",
            [
                *("mvn", "--quiet", "--batch-mode", "--file", str(pom), *options),
                *("dependency:copy-dependencies", f"-DoutputDirectory={target}"),
            ],
            directory=pom.parent,
        )
        code = child.popen.wait()
        if code != 0 or not any(target.glob("*.jar")):
            raise StillwaterError(
                f"{what} could not be fetched: `mvn` ended with exit code {code}. Its last "
                f"lines:\n{child.tail()}\nIf they are about downloads, check the network or the "
                f"mirrors in Maven's settings.xml, and try again."
            )
    finally:
        processes.close()
    shutil.rmtree(work, ignore_errors=True)
