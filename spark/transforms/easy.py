"""Finds what a bill pays for that is cheap to do without: the meters everybody forgets.

By meter alone, so that it is found on any bill; what a finding would save is all that its meter
costs where nothing is lost by it, and at most that where somebody has to look first.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

from spark.rows import grouped, rows_of, summed
from spark.rules.names import Attribution, Easy
from spark.transforms.grain import added_up

# Of these all that a meter costs is saved; of the others at most that, once somebody has looked.
SURE = frozenset((Easy.EXTENDED_SUPPORT, Easy.IDLE_RESERVATION, Easy.IDLE_IPV4))
# What part of its cost a finding would save: Amazon EBS, general purpose volumes, "up to 20 % lower
# price per GB than gp2".
PARTS = {Easy.GP2_VOLUMES: Decimal("0.2")}


@dataclass(frozen=True, slots=True)
class EasySaving:
    """What one meter came to in the month, of Kafka or of everybody else."""

    easy: Easy
    is_kafkas: bool
    usd: Decimal

    @property
    def saving(self) -> Decimal:
        """Return what could be saved of it, or at most."""
        return self.usd * PARTS.get(self.easy, Decimal(1))

    @property
    def at_most(self) -> bool:
        return self.easy not in SURE


def easy_savings(grain: pa.Table) -> list[EasySaving]:
    """Return what the easy findings of a cost grain cost, net and amortised; a handful."""
    found = rows_of(added_up(grain.filter(pc.is_valid(grain["easy"])), ("easy", "attribution")))
    keyed = grouped(found, lambda row: (row.easy, row.attribution != Attribution.NOBODY.value))
    costs = ((*key, summed(rows, "net_cost")) for key, rows in keyed.items())
    saved = [EasySaving(Easy(easy), is_kafkas, cost) for easy, is_kafkas, cost in costs if cost > 0]
    return sorted(saved, key=lambda each: (not each.is_kafkas, -each.saving))
