"""Runs one Pulumi program: the child process of the language host.

Run as a file with -P, not as a module: beside the installed packages, imports must see the
program's own directory alone, as they do under the engine's own language host. The engine's run
request comes as JSON on standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import signal
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import grpc
import pulumi
from pulumi.runtime import config, settings
from pulumi.runtime.stack import run_in_stack

BAIL = 32


def _mistake(error: BaseException) -> bool:
    """Say whether an exception is a message to the user, complete without a traceback."""
    names = {cls.__name__ for cls in type(error).__mro__}
    return isinstance(error, pulumi.RunError) or "StillwaterError" in names


def _traceback(error: BaseException) -> str:
    """Return the traceback below this file: what led to the program is of no use to its author."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__
        and "runpy" not in frame.filename
        and not frame.filename.endswith(("pulumi/runtime/stack.py", "asyncio/base_events.py"))
    ]
    lines = traceback.format_list(frames)
    return "".join([*lines, *traceback.format_exception_only(type(error), error)]).rstrip()


def _report(error: BaseException) -> None:
    # Without an engine (it was killed, or the user pressed Ctrl-C) nobody is left to tell.
    with suppress(Exception):
        pulumi.log.error(str(error) if _mistake(error) else _traceback(error))


def _engine_left(error: BaseException) -> bool:
    unavailable = isinstance(error, grpc.RpcError) and error.code() == grpc.StatusCode.UNAVAILABLE
    # It has said why already: a component that could not be made, for one.
    return unavailable or str(error) == "resource monitor shut down"


def _configure(request: dict[str, Any]) -> None:
    config.set_all_config(request["config"], request["secret_keys"])
    settings.configure(
        settings.Settings(
            project=request["project"],
            stack=request["stack"],
            monitor=request["monitor"],
            engine=request["engine"],
            parallel=request["parallel"],
            dry_run=request["dry_run"],
            organization=request["organization"],
            root_directory=request["root_directory"],
        )
    )


async def _finish(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left, or its "Task was destroyed but it is pending" lands in the output."""
    pending = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


def run(request: dict[str, Any]) -> int:
    """Run the program against the engine and return the process's exit code."""
    program = Path(request["program"]).resolve()
    # As `python DIRECTORY` does.
    sys.path.insert(0, str(program if program.is_dir() else program.parent))
    sys.argv = [str(program), *request["arguments"]]
    _configure(request)

    def execute() -> None:
        runpy.run_path(str(program), run_name="__main__")

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    # Registrations are blocking calls on the loop's threads: a few threads would serialise them.
    loop.set_default_executor(ThreadPoolExecutor(max_workers=min(request["parallel"] or 64, 64)))
    try:
        loop.run_until_complete(run_in_stack(execute))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException as error:  # noqa: BLE001 - whatever the program raises
        if not _engine_left(error):
            _report(error)
        return BAIL
    finally:
        with suppress(Exception):
            loop.run_until_complete(_finish(loop))
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _end_quietly(_number: int, _frame: FrameType | None) -> None:
    # The engine has left, or is about to: an exception here would be its last words.
    os._exit(BAIL)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end_quietly)
    sys.exit(run(json.loads(sys.stdin.read())))
