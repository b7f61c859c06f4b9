"""A page that is drawn again and again, until what it shows is over or somebody presses Ctrl-C.

Ctrl-C goes through: rich gives the terminal back, and the command's entry (cli.__main__) ends with
a sentence and exit code 130. What cannot be read for a moment is said on the page, not an end; what
cannot be read at the first look is an end, since nothing says that it ever could."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from cli.aws import out_of_reach
from core.ground.errors import StillwaterError
from handlers.adapters.calls import NO_ANSWER

T = TypeVar("T")


# A page, and what it has come to; None: it goes on.
Page = tuple[RenderableType, T | None]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a page is drawn, by which clock."""

    seconds: float
    now: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep


def watch(console: Console, look: Callable[[float], Page[T]], pace: Pace) -> T:
    """Draw what `look` returns for each moment; return what it has come to."""
    page, end = look(pace.now())
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(page, refresh=True)
            if end is not None:
                return end
            pace.pause(pace.seconds)
            try:
                page, end = look(pace.now())
            except (StillwaterError, *NO_ANSWER) as error:
                page = Text(out_of_reach("AWS does not answer.", error), "red")
