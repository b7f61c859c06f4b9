"""A log directory whose logs Kafka recovers one by one, when the test lets it.

Every log is loaded with its `leader-epoch-checkpoint`. Here that file is a pipe until its turn: the
recovery thread waits for it as for a disk that does not answer, and reads the real content in the
end. So a recovery lasts as long as is wanted, whatever the machine, and needs no data.
"""

from pathlib import Path

from tests.integration.pipes import answer, hang
from tests.integration.waiting import until

CHECKPOINT = "leader-epoch-checkpoint"


class SlowDirectory:
    """Holds the logs of one data directory of a broker that does not run now."""

    def __init__(self, directory: Path) -> None:
        self._aside = directory / "aside"
        self._aside.mkdir()
        self._held = {log.name: log / CHECKPOINT for log in (directory / "log").glob("orders-*")}
        for name, checkpoint in self._held.items():
            hang(checkpoint, self._aside / name)

    def __len__(self) -> int:
        return len(self._held)

    def let_one(self) -> None:
        """Answer the recovery thread, which waits at one of the logs or will in a moment."""
        name = until(self._answered, "the recovery thread waits at a log")
        del self._held[name]

    def let_all(self) -> None:
        while self._held:
            self.let_one()

    def _answered(self) -> str | None:
        return next((n for n, path in self._held.items() if answer(path, self._aside / n)), None)
