"""The names of the integration tests that failed in the last run, in out/."""

from __future__ import annotations

from pathlib import Path

LIST = Path(__file__).resolve().parents[1] / "out" / "integration" / "failed.txt"


def forget() -> None:
    """Begin a run: nothing has failed."""
    LIST.unlink(missing_ok=True)


def add(test: str) -> None:
    """Keep a test's id, once."""
    if test not in names():
        LIST.parent.mkdir(parents=True, exist_ok=True)
        with LIST.open("a") as kept:
            kept.write(f"{test}\n")


def names() -> list[str]:
    """Return the ids of what failed, in the order in which it failed."""
    return LIST.read_text().splitlines() if LIST.exists() else []
