"""Gets what the twin runs on: prerequisites checked, tools built once, with progress."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from core.ground.errors import MissingPrerequisite
from local.kafka import jars
from local.place import make_cache
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
    parts = absent()
    if not parts:
        return
    pace = SetupPace(len(parts), sum(parts))
    cache = make_cache()
    console.print(
        f"Building the twin's tools into {cache}, once: {len(parts)} parts, about "
        f"{rough_duration(pace.left_seconds)} on two cores. "
        f"Sources that Go has not downloaded yet add their time.",
        soft_wrap=True,
        highlight=False,
    )
    started = time.monotonic()
    with _bars(console, pace) if console.is_terminal else _lines(console, pace) as show:
        build.build_all(show)
        jars.fetch(show)
    console.print(f"Tools ready after {time.monotonic() - started:.0f} s.", highlight=False)


def absent() -> list[int]:
    """Return how long each part takes that is still to be built, as estimated on two cores."""
    own = {"pulumi"} if prerequisites.own_pulumi() else set()
    tools = [tool for tool in TOOLS if tool.name not in own and not tool.home.is_dir()]
    building = [binary.estimate_seconds for tool in tools for binary in tool.binaries]
    return building if jars.are_fetched() else [*building, jars.ESTIMATE_SECONDS]


@dataclass
class SetupPace:
    """How many parts are done, and how long the others take at the rate of those."""

    parts: int
    estimated_seconds: float
    done: int = 0
    done_estimated: float = 0.0
    took: float = 0.0

    def take(self, step: build.Progress) -> str:
        """Count a part that is built; return how far that is."""
        self.done += 1
        self.done_estimated += step.estimate_seconds
        self.took += step.seconds
        return f"{self.done} of {max(self.parts, self.done)}{self._time_left()}"

    @property
    def left_seconds(self) -> float:
        rate = self.took / self.done_estimated if self.done_estimated else 1.0
        return rate * max(0.0, self.estimated_seconds - self.done_estimated)

    def _time_left(self) -> str:
        return f", about {rough_duration(self.left_seconds)} left" if self.left_seconds else ""


def rough_duration(seconds: float) -> str:
    """Return a duration as a person would say it: 40 s, 1 min, 11 min."""
    return f"{seconds:.0f} s" if seconds < 55 else f"{round(seconds / 60)} min"


def _title(step: build.Progress) -> str:
    return f"{step.name} {step.version}"


@contextlib.contextmanager
def _lines(console: Console, pace: SetupPace) -> Iterator[Show]:
    """Print a line when something starts and when it ends: for logs, where nothing moves."""

    def show(step: build.Progress) -> None:
        said = {
            "building": f"about {step.estimate_seconds} s",
            "built": f"took {step.seconds:.0f} s",
            "waiting": "another build of it is under way",
            "own": "your own",
            "cached": "in the cache",
        }[step.state]
        if step.state == "built":
            said += f" ({pace.take(step)})"
        console.print(f"{step.state:>8}  {_title(step)}: {said}", soft_wrap=True, highlight=False)

    yield show


@contextlib.contextmanager
def _bars(console: Console, pace: SetupPace) -> Iterator[Show]:
    """Show a bar for the whole, in estimated seconds, and a line for each thing that is built."""
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", style="dim"),
    )
    with Progress(*columns, console=console) as progress:
        seconds = pace.estimated_seconds
        note = f"0 of {pace.parts}, about {rough_duration(seconds)}"
        whole = progress.add_task("everything", total=seconds, note=note)
        tasks: dict[str, TaskID] = {}

        def show(step: build.Progress) -> None:
            if step.state == "building":
                note = f"about {step.estimate_seconds} s"
                tasks[step.name] = progress.add_task(_title(step), total=None, note=note)
            elif step.state == "built":
                note = f"took {step.seconds:.0f} s"
                progress.update(tasks[step.name], total=1, completed=1, note=note)
                progress.update(whole, advance=step.estimate_seconds, note=pace.take(step))
            elif step.state == "waiting":
                progress.console.print(f"waiting for another build of {_title(step)}")

        yield show
