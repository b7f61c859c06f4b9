"""Builds the twin's programs once, into the per-user cache, never into the tree.

A tool's directory appears in one rename when everything in it is there. A build that is interrupted
leaves no compiler running: the house's own warden (local.processes) watches it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.ground.errors import StillwaterError
from local.processes import Processes
from local.tools import prerequisites
from local.tools.catalogue import BINARIES, CHARTS, COMPILER_FLAGS, TOOLS, Binary, Tool

# Set to `never` where everything is expected to be there: a build then fails instead of starting.
BUILD = "STILLWATER_BUILD"


@contextlib.contextmanager
def making(home: Path, on_wait: Callable[[], None]) -> Iterator[Path | None]:
    """Yield an empty directory that becomes `home` if the block ends well, else disappears.

    Yields None when `home` is there already, perhaps made by whom `on_wait` told we waited for.
    Raises StillwaterError when it is not, and STILLWATER_BUILD says that nothing is built now.
    """
    if os.environ.get(BUILD) == "never" and not home.is_dir():
        raise StillwaterError(
            f"{home.name} has not been built, and {BUILD}=never says that nothing is built now: "
            f"run `make test-tools` first."
        )
    home.parent.mkdir(parents=True, exist_ok=True)
    with _file_lock(home.parent / f"{home.name}.lock", on_wait):
        if home.is_dir():
            yield None
            return
        for left in home.parent.glob(f".{home.name}.*"):  # the lock is ours: its maker is dead
            shutil.rmtree(left, ignore_errors=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{home.name}.", dir=home.parent))
        try:
            yield staging
            staging.chmod(0o755)
            staging.rename(home)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


@contextlib.contextmanager
def _file_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


__all__ = ["Progress", "build_all", "chart_path", "tool_path", "tool_paths", "version"]


@dataclass(frozen=True, slots=True)
class Progress:
    """What a build is doing, for whoever shows it."""

    name: str
    version: str
    # `own` is a program of the user's that is used instead; `waiting` is for another build.
    state: Literal["cached", "own", "waiting", "building", "built"]
    estimate_seconds: int = 0  # of a cold build, while building
    seconds: float = 0.0  # it took, once built


OnProgress = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Show nothing."""


def tool_paths() -> dict[str, Path]:
    """Return the programs the twin runs, by name: none that only tests need.

    Raises StillwaterError when one has not been built.
    """
    return {binary.name: tool_path(binary.name) for tool in TOOLS for binary in tool.binaries}


def tool_path(name: str) -> Path:
    """Return a program's path: the user's own `pulumi` where it is new enough, else the built one.

    Raises StillwaterError when it has not been built yet.
    """
    own = prerequisites.own_pulumi() if name == "pulumi" else None
    if own is not None:
        return Path(own)
    return _existing(BINARIES[name].home / "bin" / name)


def chart_path(name: str) -> Path:
    """Return the folder of a Helm chart that came with a tool's module."""
    return _existing(CHARTS[name].home / "charts" / name)


def version(name: str) -> str:
    """Return the pinned version of a program, without its v."""
    return BINARIES[name].version


def build_all(on_progress: OnProgress = ignore_progress, tools: Sequence[Tool] = TOOLS) -> None:
    """Build every program that is not in the cache yet; while one compiles, Go fetches the next's.

    Raises MissingPrerequisite without Go, StillwaterError when a build fails.
    """
    for tool, after in zip(tools, [*tools[1:], None], strict=True):
        build(tool, on_progress, after)


def build(tool: Tool, on_progress: OnProgress = ignore_progress, after: Tool | None = None) -> None:
    """Build one tool unless it is cached, or the user has a new enough one of their own.

    Meanwhile Go fetches the sources of the tool `after` it, as far as it comes.
    """
    own = tool.name == "pulumi" and prerequisites.own_pulumi() is not None
    if own or tool.home.is_dir():
        on_progress(Progress(tool.name, tool.version, "own" if own else "cached"))
        return
    prerequisites.require("Go")
    waiting = Progress(tool.name, tool.version, "waiting")
    with making(tool.home, lambda: on_progress(waiting)) as staging:
        if staging is None:  # the build we waited for made it
            on_progress(Progress(tool.name, tool.version, "cached"))
            return
        for binary in tool.binaries:
            _build_binary(tool, binary, staging, on_progress, after)
        for name, inside in tool.charts:
            _copy(_module_folder(tool) / inside, staging / "charts" / name)
        shutil.rmtree(staging / "work", ignore_errors=True)


def _build_binary(
    tool: Tool, binary: Binary, staging: Path, on_progress: OnProgress, after: Tool | None
) -> None:
    on_progress(Progress(binary.name, tool.version, "building", binary.estimate_seconds))
    started = time.monotonic()
    command = ["go", "build", "-trimpath", *_selection_flags(tool), "-ldflags", tool.flags]
    command += COMPILER_FLAGS
    processes = Processes(staging / "work" / "pids", staging / "work" / "logs")
    try:
        if after is not None and after.binaries and not after.home.is_dir():
            # Whatever it has fetched by the end of this build is there; `go build` fetches the
            # rest, and says what is wrong if anything is.
            processes.start(
                "sources",
                ["go", "list", "-deps", *_selection_flags(after), *after.packages.values()],
                environment=_environment(),
                directory=after.folder,
            )
        child = processes.start(
            binary.name,
            [*command, "-o", str(staging / "bin" / binary.name), tool.packages[binary.name]],
            environment=_environment(),
            directory=tool.folder,
        )
        code = child.popen.wait()
        if code != 0:
            raise StillwaterError(
                f"{binary.name} {tool.version} could not be built: `go build` ended with exit "
                f"code {code}. Its last lines:\n{child.tail()}\n"
                f"If they are about downloads, check the network or set GOPROXY, and try again."
            )
    finally:
        processes.close()
    seconds = time.monotonic() - started
    on_progress(Progress(binary.name, tool.version, "built", binary.estimate_seconds, seconds))


def _selection_flags(tool: Tool) -> list[str]:
    """Return what decides which packages a program is made of."""
    tags = ["-tags", ",".join(tool.build_tags)] if tool.build_tags else []
    return ["-mod=readonly", *tags]


def _environment() -> dict[str, str]:
    """Return the user's Go settings, without a workspace that would override our pins.

    Go's compiler collects its garbage less often than it does by itself: 0.79 of the processor's
    time for 1.1 GB instead of 0.9 (aws-iam-authenticator from nothing, on two cores). Near its
    limit it collects more often again: the whole machine had 2.5 GB in use at most, 0.6 of it
    before, while kube-apiserver, the largest, was built from nothing in 265 s. What that costs in
    time beside no limit was not measured.
    """
    return {"GOGC": "400", "GOMEMLIMIT": "1400MiB", **os.environ, "GOWORK": "off"}


def _module_folder(tool: Tool) -> Path:
    """Return where Go keeps the sources of the module that a tool pins, fetched if need be."""
    found = subprocess.run(
        ["go", "mod", "download", "-json", tool.module],
        cwd=tool.folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode != 0:
        raise StillwaterError(
            f"Go cannot fetch {tool.module}: {found.stderr.strip() or 'no answer'}. "
            f"Check the network or set GOPROXY, and try again."
        )
    return Path(json.loads(found.stdout)["Dir"])


def _copy(source: Path, target: Path) -> None:
    """Copy a folder out of Go's module cache, whose files are read-only."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise StillwaterError(
            f"{path.name} has not been built yet (looked at {path}); run `python -m local setup`."
        )
    return path
