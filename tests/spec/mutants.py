"""Breaks of the specification, each of which one of its promises must notice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.spec.check import SPECIFICATION


@dataclass(frozen=True, slots=True)
class Mutant:
    """A break: what stands in the specification, what instead, and the promise that breaks."""

    name: str
    snippet: str
    instead: str
    broken: str

    def written(self, folder: Path) -> Path:
        """Write the broken specification; LookupError where its snippet does not stand once."""
        source = SPECIFICATION.read_text()
        if source.count(self.snippet) != 1:
            raise LookupError(
                f"Mutant {self.name!r}: its snippet must stand once in {SPECIFICATION.name}."
            )
        path = folder / SPECIFICATION.name
        path.write_text(self._asked(source.replace(self.snippet, self.instead)))
        return path

    def _asked(self, source: str) -> str:
        """Leave out every check but the one of the promise, and every run."""
        promises, _, _ = source.partition("\ncheck ")
        check = re.search(rf"^check {self.broken} .*$", source, re.MULTILINE)
        return f"{promises}\n{check.group() if check else ''}\n"


MUTANTS = (
    Mutant(
        "the lease is given to anybody",
        "i not in Ahead and no (Holder + Used) - together[i]",
        "i not in Ahead",
        "never_two_holders",
    ),
    Mutant(
        "whoever is in no party is in everybody's",
        "some i.party and o.party = i.party",
        "o.party = i.party",
        "never_two_holders",
    ),
    Mutant(
        "one whose turn has not come takes the lease",
        "i.state = Holding and i not in Ahead and no",
        "i.state = Holding and no",
        "nothing_ahead_leaves",
    ),
    Mutant(
        "what is called off keeps its room",
        "Ahead' = Ahead - i and Room' = Room - i",
        "Ahead' = Ahead - i and Room' = Room",
        "room_is_given_back",
    ),
    Mutant(
        "the gate opens before the broker is back",
        "i.state = Gating and i.node.pod = New and i.node in InSync",
        "i.state = Gating and i.node.pod = New",
        "gate_after_return",
    ),
    Mutant(
        "a drain is sent without its note",
        "i in Used and i.state = Holding and others_well[i]",
        "i in Holder and i.state = Holding and others_well[i]",
        "drained_with_its_note",
    ),
    Mutant(
        "a drain has ended while its message waits",
        "i.state in over and i in Used and i not in Queued and i.node in InSync",
        "i.state in over and i in Used and i.node in InSync",
        "drained_with_its_note",
    ),
    Mutant(
        "who is kept is kept silently",
        "and Paged' = Paged + i and same_turns",
        "and Paged' = Paged and same_turns",
        "retained_is_heard",
    ),
)
