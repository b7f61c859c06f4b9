"""The project's pages as the tests read them: headings, links, code blocks and code spans."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PAGES = (
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
)

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block; an unnamed language is the shell's or a program's output."""

    language: str
    body: str


def name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@functools.cache
def blocks(page: Path) -> Sequence[Block]:
    return [Block(m["language"], m["body"]) for m in _FENCE.finditer(page.read_text())]


@functools.cache
def spans(page: Path) -> Sequence[str]:
    """Return what stands between single backticks, outside of blocks."""
    return _SPAN.findall(_prose(page))


@functools.cache
def links(page: Path) -> Sequence[str]:
    return _LINK.findall(_SPAN.sub("", _prose(page)))


@functools.cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_prose(page)):
        plain = _LINK.sub("", heading.replace("](", "] (")).replace("`", "").lower()
        slug = "".join(c for c in plain if c.isalnum() or c in " -_").replace(" ", "-")
        number = 1
        unique = slug
        while unique in found:
            unique, number = f"{slug}-{number}", number + 1
        found.add(unique)
    return found


@functools.cache
def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text())
