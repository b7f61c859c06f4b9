"""A newcomer types what README and tutorial say, at a terminal, as far as no account is needed.

The command is run as it is installed, from a folder that holds the package alone. The first line
that needs an account is typed too: it ends in a sentence that says what is missing. How it goes on
with an account is typed by tests/integration/test_newcomer_road.py.
"""

import re
from pathlib import Path

import pytest

from tests import newcomer
from tests.person import Person

pytestmark = pytest.mark.integration
WITHOUT_ACCOUNT = ("init", "check", "estimate")
COMMAND = re.compile(r"^stillwater [^\n#]*?(?=\s*(?:#|$))", re.MULTILINE)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody who has installed the command and has no account."""
    installed, programs = newcomer.install(tmp_path)
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "PYTHONPATH": str(installed),
        "HOME": str(tmp_path),
        # Nobody else's account, and none of a machine in EC2.
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return Person(tmp_path, environment)


def commands(page: str) -> list[str]:
    """Return the lines of a page that call the command, from the one that makes a directory on."""
    found = [
        each.text for each in newcomer.typed_statements(page) if each.text.startswith("stillwater ")
    ]
    return found[next(n for n, line in enumerate(found) if " init " in line) :]


def whole(said: str) -> None:
    """Fail where something was cut, or where a fault of ours surfaced."""
    assert "…" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("page", "columns"), [(newcomer.README, 40), (newcomer.TUTORIAL, 80)])
def test_the_road_to_the_account_is_as_the_page_says(
    person: Person, page: str, columns: int
) -> None:
    person.columns = columns
    init, *others = commands(page)
    # What the page leaves out is asked; Enter takes what is proposed.
    whole(person.types(init, answers="\n" * 10))
    assert person.code == 0, person.said
    named = re.search(r"Next: cd (\S+);", person.said)
    assert named is not None, person.said
    person.directory /= named[1]
    shown = {each.text: each.shown for each in newcomer.typed_statements(page)}
    typed = [line for line in others if line.split()[1] in WITHOUT_ACCOUNT]
    assert [line.split()[1] for line in typed] == ["check", "estimate"]
    for line in typed:
        whole(person.types(line))
        assert person.code == 0, person.said
        assert newcomer.unseen(shown[line], person.said) == []
    # What `init` itself names next, and what its README says, as far as it is another line.
    named_there = COMMAND.findall((person.directory / "README.md").read_text())
    for line in (each.replace("ENV", typed[0].split()[2]) for each in named_there):
        if line.split()[1] in WITHOUT_ACCOUNT and line not in typed:
            whole(person.types(line))
            assert person.code == 0, person.said
    missing = next(line for line in others if line not in typed)
    whole(person.types(missing))
    assert person.code in {1, 2}
    assert "AWS credentials are missing here" in " ".join(person.said.split())


@pytest.mark.parametrize("page", [newcomer.README, newcomer.TUTORIAL])
def test_whatever_a_page_says_is_typed_by_a_test_or_has_a_reason(page: str) -> None:
    assert newcomer.neither(page) == []
    unused = [
        begins
        for begins in newcomer.NOT_TYPED[page]
        if not any(each.text.startswith(begins) for each in newcomer.statements(page))
    ]
    assert unused == [], "a reason for what the page does not say any more"


def test_a_statement_is_whole_with_what_continues_it_and_what_it_is_fed() -> None:
    body = "one \\\n  --more   # why\ntwo <<'END'\nfed # not a remark\nEND\n   three\n"
    assert list(newcomer.split(body)) == [
        "one \\\n  --more",
        "two <<'END'\nfed # not a remark\nEND",
        "three",
    ]


def test_a_line_that_a_page_shows_and_nothing_printed_is_named() -> None:
    assert newcomer.unseen("a month … 9\nno such\n", "a  month  USD 9") == ["no such"]


def test_a_script_in_a_terminal_is_asked_nothing(person: Person) -> None:
    init = commands(newcomer.README)[0]
    person.types(f"{init} </dev/null")
    assert person.code == 0, person.said
    assert "[" not in person.said


def test_a_person_who_stops_in_the_middle_leaves_nothing_behind(person: Person) -> None:
    init = commands(newcomer.README)[0]
    whole(person.types(init, answers="\n\x03"))
    assert person.code == 130
    assert person.said.endswith("Stopped; nothing was left running on this machine.\n")
    assert not (person.directory / "kafka").exists()


def test_a_guide_shows_the_output_of_a_command_that_the_road_types() -> None:
    typed = {
        each.text.replace(" prod", " try")
        for page in (newcomer.README, newcomer.TUTORIAL)
        for each in newcomer.typed_statements(page)
    }
    assert newcomer.guides("try").keys() <= typed
