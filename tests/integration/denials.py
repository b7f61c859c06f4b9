"""Fails a test beside which a role was refused, unless the test says that it means it.

A twin's journal holds every verdict of its IAM. Whoever is refused a call that it needs gets no
further, and most of our programs try again later, so that without this nobody would notice.
"""

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from local.journal import FILE_NAME

# `@pytest.mark.means_to_be_refused("sqs:SendMessage", ...)`: patterns of actions; none: any.
MARKER = "means_to_be_refused"


@dataclass(frozen=True, slots=True)
class Denial:
    """One call that a role was refused."""

    role: str
    action: str
    resource: str
    because: str

    def __str__(self) -> str:
        return f"{self.role} was refused {self.action} on {self.resource} {self.because}"


@dataclass
class Denials:
    """The denials of one journal since it was read last."""

    path: Path
    read_to: int = 0
    first: bytes = b""

    def new(self) -> list[Denial]:
        """Return what was refused since, each once, in the order of its first time."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as journal:
            first = journal.readline()
            if first != self.first:  # another twin has this place now
                self.read_to, self.first = 0, first
            journal.seek(self.read_to)
            complete = journal.read().rpartition(b"\n")[0]
        self.read_to += len(complete) + bool(complete)
        facts = map(json.loads, complete.splitlines())
        return list(dict.fromkeys(found for fact in facts if (found := denial(fact))))


def denial(fact: dict[str, Any]) -> Denial | None:
    """Return the denial that a fact of the journal is; None: it is none.

    What the twin cannot judge, it refuses: that is one, too.
    """
    if fact["event"] == "iam_unjudged":
        return Denial(fact["principal"], fact["action"], "*", f"unjudged: {fact['why']}")
    if fact["event"] != "iam_judged" or fact["allowed"]:
        return None
    return Denial(fact["principal"], fact["action"], fact["resource"], fact["because"])


_journals: dict[Path, Denials] = {}


def check(item: pytest.Item) -> None:
    """Raise AssertionError for what was refused beside a test on the twin."""
    # What else a test calls a twin has no place, and no journal there.
    place = getattr(getattr(item, "funcargs", {}).get("twin"), "place", None)
    if place is None:
        return
    path = place.path(FILE_NAME)
    refused = _journals.setdefault(path, Denials(path)).new()
    marker = item.get_closest_marker(MARKER)
    if marker is not None:
        meant = marker.args or ("*",)
        refused = [d for d in refused if not any(fnmatchcase(d.action, each) for each in meant)]
    assert not refused, "IAM refused, beside this test:\n" + "\n".join(map(str, refused))
