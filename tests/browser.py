"""Opens a page in headless Chromium, where there is one: what it said, and what it looks like.

The browser gets a profile of its own and no network beyond what the page itself asks for.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DESKTOP = (1280, 1600)
# Headless Chromium lays nothing out narrower than this, whatever width is asked for.
PHONE = (500, 1800)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
)
TIMEOUT_SECONDS = 90
# [1234:1234:1120/221500.123456:INFO:CONSOLE:12] "message", source: file:///... (12)
_CONSOLE = re.compile(r":CONSOLE[^\]]*\]\s*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class SeenPage:
    """A page after its scripts ran: its document, and every line its console got."""

    dom: str
    console: Sequence[str]


def find() -> str | None:
    """Return a Chromium on the PATH, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


needed = pytest.mark.skipif(find() is None, reason="no Chromium on the PATH (apt install chromium)")


def look(browser: str, page: Path) -> SeenPage:
    """Load a page, let its scripts run, and return what became of it."""
    done = _run(browser, page, "--dump-dom", "--virtual-time-budget=2000")
    return SeenPage(done.stdout, tuple(_CONSOLE.findall(done.stderr)))


def photograph(
    browser: str, page: Path, target: Path, *, size: tuple[int, int] = DESKTOP, dark: bool = False
) -> Path:
    """Write a screenshot of a page as PNG."""
    width, height = size
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    shot = (f"--screenshot={target}", f"--window-size={width},{height}")
    done = _run(browser, page, *shot, "--virtual-time-budget=2000", *scheme)
    assert target.is_file(), done.stderr[-2000:]
    return target


def _run(browser: str, page: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="stillwater-browser-") as profile:
        return subprocess.run(
            [browser, *FLAGS, f"--user-data-dir={profile}", *arguments, page.resolve().as_uri()],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=True,
        )
