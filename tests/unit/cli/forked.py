"""Runs the command as a process of its own: a fork of one that has imported it already.

A process that only imports the command line takes half a second; some thirty tests look at how one
ends. What a fork cannot show, its first imports, test_terminal and test_entry show of a fresh one.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
# Forks for every line, a program with where it runs and writes; says how each one ended.
SERVER = """
import functools, gc, json, os, sys
import typer.main
from cli import __main__ as entry, answers, check, estimate, main
# Put together before the first fork, as cli's conftest keeps it; and no fork looks for garbage in
# what it shares, which would copy it.
typer.main.get_command = functools.cache(typer.main.get_command)
typer.main.get_command(main.app)
gc.freeze()
for line in sys.stdin:
    told = json.loads(line)
    if os.fork() == 0:
        break
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
else:
    sys.exit()
for number, (path, flags) in enumerate(told["files"]):
    os.dup2(os.open(path, flags), number)
os.environ.clear()
os.environ.update(told["environment"])
sys.argv = told["argv"]
exec(told["program"])
"""
COMMAND = "entry.main()"
_servers: list[subprocess.Popen[str]] = []


def _server() -> subprocess.Popen[str]:
    """Return the process that forks; it ends with its stdin, so with whoever started it."""
    if not _servers:
        command = [sys.executable, "-c", SERVER]
        pipe = subprocess.PIPE
        _servers.append(
            subprocess.Popen(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True)
        )
    return _servers[0]


def end() -> None:
    """End the process that forks, if it was started."""
    while _servers:
        server = _servers.pop()
        with server:
            assert server.stdin is not None
            server.stdin.close()


def run_forked(
    program: str,
    arguments: tuple[str, ...] = (),
    *,
    environment: Mapping[str, str] | None = None,
    stdout: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program, in which `entry` is the command's; or the command itself, with COMMAND."""
    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        said, complained = Path(folder, "stdout"), Path(folder, "stderr")
        written = os.O_WRONLY | os.O_CREAT
        told = {
            "program": program,
            "argv": ["stillwater", *arguments],
            "environment": dict(os.environ if environment is None else environment),
            "files": [
                (os.devnull, os.O_RDONLY),
                (stdout or str(said), written),
                (str(complained), written),
            ],
        }
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(told) + "\n")
        server.stdin.flush()
        ended = server.stdout.readline()
        assert ended, "The process that forks has ended."
        return subprocess.CompletedProcess(
            ["stillwater", *arguments],
            int(ended),
            "" if stdout else said.read_text(),
            complained.read_text(),
        )
