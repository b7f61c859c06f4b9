"""Holds the table of rules: each names the facts without which it says nothing.

A rule enters the table where it is written; core.checks.table asks those whose facts are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.checks.finding import Finding
from core.model.facts import NOT_ASKED, ClusterFacts

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
