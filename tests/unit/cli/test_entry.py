"""How the command starts, helps and ends: a mistake is a sentence and 1, a signal 128 + n."""

import io
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from cli.main import GROUPS, app
from cli.terminal import Terminal
from infra.spec import ROOT
from local.processes import start_time_ticks
from tests.every_case import every_case
from tests.unit.cli.forked import COMMAND, run_forked

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLE = Path("stacks/config/clusters/example.yaml")
STOPPED = "Stopped; nothing was left running on this machine.\n"


def entry(body: str, *, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run the entry with the body in place of the command line."""
    lines = [
        "import signal, threading, time",
        *before.splitlines(),
        "def command(arguments, module):",
        *(f"    {line}" for line in body.splitlines()),
        "entry._run = command",
        "entry.main([])",
    ]
    return run_forked("\n".join(lines))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_a_sentence_and_its_exit_code(number: signal.Signals) -> None:
    done = entry(f"os.kill(os.getpid(), {number:d})\ntime.sleep(60)")
    assert (done.returncode, done.stderr) == (128 + number, STOPPED)


# What happens beside a signal, and changes nothing of how the command ends.
BESIDE_A_SIGNAL = {
    "a library makes an error of it": """
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt:
    raise ImportError('numpy could not be imported')
""",
    "threads and finalizers fall over": """
class Thing:
    def __del__(self):
        raise RuntimeError('finalizer')
def fail():
    raise RuntimeError('thread')
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
finally:
    Thing()
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
""",
    "a thread waits for ever": """
threading.Thread(target=time.sleep, args=(600,)).start()
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
""",
}


@every_case("body", BESIDE_A_SIGNAL.values(), ids=BESIDE_A_SIGNAL)
def test_whatever_happens_beside_a_signal_its_sentence_is_all_that_is_said(body: str) -> None:
    done = entry(body)
    assert (done.returncode, done.stderr) == (130, STOPPED)


def test_a_child_that_nobody_knows_of_is_ended() -> None:
    done = entry(
        "import subprocess\n"
        "sleeper = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "print(subprocess.Popen(sleeper, stdout=subprocess.DEVNULL).pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(60)"
    )
    assert done.returncode == 130
    until = time.monotonic() + 120
    while start_time_ticks(int(done.stdout)) is not None:
        assert time.monotonic() < until, "the child outlived the command"
        time.sleep(0.02)


def test_a_signal_that_was_ignored_from_the_start_stays_ignored() -> None:
    done = entry(
        "os.kill(os.getpid(), signal.SIGHUP)\nprint('still here')",
        before="signal.signal(signal.SIGHUP, signal.SIG_IGN)",
    )
    assert (done.returncode, done.stdout) == (0, "still here\n")


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    done = entry("raise RuntimeError('a fault of ours')")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked(COMMAND, arguments)


def test_a_users_mistake_is_a_sentence_and_exit_code_1() -> None:
    done = run("check", "no-such:100:file.yaml")
    assert done.returncode == 1
    assert done.stderr.startswith("The file no-such:100:file.yaml cannot be read")


REFUSED = "ClientError({'Error': {'Code': 'AccessDenied', 'Message': 'you may not'}}, 'Scan')"


@pytest.mark.parametrize("error", [REFUSED, "ResponseParserError('no XML: <html>')"])
def test_what_aws_refuses_is_a_sentence_whichever_command_asked(error: str) -> None:
    refused = (
        "real = entry._run\n"
        "import cli.main\n"
        "from botocore.exceptions import ClientError\n"
        "from botocore.parsers import ResponseParserError\n"
        "def app(args):\n"
        f"    raise {error}\n"
        "cli.main.app = app"
    )
    done = entry("real([])", before=refused)
    assert done.returncode == 1
    assert done.stderr.startswith("AWS refuses, or is not reached. ")
    assert re.search(r"\(AccessDenied\) when calling the Scan|own words: no XML\.", done.stderr)
    assert "Is the environment up in this account" in done.stderr


def test_where_the_twin_is_not_installed_its_commands_say_what_installs_it() -> None:
    absent = (
        "real = entry._run\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'local':\n"
        "            raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, Absent())"
    )
    done = entry("real(['doctor', 'local'])", before=absent)
    assert done.returncode == 1
    assert re.fullmatch(
        r".*: `\S*python\S* -m pip install .*\[twin\].*` brings it\.\n", done.stderr
    )


WATCHES = {
    "incidents": """
from cli import incidents
class Ledger:
    seen = []
    def incidents(self, *, closed):
        self.seen.append(1)
        if len(self.seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return []
    @property
    def pauses(self):
        return self
    def current(self, now):
        return None
incidents.Cluster.named = lambda environment: Ledger()
incidents.show_all.__kwdefaults__["pace"] = incidents.Pace(seconds=0.01)
""",
    "health": """
from cli import health
from cli.target import Cluster
Cluster.named = lambda environment: None
body = {"status": "healthy", "message": "", "cluster": "orders", "at": "", "seconds": 0}
def look(desk, seen=[]):
    seen.append(1)
    if len(seen) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    return health.Examined(200, {**body, "parts": []})
health.ask = look
health.show.__kwdefaults__["pace"] = health.Pace(seconds=0.01)
""",
    "rotate status": """
from cli import rotate
from core.rotation.run_record import Options, open_run
class Runs(rotate.Rotations):
    seen = []
    def run(self):
        self.seen.append(1)
        if len(self.seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return open_run([], Options(), "ada", 0.0)
rotate.Rotations.named = lambda environment: Runs(None)
rotate.watch_run.__defaults__ = (rotate.Pace(seconds=0.01),)
""",
}


@every_case("command", WATCHES)
def test_ctrl_c_ends_a_watch_with_130_and_gives_the_terminal_back(command: str) -> None:
    body = f"from cli.main import app\napp(args={[*command.split(), 'local', '--watch']!r})"
    before = f"os.environ['FORCE_COLOR'] = '1'\n{WATCHES[command]}"
    done = entry(body, before=before)
    assert (done.returncode, done.stderr) == (130, STOPPED), done.stderr
    assert done.stdout.rindex("\x1b[?25h") > done.stdout.rindex("\x1b[?25l")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["no-such-command"], 2, b"No such command"),
        # A locale without the letter shows another.
        (["check", "λ-é.yaml"], 1, b"The file ?-\xe9.yaml cannot be read"),
    ],
)
def test_a_fresh_process_says_what_is_wrong(command: list[str], code: int, said: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli", *command],
        cwd=REPOSITORY,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
        timeout=120,
        check=False,
    )
    assert done.returncode == code
    assert said in done.stderr
    assert b"Traceback" not in done.stderr


GONE = "os.chdir(d := tempfile.mkdtemp()) or os.rmdir(d) or os.getcwd()"


@pytest.mark.parametrize("call", ["open('/proc/nowhere', 'w')", "open('README.md/page')", GONE])
def test_a_path_that_the_system_refuses_is_a_sentence(call: str) -> None:
    refused = "real = entry._run\nimport cli.main, tempfile\ncli.main.app = lambda args: "
    done = entry("real([])", before=f"{refused}{call}")
    assert done.returncode == 1
    assert re.match(r"(/proc/nowhere|README.md/page) cannot be read or|The current", done.stderr)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("extra", [(), ("--json",)], ids=["table", "json"])
def test_an_output_without_room_is_a_sentence(extra: tuple[str, ...]) -> None:
    done = run_forked(COMMAND, ("estimate", str(EXAMPLE), *extra), stdout="/dev/full")
    assert done.returncode in {1, 120}
    assert done.stderr.startswith("The output could not be written: No space left on device")
    assert "Traceback" not in done.stderr


# Each takes a second to import, or is an extra that may not be there.
HEAVY = {"boto3", "jinja2", "local", "matplotlib", "pandas", "pulumi", "pyarrow", "pyspark"}
# Prints the command line's modules that cannot be imported without an extra.
WITHOUT_EXTRAS = """
import importlib, pkgutil, sys, cli
for name in ("local", "matplotlib", "pandas", "pyarrow", "pyspark"):
    sys.modules[name] = None
for found in pkgutil.walk_packages(cli.__path__, "cli."):
    try:
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    except ModuleNotFoundError:
        print(found.name)
"""
WORDS = "foundation of-a-cluster-with-a-long-name i-0123456789abcdef0 [brackets] prod.yaml:100:7"


def shown(width: int | None, *objects: object) -> str:
    file = io.StringIO()
    Terminal(file=file, width=width).print(*objects)
    return file.getvalue()


def table() -> Table:
    made = Table("layer", "name", "instance", "note", "")
    made.add_row(*WORDS.split())
    return made


@pytest.mark.parametrize("width", [40, 80, 200, None])
def test_no_word_of_a_table_is_cut(width: int | None) -> None:
    for printed in (table(), Group(Text("head"), table())):
        said = shown(width, printed)
        assert all(word in said for word in WORDS.split()), said


def test_a_sentence_is_one_line_and_its_brackets_are_no_markup() -> None:
    sentence = f"{WORDS} {WORDS} {WORDS}"
    assert shown(40, sentence) == f"{sentence}\n"
    assert shown(40) == "\n"
    assert str(Terminal().status("prices of [/x]").status) == "prices of [/x]"


@pytest.mark.parametrize("words", [["-h"], ["check", "-h"], ["rotate", "start", "-h"]])
def test_help_is_had_by_its_short_name(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, "Usage" in done.stdout) == (0, True)


def test_the_command_says_its_version_and_completes_itself() -> None:
    shown = CliRunner().invoke(app, ["--version"]).stdout
    assert shown == f"stillwater {version('stillwater-kafka')}\n"
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).stdout


def fresh(program: str) -> list[str]:
    """Return the words that a program of its own prints."""
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()


def test_start_check_and_estimate_import_nothing_heavy() -> None:
    needed = "cli.main, cli.stack_settings, infra.spec, cli.estimate"
    said = fresh(f"import sys, {needed}; print(*sys.modules)")
    assert not HEAVY & {name.partition(".")[0] for name in said}
    # A sixth of the start of `check`: a description is read without incidents.
    assert not [name for name in said if name.startswith("core.incidents")]


def test_only_the_report_needs_what_an_extra_brings() -> None:
    assert {*fresh(WITHOUT_EXTRAS)} <= {"cli.emr"}


WIDTHS = ("40", "80", "200")


def _commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(below, (*words, name))


COMMANDS = dict(_commands(typer.main.get_command(app)))


@every_case("width", WIDTHS)
@every_case("words", COMMANDS, ids=" ".join)
def test_help_cuts_no_word(words: tuple[str, ...], width: str) -> None:
    done = CliRunner().invoke(app, [*words, "-h"], env={"COLUMNS": width, "TERMINAL_WIDTH": width})
    assert done.exit_code == 0, done.output
    assert "…" not in done.output
    said = re.sub(r"\s+", "", done.output)
    command = COMMANDS[words]
    for each in command.params:
        for name in each.opts if each.param_type_name == "option" else ():
            assert re.search(rf"(^|[\s,]){name}\b", done.output), name
        assert re.sub(r"\s+", "", getattr(each, "help", None) or "") in said
    assert re.sub(r"\s+", "", (command.help or "").replace("\b", "")) in said


@every_case("words", COMMANDS, ids=" ".join)
def test_a_paragraph_of_help_breaks_where_the_window_ends(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words, "-h"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    lines = [line for line in done.output.splitlines() if line.startswith("  ")]
    for line, after in itertools.pairwise(lines):
        if re.match(r"  [a-z]\w+ ?", after) and not line.rstrip().endswith((".", ":")):
            assert len(line) + len(after.split()[0]) + 1 > 60, (line, after)


def test_every_command_is_in_a_group() -> None:
    root = COMMANDS[()]
    assert {command.rich_help_panel for command in root.commands.values()} == set(GROUPS)
    said = CliRunner().invoke(app, ["-h"]).output
    places = [said.index(f"\n{heading}:\n") for heading in GROUPS]
    assert places == sorted(places)


RUNNABLE = {words: each for words, each in COMMANDS.items() if not hasattr(each, "commands")}


@every_case("words", RUNNABLE, ids=" ".join)
def test_a_command_has_two_examples_that_can_be_typed(words: tuple[str, ...]) -> None:
    lines = [line.strip() for line in RUNNABLE[words].epilog.splitlines()]
    examples = [line for line in lines if line.startswith("stillwater ")]
    assert len(examples) >= 2
    for example in examples:
        assert _parsed_command(shlex.split(example)[1:]) is RUNNABLE[words], example
    assert examples[0] in CliRunner().invoke(app, [*words, "-h"]).output


def _parsed_command(arguments: list[str]) -> Any:
    """Return the command that click chooses for what is typed, once it has parsed all of it."""
    context = COMMANDS[()].make_context("stillwater", arguments)
    while hasattr(context.command, "commands"):
        rest = [*context._protected_args, *context.args]
        _, command, rest = context.command.resolve_command(context, rest)
        context = command.make_context(command.name, rest, parent=context)
    return context.command
