"""The command's entry: how it ends is settled before anything heavy is imported.

Importing the command line takes a second on a slow machine, and a Ctrl-C in that second is one like
any other: a sentence and exit code 130. A user's mistake is a sentence and exit code 1.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

# The module whose `app` is the command.
COMMAND = "cli.main"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WITHOUT_TWIN = "This command runs on the twin, which is a distribution of its own"
WITHOUT_REPORT = "This command reads a bill with Spark and draws it"
REFUSED = 1
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS}
REPORT_PACKAGES = {"matplotlib", "numpy", "pandas", "py4j", "pyarrow", "pyspark"}
_asked: list[int] = []


def main(arguments: Sequence[str] | None = None, *, module: str = COMMAND) -> None:
    """Run the command whose `app` is in a module, and exit."""
    for number in SIGNALS:
        # Ignored by whoever started us, as nohup does, a signal stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        # A locale without UTF-8 shows a question mark for λ, never a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        _run(arguments, module)
    except BaseException:
        if _asked:
            # Whatever surfaces after a signal is that signal: libraries turn a KeyboardInterrupt
            # into errors of their own.
            _stop(_asked[0])
        raise


def _run(arguments: Sequence[str] | None, module: str = COMMAND) -> None:
    from cli import terminal  # noqa: PLC0415 - after the handlers are in place
    from core.ground.errors import StillwaterError  # noqa: PLC0415

    given = sys.argv[1:] if arguments is None else arguments
    refused = partial(_print_refusal, as_json=terminal.FLAG in given)
    try:
        importlib.import_module(module).app(args=arguments)
    except StillwaterError as error:
        if not _asked:
            sys.exit(refused(str(error), terminal.problems_of(error)))
        raise
    except ModuleNotFoundError as error:
        if error.name == "local":
            sys.exit(refused(_not_installed(WITHOUT_TWIN, "twin")))
        if error.name in REPORT_PACKAGES:
            sys.exit(refused(_not_installed(WITHOUT_REPORT, "report")))
        raise
    except OSError as error:
        if _asked or (sentence := _file_sentence(error)) is None:
            raise
        sys.exit(refused(sentence))
    except Exception as error:
        if _asked or not _is_refusal_of_aws(error):
            raise
        from cli.aws import out_of_reach  # noqa: PLC0415

        sys.exit(refused(out_of_reach("AWS refuses, or is not reached.", error)))


def _file_sentence(error: OSError) -> str | None:
    """Say which file the system refuses, or that there is no room; None for anything else."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename} cannot be read or written: {reason}; name another, or repair it."
    if error.errno == errno.ENOENT:
        return "The current directory is gone; change to one that is there."
    if error.errno in NO_ROOM:
        return f"The output could not be written: {reason}; make room, and run it again."
    return None


def _is_refusal_of_aws(error: Exception) -> bool:
    """Say whether AWS refused or was not reached; commands that know more say it themselves."""
    if "botocore.exceptions" not in sys.modules:
        return False
    from handlers.adapters.calls import NO_ANSWER  # noqa: PLC0415 - the other commands need no boto3

    return isinstance(error, NO_ANSWER)


def _not_installed(what: str, extra: str) -> str:
    from cli.project import release  # noqa: PLC0415

    install = release.installed_release().installing(extra)
    return f"{what}, and that is not installed: `{install}` brings it."


def _print_refusal(sentence: str, problems: Sequence[str] = (), *, as_json: bool) -> int:
    """Say why the command is refused, to a program on stdout as well; return the exit code."""
    from cli import terminal  # noqa: PLC0415

    terminal.Terminal(stderr=True).print(sentence, style="red")
    if as_json:
        # Whoever reads stdout may have gone, or the disk be full: that is what is refused.
        with contextlib.suppress(OSError):
            sys.stdout.write(f"{terminal.refusal(sentence, REFUSED, problems)}\n")
            sys.stdout.flush()
    return REFUSED


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _asked.append(number)
    # Threads and finalizers that fall over now have nothing to tell the user.
    threading.excepthook = lambda _: None
    sys.unraisablehook = lambda _: None
    raise KeyboardInterrupt(signal.Signals(number).name)


def _stop(number: int) -> NoReturn:
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    _end_children()
    # The terminal may be gone: that is what SIGHUP says.
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.write("Stopped; nothing was left running on this machine.\n")
        sys.stderr.flush()
    # Every block has cleaned up. What remains is threads that wait for somebody who is gone.
    os._exit(128 + number)


def _end_children() -> None:
    """Kill what this process started and no block of its own knows of.

    A Spark JVM whose start is interrupted is one: pyspark forgets it, and it waits for ever.
    """
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # pid (name, which may hold spaces and brackets) state parent ...
            parent = stat.read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                os.kill(int(stat.parent.name), signal.SIGKILL)


if __name__ == "__main__":
    main()
