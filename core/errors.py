"""The one family of errors a user may see: complete sentences, never a traceback."""

from __future__ import annotations

from collections.abc import Iterable


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
