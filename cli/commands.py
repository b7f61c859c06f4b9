"""Groups of commands whose help is whole at every width: no box, no word and no sentence cut."""

from __future__ import annotations

import shutil
from typing import Any

from typer.core import TyperGroup

WIDEST = 100


class Commands(TyperGroup):
    """A group that lists its commands with what each does; click's own cuts that to one line."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        if named.get("parent") is None:
            # Click takes no window to be narrower than 50.
            columns = shutil.get_terminal_size().columns
            named.setdefault("terminal_width", min(columns, WIDEST))
        return super().make_context(*arguments, **named)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [
            (name, _first_paragraph(command.help or ""))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def _first_paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())
