"""Prints a page in headless Chromium as a reader does: on paper, whatever their screen prefers.

Spoken to over its debugging pipe (file descriptors 3 and 4, messages that end with a zero byte),
since no option of the command line asks what a page looks like in print.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browser import FLAGS

# A4 less the page's own margins, in CSS pixels: 186 by 271 mm at 96 a 25.4 mm.
PAPER_PX = (703, 1024)
PAPER_INCHES = (8.27, 11.69)
TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Printed:
    """A page as it is printed: the document, a picture, and what a script found in print."""

    pdf: bytes
    picture: bytes
    found: Any


def print_page(browser: str, page: Path, script: str, *, dark: bool = False) -> Printed:
    """Print a page, for a reader who may prefer the dark; `script` is asked for its value."""
    with open_tab(browser) as tab:
        width, height = PAPER_PX
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        tab.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.ask("Emulation.setEmulatedMedia", media="print", features=[scheme])
        tab.ask("Page.enable")
        tab.ask("Page.navigate", url=page.resolve().as_uri())
        tab.wait_for("Page.loadEventFired")
        value = tab.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"]
        shot = tab.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        wide, high = PAPER_INCHES
        # The page's own margins; no backgrounds, as a browser's dialog has it unless told.
        paper = {"paperWidth": wide, "paperHeight": high, "preferCSSPageSize": True}
        pdf = tab.ask("Page.printToPDF", printBackground=False, **paper)["data"]
    return Printed(base64.b64decode(pdf), base64.b64decode(shot), value.get("value"))


class Tab:
    """One tab, over the browser's pipe."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._number, self._session = 0, ""
        self._unread, self.events = b"", list[str]()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of a command; a refusal is an error of the test."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._into, data) :]
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer.get("method", ""))
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def wait_for(self, event: str) -> None:
        while event not in self.events:
            self.events.append(self._next().get("method", ""))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._out], [], [], TIMEOUT_SECONDS)
            assert ready, "the browser did not answer in time"
            part = os.read(self._out, 1 << 20)
            assert part, "the browser ended"
            self._unread += part
        first, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message


@contextmanager
def open_tab(browser: str, *flags: str) -> Iterator[Tab]:
    """Yield a tab of a browser of its own, which ends with the block."""
    with (
        tempfile.TemporaryDirectory(
            prefix="stillwater-browser-", ignore_cleanup_errors=True
        ) as profile,
        Path(os.devnull).open("wb") as nowhere,
    ):
        (theirs_in, into), (out, theirs_out) = _pipe(), _pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, nowhere.fileno(), 2),  # first: its number may be 3 or 4
            (os.POSIX_SPAWN_DUP2, theirs_in, 3),
            (os.POSIX_SPAWN_DUP2, theirs_out, 4),
        ]
        own = (f"--user-data-dir={profile}", "--remote-debugging-pipe")
        arguments = [browser, *FLAGS, *flags, *own]
        process = os.posix_spawn(browser, arguments, os.environ, file_actions=actions, setpgroup=0)
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Tab(into, out)
        finally:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(into)
            os.close(out)


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are none of those that the browser is to have under 3 and 4."""
    low = os.pipe()
    high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in low]
    for each in low:
        os.close(each)
    return high[0], high[1]
