"""Judges what a person reads by the style in `.vale/`: `python -m tests.prose [PATH ...]`.

Documents are judged as they stand. From programs and data the sentences are taken out first: each
text of at least MOST_LABEL_WORDS words that is no docstring, with a name in the place of a value.
Without Go it says so, and judges nothing.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from core.ground.errors import MissingPrerequisite
from local.tools import build
from local.tools.catalogue import BINARIES

REPOSITORY = Path(__file__).parents[1]
CONFIGURATION = REPOSITORY / ".vale.ini"
# What is meant as it stands, with the reason.
TABLE = Path(__file__).with_name("prose.toml")
DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs")
PROGRAMS = ("core", "cli", "handlers", "infra", "local", "spark", "stacks")
# A text of fewer words is a label or a key.
MOST_LABEL_WORDS = 4
HELP = "cli/commands"  # their docstrings are what --help prints
_READERS = {
    ".toml": tomllib.loads,
    ".yaml": lambda text: list(yaml.safe_load_all(text)),
    ".json": json.loads,
    ".js": re.compile(r'(?<=")[^"\n]+(?=")').findall,
    ".html": re.compile(r"(?<=>)[^<>]+(?=<)").findall,
}
# Fields, regular expressions, queries, markup and paths have words as well.
_NO_PROSE = re.compile(
    r"[\\{}=<>|]{2}|\(\?|https?://\S+$|^\W*(SELECT|sum|rate|max|min|avg)\b|^<|^:root|^default-src"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A place that the style refuses."""

    path: str
    line: int
    rule: str
    message: str
    match: str

    def is_meant(self, exception: Mapping[str, str]) -> bool:
        """Say whether an exception names this place: its path, and what stands there."""
        return fnmatch(self.path, exception["path"]) and fnmatch(self.rule, exception["rule"])

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message} [{self.rule}]"


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each text of a program or of its data that a person reads, with its line."""
    source = path.read_text()
    found = _of_program(path, source) if path.suffix == ".py" else _of_data(path, source)
    for line, text in found:
        said = " ".join(text.split())
        if len(said.split()) > MOST_LABEL_WORDS and not _NO_PROSE.search(said):
            yield line, said


def _of_program(path: Path, source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    passed = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                shown = isinstance(node, ast.FunctionDef) and node.decorator_list
                if not (shown and HELP in path.as_posix()):
                    passed.add(first.value)
    for node in ast.walk(tree):
        if node in passed:
            continue
        if isinstance(node, ast.JoinedStr):
            passed.update(node.values)
            yield node.lineno, "".join(map(_spoken, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _spoken(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "Name"


def _of_data(path: Path, source: str) -> Iterator[tuple[int, str]]:
    for text in _strings(_READERS[path.suffix](source)):
        start = source.find(text[:30].split("\n")[0])
        yield source.count("\n", 0, max(start, 0)) + 1, text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def judge(paths: Iterable[Path], vale: Path) -> Iterator[Fault]:
    """Yield the faults of documents, and of the texts in programs and data."""
    documents, lines = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            if path.suffix == ".md":
                documents.append(path)
                continue
            found = list(texts(path))
            if found:
                taken = Path(folder) / f"{len(lines)}.md"
                taken.write_text("".join(f"{_as_paragraph(text)}\n\n" for _, text in found))
                lines[str(taken)] = path, [line for line, _ in found]
        done = subprocess.run(
            [vale, f"--config={CONFIGURATION}", "--output=JSON", "--no-exit", *documents, *lines],
            capture_output=True,
            text=True,
            check=True,
            cwd=REPOSITORY,
        )
    for name, alerts in json.loads(done.stdout).items():
        path, places = lines.get(name, (Path(name), None))
        for alert in alerts:
            line = alert["Line"]
            yield Fault(
                os.path.relpath(path, REPOSITORY),
                line if places is None else places[(line - 1) // 2],
                alert["Check"].removeprefix("Stillwater."),
                alert["Message"],
                alert["Match"],
            )


def _as_paragraph(text: str) -> str:
    """Return a text that Markdown reads as one paragraph."""
    return re.sub(r"^([-*+#>|]|\d+\.)", r"\\\1", text).replace("<", "&lt;")


def every_path(below: Iterable[Path]) -> Iterator[Path]:
    """Yield the documents, programs and data with texts at or below some paths."""
    for path in below:
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            # A template is not YAML yet, and the schemas in docs/ are made from the code.
            is_data = each.suffix in _READERS and not {"templates", "docs"} & {*each.parts}
            if is_data or each.suffix in {".py", ".md"}:
                yield each


def main(arguments: list[str]) -> int:
    """Print the faults of some paths, or of everything; 1 where there is one."""
    console = Console(soft_wrap=True, highlight=False)
    tool = BINARIES["vale"]
    try:
        build.build(tool)
    except MissingPrerequisite as missing:
        console.print(f"The prose is not judged. {missing}")
        return 0
    asked = [Path(each).resolve() for each in arguments or (*DOCUMENTS, *PROGRAMS)]
    found = judge(every_path(asked), tool.home / "bin" / "vale")
    exceptions = tomllib.loads(TABLE.read_text())["exceptions"]
    faults = [str(each) for each in found if not any(map(each.is_meant, exceptions))]
    for fault in sorted(faults):
        console.print(fault, markup=False)
    console.print(f"Prose: {len(faults)} faults of style.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
