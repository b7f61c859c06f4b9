"""Somebody at a terminal: types commands into it, and answers what they ask."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROWS = 24
CTRL_C = b"\x03"
# What ends a question of ours: `Brokers [3]: `, `Bring up prod? (yes) `.
_QUESTION = re.compile(r"(?:\]: |: |\) )$")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Person:
    """Stands in a directory, before a window of so many columns."""

    directory: Path
    environment: Mapping[str, str]
    columns: int = 80
    code: int = 0  # of the last command, and what its terminal showed
    said: str = ""

    def types(
        self,
        command: str,
        *,
        answers: Sequence[str] = "",
        stops_at: str | None = None,
        limit_seconds: float = 300,
    ) -> str:
        """Run a line in a shell and return what was shown; each question gets the next answer.

        What would go on for ever gets a Ctrl-C once it has shown `stops_at`.
        """
        ours, theirs = pty.openpty()
        size = struct.pack("HHHH", ROWS, self.columns, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        process = subprocess.Popen(
            # A session whose terminal this is: Ctrl-C reaches it as from a keyboard.
            ["setsid", "--ctty", "bash", "--noprofile", "--norc", "-c", command],
            cwd=self.directory,
            env={**self.environment, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        keys, last = list(answers), b""
        text, deadline = "", time.monotonic() + limit_seconds
        try:
            while chunk := _read(ours, deadline, last):
                text += chunk
                plain = _STYLE.sub("", text)
                if keys and _QUESTION.search(plain):
                    last = keys.pop(0).encode()
                    os.write(ours, last)
                if stops_at is not None and stops_at in plain:
                    os.write(ours, CTRL_C)
                    stops_at = None
            self.code = process.wait(max(1.0, deadline - time.monotonic()))
        finally:
            os.close(ours)
            process.kill()
        self.said = _STYLE.sub("", text).replace("\r\n", "\n")
        return self.said


def _read(terminal: int, deadline: float, last: bytes) -> str:
    """Return what came next, nothing once the other end is closed."""
    while not select.select([terminal], [], [], 10.0)[0]:
        assert time.monotonic() < deadline, "the command neither ended nor asked"
        # Python loses a Ctrl-C that comes just before it waits for a line: a person repeats it.
        os.write(terminal, last if last == CTRL_C else b"")
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:
        return ""  # closed


class Keyboard(io.StringIO):
    """Empty standard input of a terminal: whoever reads it gets what Ctrl-D gives."""

    def isatty(self) -> bool:
        return True
