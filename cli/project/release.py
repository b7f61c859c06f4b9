"""Says what a newer release changes for a directory: the notes between its pin and what runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.project import origin
from cli.project.found import find
from cli.project.origin import WHEELS, Origin
from core.errors import InvalidInput, passed_on
from infra import spec as specs

NOTES = specs.ROOT / "CHANGELOG.md"
# `stillwater==1.2.3`, `stillwater[report]==1.2.3`, or a wheel's path or address.
_PIN = re.compile(r"^[^#\n]*?\bstillwater(?:\[[\w,-]+\])?(?:==|-)(\d[^\s-]*)", re.MULTILINE)
_RELEASE = re.compile(r"^## (\S+)", re.MULTILINE)
UNRELEASED = "Unreleased"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What a newer release changes for a directory, and what was done about it."""

    pins: Path
    before: str
    now: str
    releases: Sequence[tuple[str, str]]  # name and notes of each in between, newest first
    wrote: tuple[str, ...] = ()  # what was written, a sentence each

    def sentences(self) -> Iterator[str]:
        """Yield it as people read it."""
        if self.before == self.now:
            yield f"{self.pins} names {self.before}, which is what runs: nothing changes."
            return
        for release, notes in self.releases:
            yield f"{release}\n\n{notes}\n"
        yield from self.wrote
        named = "" if self.wrote else "; `stillwater upgrade --write` names it in requirements.txt"
        yield (
            f"From {self.before} to {self.now}: `stillwater check ENV` and `stillwater preview "
            f"ENV` show what it means here{named}."
        )

    def as_json(self) -> Mapping[str, object]:
        """Return the same as one object."""
        return {
            "file": str(self.pins),
            "before": self.before,
            "now": self.now,
            "releases": [{"release": name, "notes": notes} for name, notes in self.releases],
            "wrote": list(self.wrote),
        }


def upgrade(*, write: bool, came: Origin | None = None) -> Upgrade:
    """Return the notes of every release after the pinned one, up to the installed one."""
    came = came or origin.read()
    now = came.version
    pins = find().root / "requirements.txt"
    before = pinned_release(pins)
    if before == now:
        return Upgrade(pins, before, now, ())
    if _sort_key(before) > _sort_key(now):
        raise InvalidInput(
            [
                (
                    f"{pins} names {before} and {now} runs, which is older: `pip install -r "
                    f"{pins.name}` brings the release this directory is for."
                )
            ]
        )
    releases = between(NOTES.read_text(encoding="utf-8"), before, now)
    wrote = tuple(_pin(pins, before, came)) if write else ()
    return Upgrade(pins, before, now, releases, wrote)


def pinned_release(path: Path) -> str:
    """Return the release that a requirements.txt names."""
    try:
        found = _PIN.search(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            [passed_on(f"{path} cannot be read; name another file.", error)]
        ) from None
    if found is None:
        problem = (
            f"{path} names no release of Stillwater; add the one you came from: a line such as "
            f"`{origin.read().requirement}`."
        )
        raise InvalidInput([problem])
    return found[1]


def _pin(pins: Path, before: str, came: Origin) -> Iterator[str]:
    """Name a release in a requirements.txt, its wheel beside it where one is named."""
    text = pins.read_text("utf-8")
    named = _PIN.search(text)
    pins.write_text(_PIN.sub(lambda m: m[0].replace(before, came.version), text), "utf-8")
    yield f"{pins} names {came.version} now."
    if named is None or f"{WHEELS}/" not in named[0]:
        return
    kept = pins.parent / WHEELS / came.wheel
    if came.kept_wheel is not None:
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(came.kept_wheel, kept)
        yield f"{kept} is there; the wheel of {before} beside it may go."
    elif not kept.is_file():
        yield f"Put {came.wheel} into {kept.parent}: that is where pip looks for it."


def between(changelog: str, before: str, now: str) -> Sequence[tuple[str, str]]:
    """Return name and notes of the releases after one, up to another, newest first."""
    heads = [*_RELEASE.finditer(changelog)]
    ends = [head.start() for head in heads[1:]] + [len(changelog)]
    return [
        (head[1], changelog[head.end() : end].partition("\n")[2].strip())
        for head, end in zip(heads, ends, strict=True)
        if head[1] != UNRELEASED and _sort_key(before) < _sort_key(head[1]) <= _sort_key(now)
    ]


def _sort_key(version: str) -> tuple[tuple[int, str], ...]:
    """Return what versions are sorted by: numbers as numbers."""
    parts = re.split(r"[.+-]", version)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
