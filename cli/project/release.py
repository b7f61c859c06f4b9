"""Says what a newer release changes for a directory: the notes between its pin and what runs."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from cli.project.found import find
from core.errors import InvalidInput
from infra import spec as specs

NAME = "stillwater"
NOTES = specs.ROOT / "CHANGELOG.md"
_PIN = re.compile(rf"^{NAME}(?:\[[\w,-]+\])?==(\S+)", re.MULTILINE)
_RELEASE = re.compile(r"^## (\S+)", re.MULTILINE)
UNRELEASED = "Unreleased"


def installed() -> str:
    """Return the version of this release."""
    return importlib.metadata.version(NAME)


def upgrade(console: Console, *, write: bool, now: str | None = None) -> None:
    """Print the notes of every release after the pinned one, up to the installed one."""
    now = now or installed()
    pins = find().root / "requirements.txt"
    before = pinned(pins)
    if before == now:
        _say(console, f"{pins} names {before}, which is what runs: nothing changes.")
        return
    if _ordered(before) > _ordered(now):
        raise InvalidInput(
            [
                (
                    f"{pins} names {before} and {now} runs, which is older: `pip install -r "
                    f"{pins.name}` brings the release this directory is for."
                )
            ]
        )
    for release, notes in between(NOTES.read_text(encoding="utf-8"), before, now):
        _say(console, f"{release}\n\n{notes}\n")
    if write:
        pins.write_text(_PIN.sub(lambda m: m[0].replace(before, now), pins.read_text("utf-8")))
        _say(console, f"{pins} names {now} now.")
    _say(
        console,
        f"From {before} to {now}: `stillwater check ENV` and `stillwater preview ENV` show what it "
        f"means here"
        + ("." if write else "; `stillwater upgrade --write` names it in requirements.txt."),
    )


def pinned(path: Path) -> str:
    """Return the release that a requirements.txt names."""
    try:
        found = _PIN.search(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput([f"{path} cannot be read: {error}."]) from None
    if found is None:
        raise InvalidInput([f"{path} has no line `{NAME}==VERSION`; add the one you came from."])
    return found[1]


def between(changelog: str, before: str, now: str) -> Sequence[tuple[str, str]]:
    """Return name and notes of the releases after one, up to another, newest first."""
    heads = [*_RELEASE.finditer(changelog)]
    ends = [head.start() for head in heads[1:]] + [len(changelog)]
    return [
        (head[1], changelog[head.end() : end].partition("\n")[2].strip())
        for head, end in zip(heads, ends, strict=True)
        if head[1] != UNRELEASED and _ordered(before) < _ordered(head[1]) <= _ordered(now)
    ]


def _ordered(version: str) -> tuple[tuple[int, str], ...]:
    """Return what versions are sorted by: numbers as numbers."""
    parts = re.split(r"[.+-]", version)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
