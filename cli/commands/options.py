"""Lists commands by their groups, with examples, whole at every width; options that many take."""

from __future__ import annotations

import shutil
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.terminal import Terminal

WIDEST = 100

Environment = Annotated[str, typer.Argument(metavar="ENV", help="Environment; `local`: the twin.")]
OwnEnvironment = Annotated[str, typer.Argument(metavar="ENV", help="The stacks' environment.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]
AsJsonLines = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]

console = Terminal()
complaints = Terminal(stderr=True)


def examples(*lines: str) -> str:
    """Return what a command's help ends with, each line as it is typed after `stillwater`."""
    # Click leaves a paragraph behind \b as it is written.
    return "\b\nExamples:\n" + "\n".join(f"  stillwater {line}" for line in lines)


class Commands(TyperGroup):
    """A group that lists its commands with what each does; click's own cuts that to one line."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        if named.get("parent") is None:
            # Click takes no window to be narrower than 50.
            columns = shutil.get_terminal_size().columns
            named.setdefault("terminal_width", min(columns, WIDEST))
        return super().make_context(*arguments, **named)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = command.rich_help_panel
                heading = panel if isinstance(panel, str) else "Commands"
                row = (name, _first_paragraph(command.help or ""))
                sections.setdefault(heading, []).append(row)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def _first_paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())
