"""cli.terminal and the command's start: nothing is lost in a narrow window, and it starts light."""

from __future__ import annotations

import io
import subprocess
import sys
from importlib.metadata import version

import pytest
from rich.console import Group
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from cli.main import app
from cli.terminal import Terminal
from infra.spec import ROOT

# Each takes a second to import, or is an extra that may not be there.
HEAVY = {"boto3", "jinja2", "local", "matplotlib", "pandas", "pulumi", "pyarrow", "pyspark"}
# Prints the command line's modules that cannot be imported without an extra.
WITHOUT_EXTRAS = """
import importlib, pkgutil, sys, cli
for name in ("local", "matplotlib", "pandas", "pyarrow", "pyspark"):
    sys.modules[name] = None
for found in pkgutil.walk_packages(cli.__path__, "cli."):
    try:
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    except ModuleNotFoundError:
        print(found.name)
"""
WORDS = "foundation of-a-cluster-with-a-long-name i-0123456789abcdef0 [brackets] replaced"


def shown(width: int | None, *objects: object) -> str:
    file = io.StringIO()
    Terminal(file=file, width=width).print(*objects)
    return file.getvalue()


def table() -> Table:
    made = Table("layer", "name", "instance", "note", "")
    made.add_row(*WORDS.split())
    return made


@pytest.mark.parametrize("width", [40, 80, 200, None])
def test_no_word_of_a_table_is_cut(width: int | None) -> None:
    for printed in (table(), Group(Text("head"), table())):
        said = shown(width, printed)
        assert all(word in said for word in WORDS.split()), said


def test_a_sentence_is_one_line_and_its_brackets_are_no_markup() -> None:
    sentence = f"{WORDS} {WORDS} {WORDS}"
    assert shown(40, sentence) == f"{sentence}\n"
    assert shown(40) == "\n"


@pytest.mark.parametrize("words", [["-h"], ["check", "-h"], ["rotate", "start", "-h"]])
def test_help_is_had_by_its_short_name(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, "Usage" in done.stdout) == (0, True)


def test_the_command_says_its_version_and_completes_itself() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"stillwater {version('stillwater')}\n"
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).stdout


def test_start_check_and_estimate_import_nothing_heavy() -> None:
    needed = "cli.main, cli.stack_settings, infra.spec, cli.estimate"
    said = subprocess.run(
        [sys.executable, "-c", f"import sys, {needed}; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not HEAVY & {name.partition(".")[0] for name in said}
    # A sixth of the start of `check`: a description is read without incidents.
    assert not [name for name in said if name.startswith("core.incidents")]


def test_only_the_report_needs_what_an_extra_brings() -> None:
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert set(said) <= {"cli.emr"}, said
