"""Breaks what is heard and remembered: schedules, patience, drains under way, lost machines."""

from __future__ import annotations

from tests.explorer.mutant import Mutant

WORDS = (
    Mutant(
        "planned work waits unheard",
        "    if bounded or not (hurried or waited > policy.hold_limit_seconds):",
        "    if bounded or seen.now > since:",
    ),
    Mutant(
        "the hold limit runs on under a pause",
        "return max(self.held_since, self.kept_at or 0.0)",
        "return self.held_since",
    ),
    Mutant(
        "the last word about a machine is the only one",
        "    kept = tuple(each for each in known if each not in about)\n    return (*kept, word)",
        "    return (word,)",
    ),
    Mutant(
        "a reboot's date counts like a retirement's",
        "return None if stays else self.due_at",
        "return self.due_at",
    ),
    Mutant(
        "of a reboot and a retirement the first governs",
        "return _GRAVEST_FIRST.index(each.answer), unhurried, due",
        "return 0, unhurried, due",
    ),
    Mutant(
        "only the lease knows of drains under way",
        "        if other.forwarded is None or other.node_id is None or other.id in used:",
        "        if other.id not in used or other.id in used:",
    ),
    Mutant(
        "a lost machine is never heard of again",
        "return finished.state is State.LOST and later and",
        "return finished.state is State.LOST and not later and",
    ),
)
