"""Builds or fetches what tests need, before the first of them: python -m tests.tools [PROGRAM ...]

Without a name it is all that `make test` needs, with --long what the long tests need too; with
names, those programs alone. A test that builds its own tool takes minutes from whatever it times;
under STILLWATER_BUILD=never, which `make test` sets, it fails instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from rich.console import Console

from core.ground.errors import MissingPrerequisite
from local.commands.setup import prepare_tools
from local.spark import iceberg
from local.tools import build, prerequisites
from local.tools.catalogue import BINARIES, FOR_LONG_TESTS, FOR_TESTS
from tests.integration import connect_workers
from tests.integration.lint import iam_judge, linters

LONG = "--long"
Made = Mapping[str, Callable[[], object]]
# Python's own packages, which nothing that Go or Maven does can be in the way of.
PACKAGES: Made = {"Checkov and parliament": linters.python, "the judge of IAM": iam_judge.install}
# By Maven, which shares its folder of what it has fetched with no second Maven.
BY_MAVEN: Made = {"Connect 3.8": connect_workers.jars_of_3_8, "Iceberg": iceberg.jar}


def main(arguments: Sequence[str]) -> int:
    """Make what is missing; say what took longer than a look. Return the exit code."""
    console = Console()
    named = [argument for argument in arguments if argument != LONG]
    if named:
        _make(console, {name: partial(build.build, BINARIES[name]) for name in named})
        return 0
    if missing := prerequisites.check_prerequisites():
        raise MissingPrerequisite("\n".join(missing))
    tools = (*FOR_TESTS, *(FOR_LONG_TESTS if LONG in arguments else ()))
    with ThreadPoolExecutor(1) as beside:
        packages = beside.submit(_make, console, PACKAGES)
        prepare_tools(console)
        _make(console, {"programs that tests alone need": partial(build.build_all, tools=tools)})
        _make(console, BY_MAVEN)
        packages.result()
    return 0


def _make(console: Console, made: Made) -> None:
    for name, make in made.items():
        started = time.monotonic()
        make()
        seconds = time.monotonic() - started
        if seconds > 1:
            console.print(f"   ready  {name}: took {seconds:.0f} s", highlight=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
