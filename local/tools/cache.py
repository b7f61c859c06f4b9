"""Directories of the per-user cache that appear complete, in one rename, or not at all.

Whoever sees such a directory may use what is in it. Two makers of the same one wait for each other
at the kernel's lock, which goes with the process that holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from core.ground.errors import StillwaterError

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
