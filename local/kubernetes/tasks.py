"""Level-triggered work for controllers: one piece per key at a time, again while it asks for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from core.ground.errors import StillwaterError
from local.kubernetes.cloud import CloudError

RETRY_SECONDS = 1.0
LOG = logging.getLogger(__name__)


class Tasks:
    """Runs one piece of work per key at a time, again while it asks for it or was asked meanwhile.

    Work looks at what is true now and does the next step (level-triggered), so a request that comes
    while it runs means one more look, never two at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Key -> whether it was asked for again while running.
        self._running: dict[str, bool] = {}

    def request(self, key: str, work: Callable[[], float | None]) -> None:
        """Run `work` now; it returns the seconds until it wants to look again, or None."""
        with self._lock:
            if key in self._running:
                self._running[key] = True
                return
            self._running[key] = False
        threading.Thread(target=self._run, args=(key, work), name=key, daemon=True).start()

    def _run(self, key: str, work: Callable[[], float | None]) -> None:
        while True:
            again: float | None = RETRY_SECONDS
            try:
                again = work()
            except (StillwaterError, *CloudError) as error:
                LOG.warning("%s: %s", key, error)
            except Exception:
                LOG.exception("%s failed.", key)
            if again is not None:
                time.sleep(again)
            with self._lock:
                if again is None and not self._running[key]:
                    del self._running[key]
                    return
                self._running[key] = False
