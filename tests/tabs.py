"""What tests of served pages do in a tab: open at a reader's size, wait for a value, complain."""

import time
from collections.abc import Callable
from typing import Any

from tests.printing import Tab

LIMIT_SECONDS = 30.0
LOOPBACK = "127.0.0.1"
# The browser's own rules let it reach nothing else at all.
REACHES = f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {LOOPBACK}"
SIZES = {"desktop": (1280, 900, False), "phone": (390, 844, True)}
WIDER_THAN_THE_SCREEN = "document.documentElement.scrollWidth - innerWidth"


def evaluate(tab: Tab, script: str) -> Any:
    """Return the value of an expression, or of the promise it is."""
    answer = tab.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
    return answer["result"].get("value")


def eventually(read: Callable[[], Any], wanted: object) -> None:
    """Wait until a reading is what is wanted."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while (found := read()) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def prepare(tab: Tab, *, size: str = "desktop", dark: bool = False) -> None:
    """Make a tab as wide, as tall and as dark as a reader's, and listen to what it complains of."""
    width, height, mobile = SIZES[size]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    tab.ask("Emulation.setDeviceMetricsOverride", **metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    tab.ask("Emulation.setEmulatedMedia", features=[scheme])
    for domain in ("Page", "Runtime", "Log"):
        tab.ask(f"{domain}.enable")


def unhappy(tab: Tab) -> list[str]:
    """Return what the page complained of: refused styles and requests are among it."""
    wanted = {"Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"}
    return [event for event in tab.events if event in wanted]
