"""Builds or fetches what tests need, before the first of them: python -m tests.tools [PROGRAM ...]

Without a name it is all that `make test` needs; with names, those programs alone.
A test that builds its own tool takes minutes from whatever it times; under STILLWATER_BUILD=never,
which `make test` sets, it fails instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich.console import Console

from cli.setup import prepare_tools
from local.spark import iceberg
from local.tools import build
from local.tools.catalogue import BINARIES, FOR_TESTS
from tests.integration import connect_workers, strimzi_plugin
from tests.integration.lint import iam_judge, linters


def needed() -> dict[str, Callable[[], object]]:
    """Return what makes each thing that tests need beside the twin's tools, unless it is there."""
    tools = {tool.name: lambda tool=tool: build.build(tool) for tool in FOR_TESTS}
    return {
        **tools,
        "Connect 3.8": connect_workers.jars_of_3_8,
        "Iceberg": iceberg.jar,
        "Checkov and parliament": linters.python,
        "the judge of IAM": iam_judge.install,
        "Strimzi's plugin": strimzi_plugin.build,
    }


def main(programs: Sequence[str]) -> None:
    """Make what is missing; say what took longer than a look."""
    console = Console()
    if not programs:
        prepare_tools(console)
    named: Mapping[str, Callable[[], object]] = {
        name: partial(build.build, BINARIES[name]) for name in programs
    }
    for name, make in (named or needed()).items():
        started = time.monotonic()
        make()
        seconds = time.monotonic() - started
        if seconds > 1:
            console.print(f"   ready  {name}: took {seconds:.0f} s", highlight=False)


if __name__ == "__main__":
    main(sys.argv[1:])
