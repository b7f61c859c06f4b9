"""Says what to ask oneself when AWS refuses or is not reached, the same for every command."""

from __future__ import annotations

from core.errors import StillwaterError, passed_on

IN_REACH = (
    "Is the environment up in this account and region (`stillwater preview ENV` shows what is "
    "missing), and may you do this?"
)


def out_of_reach(what: str, error: Exception) -> str:
    """Return our own sentences as they are, and AWS's words after what is wrong and to be asked."""
    ours = isinstance(error, StillwaterError)
    return str(error) if ours else passed_on(f"{what} {IN_REACH}", error)
