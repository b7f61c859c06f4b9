"""What `-h` says is whole at every width, in groups, and with examples that can be typed."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

from cli.main import GROUPS, app
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


def test_every_command_is_in_a_group() -> None:
    root = COMMANDS[()]
    assert {command.rich_help_panel for command in root.commands.values()} == set(GROUPS)
    said = CliRunner().invoke(app, ["-h"]).output
    places = [said.index(f"\n{heading}:\n") for heading in GROUPS]
    assert places == sorted(places)


RUNNABLE = {words: each for words, each in COMMANDS.items() if not hasattr(each, "commands")}


@every_case("words", RUNNABLE, ids=" ".join)
def test_a_command_has_two_examples_that_can_be_typed(words: tuple[str, ...]) -> None:
    lines = [line.strip() for line in RUNNABLE[words].epilog.splitlines()]
    examples = [line for line in lines if line.startswith("stillwater ")]
    assert len(examples) >= 2
    for example in examples:
        assert _parsed_command(shlex.split(example)[1:]) is RUNNABLE[words], example
    assert examples[0] in CliRunner().invoke(app, [*words, "-h"]).output


def _parsed_command(arguments: list[str]) -> Any:
    """Return the command that click chooses for what is typed, once it has parsed all of it."""
    context = COMMANDS[()].make_context("stillwater", arguments)
    while hasattr(context.command, "commands"):
        rest = [*context._protected_args, *context.args]
        _, command, rest = context.command.resolve_command(context, rest)
        context = command.make_context(command.name, rest, parent=context)
    return context.command
