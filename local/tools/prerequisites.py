"""Checks what a machine must have before anything is built: one sentence per thing missing."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from core.ground.errors import MissingPrerequisite

# The oldest engine that runs the program; a newer one of the user's own is preferred.
OLDEST_PULUMI = (3, 220)


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A program, how it tells its version, the oldest that works and where to get it."""

    name: str
    command: tuple[str, ...]
    version: re.Pattern[str]
    oldest: tuple[int, ...]
    remedy: str


PREREQUISITES = (
    Prerequisite(
        "Go",
        ("go", "version"),
        re.compile(r"go version go(\d+(?:\.\d+)*)"),
        (1, 25),
        "install it from https://go.dev/dl/ and put its bin folder on the PATH",
    ),
    Prerequisite(
        "Java",
        ("java", "-version"),
        re.compile(r'version "(\d+(?:\.\d+)*)'),
        (17,),
        "install a JDK, for example `apt install openjdk-17-jdk-headless` or https://adoptium.net",
    ),
    Prerequisite(
        "Maven",
        ("mvn", "--batch-mode", "-version"),
        re.compile(r"Apache Maven (\d+(?:\.\d+)*)"),
        (3, 6),
        "install it, for example `apt install maven` or https://maven.apache.org/download.cgi",
    ),
)
OLDEST_PYTHON = (3, 11)

Run = Callable[[tuple[str, ...]], str | None]


def numbers(version: str) -> tuple[int, ...]:
    """Return a version as numbers that compare: 1.26.8 -> (1, 26, 8)."""
    return tuple(int(part) for part in version.split("."))


def program_output(command: tuple[str, ...]) -> str | None:
    """Return all that a program prints, or None when it cannot be run."""
    if shutil.which(command[0]) is None:
        return None
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true", "GOTOOLCHAIN": "local"},
    )
    return result.stdout + result.stderr


def check_prerequisites(run: Run = program_output) -> list[str]:
    """Return one sentence per prerequisite that is absent or too old; empty when all is well."""
    problems = [problem for wanted in PREREQUISITES if (problem := _problem(wanted, run))]
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(str(part) for part in sys.version_info[:3])
        problems.append(
            f"Python {_version_text(OLDEST_PYTHON)} or newer is needed and this is {found}: "
            f"install it from https://www.python.org/downloads/ and make the virtual environment "
            f"again."
        )
    return problems


def require(*names: str, run: Run = program_output) -> None:
    """Raise MissingPrerequisite unless the named programs (all, without names) are there."""
    wanted = [p for p in PREREQUISITES if not names or p.name in names]
    problems = [problem for one in wanted if (problem := _problem(one, run))]
    if problems:
        raise MissingPrerequisite("\n".join(problems))


@functools.cache
def own_pulumi() -> str | None:
    """Return the user's own Pulumi CLI when it is new enough to run the program."""
    path = shutil.which("pulumi")
    if path is None:
        return None
    found = re.search(r"v?(\d+\.\d+\.\d+)", program_output((path, "version")) or "")
    return path if found and numbers(found.group(1)) >= OLDEST_PULUMI else None


def _problem(wanted: Prerequisite, run: Run) -> str | None:
    oldest = _version_text(wanted.oldest)
    output = run(wanted.command)
    if output is None:
        return (
            f"{wanted.name} {oldest} or newer is needed and no `{wanted.command[0]}` is on the "
            f"PATH: {wanted.remedy}."
        )
    found = wanted.version.search(output)
    if found is None:
        return (
            f"{wanted.name} {oldest} or newer is needed and `{' '.join(wanted.command)}` does not "
            f"tell its version: {wanted.remedy}."
        )
    if numbers(found.group(1)) < wanted.oldest:
        return (
            f"{wanted.name} {oldest} or newer is needed and the PATH has {found.group(1)}: "
            f"{wanted.remedy}."
        )
    return None


def _version_text(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
