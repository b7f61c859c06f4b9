"""Holds what a rule finds, the exit code that follows, and the table of rules.

Each rule names the facts without which it says nothing, and enters the table where it is written;
core.checks.table asks those whose facts are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from core.checks.facts import NOT_ASKED, ClusterFacts
from core.ground import words
from core.ground.fields import Unknown

CLEAR, FOUND, NOT_READ = 0, 1, 2
AGAIN = "look at it, and ask again"


class Weight(StrEnum):
    """What may come of it, worst first."""

    REFUSED = "would be refused"
    BROKER = "a broker may die"
    PRODUCER = "a producer may stall"
    EXPOSED = "open to any client"
    DRIFT = "not as described"
    UNKNOWN = "unknown"
    # A fact a plan should reckon with; nothing is broken.
    ADVICE = "worth knowing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that should be known of a cluster: what it is of, what was seen, and what to do."""

    check: str
    weight: Weight
    subject: str
    evidence: str
    remedy: str

    @property
    def line(self) -> str:
        return f"{self.weight}: {self.subject}: {self.evidence}; {self.remedy}."


def broker_may_die(check: str, subject: str, evidence: str, remedy: str) -> Finding:
    """Return what may cost a broker."""
    return Finding(check, Weight.BROKER, subject, evidence, remedy)


def producer_may_stall(check: str, subject: str, evidence: str, remedy: str) -> Finding:
    """Return what may keep a producer waiting."""
    return Finding(check, Weight.PRODUCER, subject, evidence, remedy)


def not_judged(check: str, subject: str, evidence: str, remedy: str = AGAIN) -> Finding:
    """Return what nobody can tell, which is never good news."""
    return Finding(check, Weight.UNKNOWN, subject, evidence, remedy)


def worth_knowing(check: str, subject: str, evidence: str, remedy: str) -> Finding:
    """Return a fact that a plan should reckon with."""
    return Finding(check, Weight.ADVICE, subject, evidence, remedy)


def unknown(part: str, unread: Unknown) -> Finding:
    """Return the finding that a part could not be read, which is never good news."""
    return not_judged(
        "unread",
        part,
        f"it could not be read: {unread.why}",
        unread.remedy or "give the caller the right to read it, and ask again",
    )


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Return findings worst first, each once."""
    return sorted(dict.fromkeys(found), key=lambda each: list(Weight).index(each.weight))


def exit_code(found: Iterable[Finding]) -> int:
    """0: nothing that hurts; 1: something does; 2: a part could not be read, whatever the rest."""
    weights = {each.weight for each in found}
    if Weight.UNKNOWN in weights:
        return NOT_READ
    return FOUND if weights - {Weight.ADVICE} else CLEAR


def listing(names: Iterable[str]) -> str:
    """Return names in order, the first few by name: a, b, c and 12 more."""
    return words.listing(sorted(set(names)))


Judge = Callable[[ClusterFacts], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A judge and its facts; `described`: a ClusterSpec alone answers it."""

    judge: Judge
    needs: tuple[str, ...]
    described: bool

    @property
    def title(self) -> str:
        module = self.judge.__module__.rpartition(".")[2]
        return f"{module}: {self.judge.__name__.replace('_', ' ')}"

    def is_asked_of(self, seen: ClusterFacts) -> bool:
        """Say whether all of its facts were asked for; one that could not be read counts, too."""
        if seen.description is not NOT_ASKED and not self.described:
            return False
        return all(getattr(seen, need) is not NOT_ASKED for need in self.needs)


RULES: list[Rule] = []


def rule(*needs: str, described: bool = False) -> Callable[[Judge], Judge]:
    """Enter a judge in the table, with the fields of ClusterFacts that it needs."""

    def enter(judge: Judge) -> Judge:
        RULES.append(Rule(judge, needs, described))
        return judge

    return enter
