"""Ends a block on Ctrl-C, SIGTERM or SIGHUP, with time to clean up, but not for ever.

The first signal becomes a KeyboardInterrupt. Those after it are ignored, as is any once the
clean-up has begun; if the block has not ended some seconds later, because something swallowed the
KeyboardInterrupt or hangs, the process exits and its warden cleans up instead.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LIMIT_SECONDS = 15.0


def stop_event() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


class Stopping:
    """The block that signals end; on a thread other than the main one it changes nothing."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._limit_seconds = limit_seconds
        self._previous: dict[int, Any] = {}
        self._asked: int | None = None
        self._holding = False
        self._over = threading.Event()
        self._ask = threading.Event()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            # Started now, since a signal handler must not start threads.
            threading.Thread(target=self._insist, daemon=True, name="stopping").start()
            for number in SIGNALS:
                # Ignored by whoever started us, as nohup does, a signal stays ignored.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._ask.set()
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self._asked is not None and not isinstance(error, KeyboardInterrupt):
            # It came during the clean-up, or somebody made another error of it.
            signal.raise_signal(self._asked)

    def hold(self) -> None:
        """From here on, let signals wait until the block has ended."""
        self._holding = True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._asked is not None:
            return
        self._asked = number
        self._ask.set()
        if self._holding:
            return
        previous = self._previous[number]
        if callable(previous):
            previous(number, frame)
        raise KeyboardInterrupt(signal.Signals(number).name)

    def _insist(self) -> None:
        self._ask.wait()
        if self._over.wait(self._limit_seconds) or self._asked is None:
            return
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write("Stopped while something hung; the warden ends the rest.\n")
            sys.stderr.flush()
        os._exit(128 + self._asked)
