"""Says what to ask oneself when AWS refuses or is not reached, the same for every command."""

from __future__ import annotations

IN_REACH = (
    "Is the environment up in this account and region (`stillwater preview ENV` shows what is "
    "missing), and may you do this?"
)
