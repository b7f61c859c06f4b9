"""Writes a page where somebody asked for it."""

from __future__ import annotations

from pathlib import Path

from core.errors import StillwaterError


def write_page(path: Path, text: str) -> None:
    """Write a file; raises StillwaterError where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StillwaterError(
            f"{path} cannot be written: {error.strerror}; name a file in a directory of yours."
        ) from None
