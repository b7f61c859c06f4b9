"""The page of checks: every finding of the table is on it, with what asks it."""

import re
from dataclasses import fields

from cli.doctor.examine import Machines, read
from core.checks.facts import NOT_ASKED
from core.checks.finding import RULES
from reference import checks
from tests.unit.cli.doctor.test_surroundings import world

ROWS = [line.split(" | ") for line in checks.page().splitlines() if line.startswith("| `")]


def askers(check: str) -> set[str]:
    return {name for row in ROWS if row[0] == f"| `{check}`" for name in re.findall(r"\w+", row[2])}


def test_every_rule_has_a_row() -> None:
    for rule in RULES:
        assert list(checks._checks(rule)), rule.title


def test_a_row_says_who_asks() -> None:
    assert askers("min-insync") == {"check", "doctor", "survey"}
    assert askers("quorum-grows") == {"check", "doctor"}
    assert askers("paused") == askers("subnet-full") == {"doctor", "survey"}
    assert askers("spot") == {"survey"}
    assert askers("account-quotas") == {"preflight"}


def test_what_the_page_says_the_doctor_reads_it_reads() -> None:
    made = world(lambda _: None)
    seen = read(lambda _: made, Machines(eks_cluster="shop", region="eu-north-1"))
    asked = {each.name for each in fields(seen) if getattr(seen, each.name) is not NOT_ASKED}
    kafkas = {"kafkas", "pools", "operators", "ending_namespaces"}
    assert (asked | kafkas) - {"read_at"} == checks.READ_BY_DOCTOR
