"""A newcomer types what README and tutorial say, at a terminal, as far as no account is needed.

The command is run as it is installed, from a folder that holds the package alone. The first line
that needs an account is typed too: it ends in a sentence that says what is missing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from infra.spec import ROOT
from tests.person import Person
from tests.unit.docs import markdown

COMMAND = """#!/bin/sh
exec {python} -c 'import sys; from stillwater.command import main; sys.exit(main())' "$@"
"""
WITHOUT_ACCOUNT = ("init", "check", "estimate")
ROADS = {
    "README.md": "## On a real account",
    "docs/tutorial.md": "## 3. Describe the cluster",
}


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody who has installed the command and has no account."""
    installed, programs = tmp_path / "site", tmp_path / "programs"
    installed.mkdir()
    programs.mkdir()
    (installed / "stillwater").symlink_to(ROOT / "stillwater")
    (programs / "stillwater").write_text(COMMAND.format(python=sys.executable))
    (programs / "stillwater").chmod(0o755)
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "PYTHONPATH": str(installed),
        "HOME": str(tmp_path),
        # Nobody else's account, and none of a machine in EC2.
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return Person(tmp_path, environment)


def commands(page: str, heading: str) -> list[str]:
    """Return the lines of a page's shell blocks that call the command, below a heading."""
    text = (markdown.REPOSITORY / page).read_text().partition(heading)[2]
    found = re.findall(r"^(?: {3})?(stillwater [^\n#]*?)\s*(?:#[^\n]*)?$", text, re.MULTILINE)
    assert found, f"{page} names no command below {heading!r}"
    return found


def whole(said: str) -> None:
    """Fail where something was cut, or where a fault of ours surfaced."""
    assert "…" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("page", "columns"), [("README.md", 40), ("docs/tutorial.md", 80)])
def test_the_road_to_the_account_is_as_the_page_says(
    person: Person, page: str, columns: int
) -> None:
    person.columns = columns
    init, *others = commands(page, ROADS[page])
    # What the page leaves out is asked; Enter takes what is proposed.
    whole(person.types(init, answers="\n" * 10))
    assert person.code == 0, person.said
    named = re.search(r"Next: cd (\S+);", person.said)
    assert named is not None, person.said
    person.directory /= named[1]
    typed = [line for line in others if line.split()[1] in WITHOUT_ACCOUNT]
    assert [line.split()[1] for line in typed] == ["check", "estimate"]
    for line in typed:
        whole(person.types(line))
        assert person.code == 0, person.said
    # What `init` itself names next, and what its README says.
    for line in commands(str(person.directory / "README.md"), "Commands run"):
        if line.split()[1] in WITHOUT_ACCOUNT:
            whole(person.types(line.replace("ENV", typed[0].split()[2])))
            assert person.code == 0, person.said
    missing = next(line for line in others if line not in typed)
    whole(person.types(missing))
    assert person.code in {1, 2}
    assert "There are no AWS credentials here" in " ".join(person.said.split())


def test_a_script_in_a_terminal_is_asked_nothing(person: Person) -> None:
    init = commands("README.md", ROADS["README.md"])[0]
    person.types(f"{init} </dev/null")
    assert person.code == 0, person.said
    assert "[" not in person.said


def test_a_person_who_stops_in_the_middle_leaves_nothing_behind(person: Person) -> None:
    init = commands("README.md", ROADS["README.md"])[0]
    whole(person.types(init, answers="\n\x03"))
    assert person.code == 130
    assert person.said.endswith("Stopped; nothing was left running on this machine.\n")
    assert not (person.directory / "kafka").exists()
