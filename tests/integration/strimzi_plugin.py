"""Builds the plugin for Strimzi's operator (strimzi/) once per machine, and runs its tests.

It is compiled for what Strimzi's image runs on, so a machine without a JDK of that age has none.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from local.place import cache_directory
from local.tools.cache import making

SOURCES = Path(__file__).parents[2] / "strimzi"
JAR = "stillwater-gatekeeper.jar"
REPORTS = "surefire-reports"
BUILD_SECONDS = 600
OLDEST_JAVA = 21
INSTALLED = Path("/usr/lib/jvm")


def jdk() -> Path | None:
    """Return a JDK that is new enough: the one in JAVA_HOME, or another that is installed."""
    named = os.environ.get("JAVA_HOME")
    found = [Path(named)] if named else []
    if INSTALLED.is_dir():
        found += sorted(INSTALLED.iterdir())
    return next((each for each in found if _age(each) >= OLDEST_JAVA), None)


def _age(home: Path) -> int:
    """Return a JDK's feature release; 0 for what is none."""
    said = home / "release"
    if not (home / "bin" / "javac").exists() or not said.exists():
        return 0
    found = re.search(r'JAVA_VERSION="(\d+)', said.read_text())
    return int(found.group(1)) if found else 0


def home() -> Path:
    """Return where the plugin of these sources belongs, whether or not it has been built."""
    digest = hashlib.sha256()
    for source in sorted((SOURCES / "src").rglob("*")):
        if source.is_file():
            digest.update(f"{source.relative_to(SOURCES)}\n".encode() + source.read_bytes())
    digest.update((SOURCES / "pom.xml").read_bytes())
    return cache_directory() / "strimzi-plugin" / digest.hexdigest()[:12]


def build() -> None:
    """Build it and run its tests where this machine can; what they said is kept beside the jar."""
    java = jdk()
    if java is None or shutil.which("mvn") is None or home().is_dir():
        return
    try:
        with making(home(), lambda: None) as staging:
            if staging is not None:
                _build(java, staging)
    except subprocess.SubprocessError:
        return  # the test that needs it says so


def _build(java: Path, staging: Path) -> None:
    shutil.copytree(SOURCES / "src", staging / "src")
    shutil.copy(SOURCES / "pom.xml", staging)
    subprocess.run(
        ["mvn", "--quiet", "--batch-mode", "-Dmaven.test.failure.ignore=true", "package"],
        cwd=staging,
        env={**os.environ, "JAVA_HOME": str(java)},
        check=True,
        capture_output=True,
        timeout=BUILD_SECONDS,
    )
    shutil.move(staging / "target" / JAR, staging / JAR)
    shutil.move(staging / "target" / REPORTS, staging / REPORTS)
    shutil.rmtree(staging / "target")
    shutil.rmtree(staging / "src")
