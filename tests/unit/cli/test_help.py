"""What `-h` says is whole at every width, for every command."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

from cli.main import app
from tests.every_case import every_case

WIDTHS = ("40", "80", "200")


def _commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(below, (*words, name))


COMMANDS = dict(_commands(typer.main.get_command(app)))


@every_case("width", WIDTHS)
@every_case("words", COMMANDS, ids=" ".join)
def test_help_cuts_no_word(words: tuple[str, ...], width: str) -> None:
    done = CliRunner().invoke(app, [*words, "-h"], env={"COLUMNS": width, "TERMINAL_WIDTH": width})
    assert done.exit_code == 0, done.output
    assert "…" not in done.output
    said = re.sub(r"\s+", "", done.output)
    command = COMMANDS[words]
    for each in command.params:
        for name in each.opts if each.param_type_name == "option" else ():
            assert re.search(rf"(^|[\s,]){name}\b", done.output), name
        assert re.sub(r"\s+", "", getattr(each, "help", None) or "") in said
    assert re.sub(r"\s+", "", (command.help or "").replace("\b", "")) in said


@every_case("words", COMMANDS, ids=" ".join)
def test_a_paragraph_of_help_breaks_where_the_window_ends(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words, "-h"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    lines = [line for line in done.output.splitlines() if line.startswith("  ")]
    for line, after in itertools.pairwise(lines):
        if re.match(r"  [a-z]\w+ ?", after) and not line.rstrip().endswith((".", ":")):
            assert len(line) + len(after.split()[0]) + 1 > 60, (line, after)
