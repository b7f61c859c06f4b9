"""The table of mutants: every one stands where it says, and some are hunted here and now.

`make bench-explore` hunts them all; what lives through the explorer meets the unit tests there.
"""

import subprocess
import sys
from pathlib import Path

from tests.every_case import every_case
from tests.explorer import judge
from tests.explorer.mutants import BY_NAME, MUTANTS, Mutant, located

# One the explorer notices within seconds.
HUNTED = ("the gate ignores the broker's return",)


@every_case("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_stands_in_one_place_and_is_python(mutant: Mutant) -> None:
    path = located(mutant)
    source = path.read_text().replace(mutant.snippet, mutant.instead)
    compile(source, str(path), "exec")


def test_there_are_many_and_each_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(MUTANTS) >= 40


def test_the_unit_tests_that_judge_a_mutant_are_there() -> None:
    root = Path(__file__).resolve().parents[3]
    assert [path for path in (*judge.UNIT_TESTS, *judge.SLOW) if not (root / path).exists()] == []


@every_case("name", HUNTED)
def test_the_explorer_notices(name: str) -> None:
    command = [sys.executable, "-m", "tests.explorer.mutants", name, "150"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() or ran.returncode, "the mutant lives"
