"""Starts Spark on the record of its classes, where the twin that makes it is installed."""

from __future__ import annotations


def settings() -> dict[str, str]:
    """Return what a session starts with to map the record; nothing where there is none."""
    try:
        from local.spark import classes  # noqa: PLC0415 - the twin is a distribution of its own
    except ModuleNotFoundError:
        return {}
    return classes.settings()
