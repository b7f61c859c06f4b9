"""The sentences that `make check` takes out of programs and data, before Vale judges them."""

from pathlib import Path

from local.tools import build
from local.tools.catalogue import BINARIES
from tests import prose

TOOL = BINARIES["vale"]
PROGRAM = '''"""A module says what it is for, in words."""

def told(name: str) -> str:
    """Return what a reader is told, which is no text."""
    yield "gp3"
    yield "SELECT a FROM b WHERE c", "<svg width=3> a picture of a state </svg>"
    yield f"the volume of {name} is attached to its node"
    return (
        "a sentence that goes on "
        "over two lines")
'''


def test_sentences_come_with_their_lines_without_docstrings_queries_and_markup(
    tmp_path: Path,
) -> None:
    program = tmp_path / "told.py"
    program.write_text(PROGRAM)
    assert sorted(prose.texts(program)) == [
        (7, "the volume of Name is attached to its node"),
        (9, "a sentence that goes on over two lines"),
    ]


def test_a_command_s_docstring_is_read_since_help_prints_it(tmp_path: Path) -> None:
    program = tmp_path / prose.HELP / "look.py"
    program.parent.mkdir(parents=True)
    program.write_text('@app.command()\ndef look():\n    """Say what is there, at once."""\n')
    assert list(prose.texts(program)) == [(3, "Say what is there, at once.")]


def test_a_fault_names_the_file_the_line_and_the_rule(tmp_path: Path) -> None:
    program = tmp_path / "told.py"
    program.write_text('A = "gp3"\nB = "nobody asks the broker again for it"\n')
    build.build(TOOL)
    (fault,) = prose.judge([program], TOOL.home / "bin" / "vale")
    assert (fault.line, fault.rule, fault.match) == (2, "Actor", "nobody")
