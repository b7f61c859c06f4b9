"""The one family of errors a user may see: complete sentences, never a traceback.

What another program says comes after ours, on one line and cut (`passed_on`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 300
# A proxy's page, which says nothing that the words before it do not.
_PAGE = re.compile(r"[\s:]*(?:b')?<(?:!doctype|html)\b.*", re.IGNORECASE | re.DOTALL)
# Where in another program it happened, which helps nobody who uses it.
_FRAMES = re.compile(r"^\s+(?:at \S+\(|\.\.\. \d+ more|File \").*$", re.MULTILINE)


def one_line(theirs: object) -> str:
    """Return another program's words on one line, without its pages and stacks, and cut."""
    said = theirs if isinstance(theirs, str) else str(theirs) or type(theirs).__name__
    line = " ".join(_FRAMES.sub("", _PAGE.sub("", said)).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."


def passed_on(ours: str, theirs: object) -> str:
    """Return our sentences, which say what is wrong and what to do, and then another program's."""
    said = one_line(theirs).rstrip(" .:")
    return f"{ours} In its own words: {said}." if said else ours


class StillwaterError(Exception):
    """A failure the user can act on: what, the value, the limit, the remedy."""


class InvalidInput(StillwaterError):
    """Something the user wrote cannot be accepted; every problem found is one sentence.

    Nothing has been changed when this is raised.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class MissingPrerequisite(StillwaterError):
    """A program this machine needs is absent or too old; the sentence says how to get it."""


class Conflict(StillwaterError):
    """Somebody else holds what is asked for, or changed it since it was read."""
