"""What README and tutorial tell a newcomer to type, in order, and what of it a twin cannot show.

The commands come out of the pages. Each is typed by a test, or named here with the reason why not;
a page that gains one that is neither fails `tests/integration/test_newcomer.py`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from infra.spec import ROOT
from tests.unit.docs import markdown

README, TUTORIAL = "README.md", "docs/tutorial.md"
PROGRAMS = ("stillwater", "make", "aws", "kubectl", "pulumi", "pip", "curl")
_SPANS = re.compile(rf"(?:{'|'.join(PROGRAMS)}) .+")
# What the demo prints begins with its clock.
_PRINTED = re.compile(r"\s*[\d.]+ s ")
_TOKENS = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```"
    r"|`(?P<span>[^`\n]+)`|^## (?P<heading>[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = """#!/bin/sh
exec {python} -c 'import sys; from stillwater.command import main; sys.exit(main())' "$@"
"""
_COMMENT = re.compile(r"\s+#\s.*$")
_HEREDOC = re.compile(r"<<-?\s*'?(\w+)'?")
# How a command begins -> why nobody types it on a twin.
NOT_TYPED: Mapping[str, Mapping[str, str]] = {
    README: {
        "make demo": "it is the twin's own story, which tests/integration/test_story.py runs",
        "make test": "it runs this",
        "pip install": "`make release` does, into an empty environment",
        "make site": "tests/integration/test_site.py builds and reads it",
    },
    TUTORIAL: {
        "make demo": "it is the twin's own story, which tests/integration/test_story.py runs",
        "python3 -m venv": "`make release` does, and installs the wheel there",
        "pip install": "`make release` does, into an empty environment",
        "curl https://checkip.amazonaws.com": "it asks the internet; the address is loopback here",
        "aws eks get-token": "kubectl calls it for each of its own commands",
        "kubectl apply": "the twin has no image with Kafka's tools: a pod of that image is a node "
        "of Kafka's; clients with certificates are in tests/integration/test_kafka_clients.py",
        "kubectl -n kafka wait": "of the same pod",
        "kubectl -n kafka exec": "of the same pod",
        "pulumi destroy -s": "the same engine; tests/integration/test_pulumi_plain.py types it",
    },
}


@dataclass(frozen=True, slots=True)
class Statement:
    """One command of a page, whole: with its continued lines and what it is fed."""

    page: str
    heading: str
    text: str
    mention: bool = False  # in a sentence, not in a block
    shown: str = ""  # what the page says it prints: a block of text below it

    @property
    def reason(self) -> str | None:
        """Return why it is not typed, None where it is."""
        known = NOT_TYPED[self.page].items()
        return next((why for begins, why in known if self.text.startswith(begins)), None)


def statements(page: str) -> list[Statement]:
    """Return every command of a page in its order, those that a sentence names included."""
    found: list[Statement] = []
    heading = ""
    for token in _TOKENS.finditer((markdown.REPOSITORY / page).read_text()):
        if token["heading"] is not None:
            heading = token["heading"]
        elif token["language"] == "text" and found:
            found[-1] = replace(found[-1], shown=token["body"])
        elif token["span"] is not None:
            if _SPANS.fullmatch(token["span"]):
                found.append(Statement(page, heading, token["span"], mention=True))
        elif token["language"] in ("", "sh", "bash") and not _PRINTED.match(token["body"]):
            found += [Statement(page, heading, text) for text in split(token["body"])]
    return found


def typed_statements(page: str) -> list[Statement]:
    """Return what is typed of a page; a sentence's command is its block's."""
    return [each for each in statements(page) if each.reason is None and not each.mention]


def guides(environment: str) -> dict[str, str]:
    """Return what the how-tos show below a command of theirs, command -> shown."""
    pages = sorted((markdown.REPOSITORY / "docs/how-to").glob("*.md"))
    found = [each for page in pages for each in statements(str(page.relative_to(ROOT)))]
    named = {each.text.replace("ENV", environment): each.shown for each in found if each.shown}
    return {text: shown for text, shown in named.items() if text.startswith("stillwater ")}


def unseen(shown: str, said: str) -> list[str]:
    """Return the lines that a page shows and a command did not print; … stands for anything."""
    printed = " ".join(said.split())
    return [
        line
        for line in shown.splitlines()
        if not re.search(
            ".*?".join(re.escape(" ".join(part.split())) for part in line.split("…")), printed
        )
    ]


def neither(page: str) -> list[Statement]:
    """Return what a page says and nobody types or gives a reason for."""
    lines = [each.text for each in typed_statements(page)]
    return [
        each
        for each in statements(page)
        if each.mention
        and each.reason is None
        and not any(line.startswith(each.text) for line in lines)
    ]


def descriptions(page: str, heading: str) -> list[dict[str, object]]:
    """Return the pieces of a description that a page has one write below a heading, in order."""
    found, here = [], ""
    for token in _TOKENS.finditer((markdown.REPOSITORY / page).read_text()):
        here = here if token["heading"] is None else token["heading"]
        if token["language"] == "yaml" and here.startswith(heading):
            found.append(yaml.safe_load(token["body"]))
    return found


def install(directory: Path) -> tuple[Path, Path]:
    """Put the command where a person's shell finds it; return the package's folder and its own.

    As after an installation, the package's folder holds nothing else.
    """
    installed, programs = directory / "site", directory / "programs"
    installed.mkdir()
    programs.mkdir()
    (installed / "stillwater").symlink_to(ROOT / "stillwater")
    write_program(programs / "stillwater", _COMMAND.format(python=sys.executable))
    return installed, programs


def write_program(path: Path, text: str) -> None:
    """Write a script that can be called."""
    path.write_text(text)
    path.chmod(0o755)


def split(body: str) -> Iterator[str]:
    """Yield a block's statements: lines, with those that they are continued by."""
    lines = iter(re.sub(r"^ {3}", "", body, flags=re.MULTILINE).splitlines())
    for line in lines:
        whole = line
        while whole.endswith("\\"):
            whole += f"\n{next(lines)}"
        if fed := _HEREDOC.search(whole):
            for below in lines:
                whole += f"\n{below}"
                if below == fed[1]:
                    break
        # A remark at the end of a line; what a command is fed is its own.
        if statement := (whole if fed else _COMMENT.sub("", whole)).strip():
            yield statement
