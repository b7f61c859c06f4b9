"""Files that keep who reads them waiting, as a disk or a store of secrets does that hangs."""

import os
from pathlib import Path


def hang(path: Path, aside: Path) -> None:
    """Put a pipe in a file's place: whoever opens it waits; the file itself is kept aside."""
    path.rename(aside)
    os.mkfifo(path)


def answer(path: Path, aside: Path) -> bool:
    """Give the file to who waits for it, and back to its place; False where nobody waits yet."""
    try:
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    content = aside.read_bytes()
    aside.replace(path)  # for whoever opens it next
    os.write(pipe, content)
    os.close(pipe)
    return True
