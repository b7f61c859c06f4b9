"""Lets a part of the twin's AWS do its round again and again, whatever became of the last one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

LOG = logging.getLogger(__name__)


def again_and_again(
    name: str, each: Callable[[], object], every_seconds: float, stopped: threading.Event
) -> None:
    """Do rounds until stopped; one that fails is told, and time goes on for the rest."""
    while not stopped.wait(every_seconds):
        try:
            each()
        except Exception:
            LOG.exception("a round of the %s failed", name)
