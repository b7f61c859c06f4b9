"""Gets what the twin runs on: prerequisites checked, tools built once, with progress."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

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
from local.place import make_cache
from local.spark import classes
from local.tools import build, prerequisites
from local.tools.catalogue import TOOLS

Show = Callable[[build.Progress], None]


def prepare_tools(console: Console) -> None:
    """Build or fetch whatever the twin needs that the per-user cache does not hold yet.

    Raises MissingPrerequisite, before anything is built, with a sentence for each.
    """
    missing = prerequisites.check_prerequisites()
    if missing:
        raise MissingPrerequisite("\n".join(missing))
    seconds = estimate_seconds()
    if seconds == 0:
        return
    cache = make_cache()
    console.print(
        f"Building the twin's tools into {cache}, once: about {in_minutes(seconds)} on two cores "
        f"where Go has their sources, and longer by the download where it does not.",
        soft_wrap=True,
        highlight=False,
    )
    started = time.monotonic()
    with _bars(console, seconds) if console.is_terminal else _lines(console) as show:
        build.build_all(show)
        jars.fetch(show)
        _record_sparks_classes(show)
    console.print(f"Tools ready after {time.monotonic() - started:.0f} s.", highlight=False)


def estimate_seconds() -> int:
    """Return how long a set-up takes that starts now; 0 when there is nothing to do."""
    own = {"pulumi"} if prerequisites.own_pulumi() else set()
    absent = [tool for tool in TOOLS if tool.name not in own and not tool.home.is_dir()]
    building = sum(binary.estimate_seconds for tool in absent for binary in tool.binaries)
    recording = 0 if classes.ready() else classes.ESTIMATE_SECONDS
    return building + recording + (0 if jars.ready() else jars.ESTIMATE_SECONDS)


def _record_sparks_classes(show: Show) -> None:
    if classes.ready():
        return
    step = build.Progress(
        "Spark's classes", classes.version(), "building", classes.ESTIMATE_SECONDS
    )
    show(step)
    started = time.monotonic()
    classes.record()
    show(replace(step, state="built", seconds=time.monotonic() - started))


def in_minutes(seconds: float) -> str:
    """Return a duration as a person would say it: 40 s, 1 min, 11 min."""
    return f"{seconds:.0f} s" if seconds < 55 else f"{round(seconds / 60)} min"


def _title(step: build.Progress) -> str:
    return f"{step.name} {step.version}"


@contextlib.contextmanager
def _lines(console: Console) -> Iterator[Show]:
    """Print a line when something starts and when it ends: for logs, where nothing moves."""

    def show(step: build.Progress) -> None:
        said = {
            "building": f"about {step.estimate_seconds} s",
            "built": f"took {step.seconds:.0f} s",
            "waiting": "another build of it is under way",
            "own": "your own",
            "cached": "in the cache",
        }[step.state]
        console.print(f"{step.state:>8}  {_title(step)}: {said}", soft_wrap=True, highlight=False)

    yield show


@contextlib.contextmanager
def _bars(console: Console, seconds: int) -> Iterator[Show]:
    """Show a bar for the whole, in estimated seconds, and a line for each thing that is built."""
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", style="dim"),
    )
    with Progress(*columns, console=console) as progress:
        whole = progress.add_task("everything", total=seconds, note=f"about {in_minutes(seconds)}")
        tasks: dict[str, TaskID] = {}

        def show(step: build.Progress) -> None:
            if step.state == "building":
                note = f"about {step.estimate_seconds} s"
                tasks[step.name] = progress.add_task(_title(step), total=None, note=note)
            elif step.state == "built":
                note = f"took {step.seconds:.0f} s"
                progress.update(tasks[step.name], total=1, completed=1, note=note)
                progress.advance(whole, step.estimate_seconds)
            elif step.state == "waiting":
                progress.console.print(f"waiting for another build of {_title(step)}")

        yield show
