"""Gets what the twin runs on: prerequisites checked, tools built once, with progress."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from core.errors import MissingPrerequisite
from local.kafka import jars
from local.tools import build, prerequisites
from local.tools.catalogue import TOOLS


def prepare_tools(console: Console) -> None:
    """Build or fetch whatever the twin needs that the per-user cache does not hold yet."""
    missing = prerequisites.check_prerequisites()
    if missing:
        raise MissingPrerequisite("\n".join(missing))
    absent = [tool for tool in TOOLS if not tool.home.is_dir()]
    if not absent and jars.ready():
        return
    seconds = sum(binary.estimate_seconds for tool in absent for binary in tool.binaries)
    console.print(
        f"Building the twin's tools into the per-user cache, once: about "
        f"{max(1, round((seconds + jars.ESTIMATE_SECONDS) / 60))} min on two cores."
    )
    started = time.monotonic()
    with _Bars(console) as bars:
        build.build_all(bars.show)
        jars.fetch(bars.show)
    console.print(f"Tools ready after {time.monotonic() - started:.0f} s.")


class _Bars:
    """One line per tool: the estimate, the time so far, done."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", style="dim"),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, step: build.Progress) -> None:
        title = f"{step.name} {step.version}"
        if step.state == "building":
            note = f"about {step.estimate_seconds} s"
            self._tasks[step.name] = self._progress.add_task(title, total=None, note=note)
            if not self._progress.console.is_terminal:
                self._progress.console.print(f"building {title}, {note}")
        elif step.state == "waiting":
            self._progress.console.print(f"waiting for another build of {title}")
        elif step.state == "built":
            note = f"took {step.seconds:.0f} s"
            self._progress.update(self._tasks[step.name], total=1, completed=1, note=note)
        else:
            note = "your own" if step.state == "own" else "in the cache"
            self._progress.console.print(f"{title}: {note}", style="dim")
