"""Says where the installed release came from, and what a newer one changes for a directory.

pip writes the origin of a package into its metadata (PEP 610). The distribution was called
`stillwater` up to 0.1, a name that another project has on pypi.org.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cli.stack_settings import find
from core.ground.errors import InvalidInput, passed_on
from infra import spec as specs

NAME = "stillwater-kafka"
# A wheel's file has underscores in the place of hyphens (PEP 427).
WHEEL = "stillwater_kafka"
TWIN = "stillwater_kafka_twin"
WHEELS = "wheels"
NOTES = specs.ROOT / "CHANGELOG.md"
# `stillwater-kafka==1.2.3`, `stillwater-kafka[report]==1.2.3`, or a wheel's path or address.
_PIN = re.compile(
    r"^(?P<before>[^#\n]*?)\bstillwater(?:[-_]kafka)?(?P<extra>\[[\w,-]+\])?"
    r"(?P<join>==|-)(?P<version>\d[^\s-]*)",
    re.MULTILINE,
)
# The name in front of an address.
_NAMED = re.compile(r"\bstillwater(?=(?:\[[\w,-]+\])? @)")
_RELEASE = re.compile(r"^## (\S+)", re.MULTILINE)
UNRELEASED = "Unreleased"


@dataclass(frozen=True, slots=True)
class Origin:
    """A release and what pip took it from: a file or an address, nothing for an index."""

    version: str
    url: str | None = None
    checkout: bool = False

    @property
    def wheel(self) -> str:
        """Return the name of its wheel's file."""
        named = "" if self.url is None else Path(urlsplit(self.url).path).name
        return named if named.endswith(".whl") else f"{WHEEL}-{self.version}-py3-none-any.whl"

    @property
    def path(self) -> Path | None:
        """Return the wheel or the checkout on this machine, where it came from one."""
        parts = urlsplit(self.url or "")
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    @property
    def kept_wheel(self) -> Path | None:
        """Return the wheel's file where it is still there."""
        path = self.path
        return path if path is not None and not self.checkout and path.is_file() else None

    @property
    def requirement(self) -> str:
        """Return the line of a requirements.txt that means this release, from its own folder."""
        if self.url is None:
            return f"{NAME}=={self.version}"
        return f"./{WHEELS}/{self.wheel}" if self.path else f"{NAME} @ {self.url}"

    def installing(self, extra: str) -> str:
        """Return the command that adds an extra to this very release, into this very Python."""
        if self.url is None:
            wanted = [f"{NAME}[{extra}]=={self.version}"]
        else:
            source = str(self.path or self.url)
            wanted = [f"{source}[{extra}]" if self.path else f"{NAME}[{extra}] @ {source}"]
            # The twin is a distribution beside it, and in no index either.
            if extra == "twin":
                beside = Path(source) / "local" if self.checkout else None
                wanted.append(str(beside or source.replace(f"/{WHEEL}-", f"/{TWIN}-")))
        pip = [sys.executable, "-m", "pip", "install"]
        if importlib.util.find_spec("pip") is None:
            pip = ["uv", "pip", "install", "--python", sys.executable]
        return shlex.join([*pip, *wanted])


def installed_release() -> Origin:
    """Return where the release that runs came from."""
    found = importlib.metadata.distribution(NAME)
    return parse_origin(found.version, found.read_text("direct_url.json"))


def parse_origin(version: str, direct_url: str | None) -> Origin:
    """Return what pip wrote down; what it did not write down came from an index."""
    said = json.loads(direct_url) if direct_url else {}
    return Origin(version, said.get("url"), "dir_info" in said)


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
    came = came or installed_release()
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
    releases = releases_between(NOTES.read_text(encoding="utf-8"), before, now)
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
            f"`{installed_release().requirement}`."
        )
        raise InvalidInput([problem])
    return found["version"]


def _pin(pins: Path, before: str, came: Origin) -> Iterator[str]:
    """Name a release in a requirements.txt, its wheel beside it where one is named."""
    text = pins.read_text("utf-8")
    named = _PIN.search(text)
    pins.write_text(_PIN.sub(lambda pin: _renewed(pin, came.version), text), "utf-8")
    yield f"{pins} names {came.version} now."
    if named is None or f"{WHEELS}/" not in named[0]:
        return
    kept = pins.parent / WHEELS / came.wheel
    if came.kept_wheel is not None:
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(came.kept_wheel, kept)
        yield f"{kept} is there; the wheel of {before} may go."
    elif not kept.is_file():
        yield f"Put {came.wheel} into {kept.parent}: that is where pip looks for it."


def _renewed(pin: re.Match[str], version: str) -> str:
    """Return the beginning of a requirement with another version, under the present name."""
    name = NAME if pin["join"] == "==" else WHEEL
    before = _NAMED.sub(NAME, pin["before"])
    return f"{before}{name}{pin['extra'] or ''}{pin['join']}{version}"


def releases_between(changelog: str, before: str, now: str) -> Sequence[tuple[str, str]]:
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
