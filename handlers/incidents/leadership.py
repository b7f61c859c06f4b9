"""Moves leaders away from brokers for whoever asks, and gives them back when nobody does any more.

One document of the ledger's table says which brokers each cause avoids, and what the order of every
changed partition was. It is written before Kafka is, so that no crash forgets an original order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from core.availability.leaders import LeaderPlan, Order, Partition, plan
from core.errors import StillwaterError
from core.stored import unread_keys, without
from handlers.adapters.shapes import known_shape
from handlers.store.records import Records

if TYPE_CHECKING:
    # λ sweep imports this module, and no Kafka client.
    from handlers.adapters.kafka import KafkaCluster

INCIDENT_CAUSE = "incident:"


@dataclass(frozen=True, slots=True)
class Shifted:
    """Which brokers each cause keeps from leading, and the orders that were changed for them."""

    avoided: Mapping[str, frozenset[int]] = field(default_factory=dict)
    original: Mapping[Partition, Order] = field(default_factory=dict)
    unread: Mapping[str, Any] = unread_keys()

    @property
    def nothing(self) -> bool:
        return not self.avoided and not self.original

    @property
    def brokers(self) -> frozenset[int]:
        return frozenset().union(*self.avoided.values())

    def brokers_owed(self, is_current: Callable[[str], bool]) -> frozenset[int]:
        """Return the brokers that are to lead again: no cause that is not over avoids them."""
        kept = (brokers for cause, brokers in self.avoided.items() if is_current(cause))
        ended = (brokers for cause, brokers in self.avoided.items() if not is_current(cause))
        # Orders without a cause are left of a giving back that did not get through.
        led = () if self.avoided else (order[0] for order in self.original.values())
        return frozenset(led).union(*ended) - frozenset().union(*kept)


def shift_in_force(records: Records, cluster: str) -> Shifted:
    """Return what is moved in a cluster now."""
    return _read(records, _key(cluster))[0]


def _key(cluster: str) -> str:
    return f"leaders#{cluster}"


@known_shape("The ledger's document of leaders")
def _read(records: Records, key: str) -> tuple[Shifted, int]:
    record = records.read(key)
    stored: dict[str, Any] = record.document or {"avoided": {}, "original": []}
    return (
        Shifted(
            {cause: frozenset(brokers) for cause, brokers in stored["avoided"].items()},
            {(topic, number): tuple(order) for topic, number, order, *_ in stored["original"]},
            without(stored, "avoided", "original"),
        ),
        record.version,
    )


class Leadership:
    """The leaders of one Kafka cluster."""

    def __init__(self, kafka: KafkaCluster, records: Records, cluster: str) -> None:
        self._kafka, self._records, self._key = kafka, records, _key(cluster)

    def avoid(self, cause: str, brokers: Iterable[int]) -> None:
        """Keep brokers from leading for a cause; StillwaterError when Kafka does not answer."""
        wanted = frozenset(brokers)
        self._settle(lambda avoided: {**avoided, cause: wanted})

    def restore(self, cause: str, *, elect: bool = True) -> None:
        """Give back what was moved for a cause, unless another still avoids those brokers.

        Without an election they are preferred again, and lead once somebody has them elected.
        """
        self._settle(
            lambda avoided: {c: b for c, b in avoided.items() if c != cause}, elect_all=elect
        )

    def keep_only(self, is_current: Callable[[str], bool]) -> Collection[str]:
        """Give back what was moved for causes that are over; return those causes."""
        moved = self._read()[0]
        over = [cause for cause in moved.avoided if not is_current(cause)]
        # Orders without a cause are left of a giving back that did not get through.
        if over or (moved.original and not moved.avoided):
            self._settle(lambda avoided: {c: b for c, b in avoided.items() if c not in over})
        return over

    def brokers_owed(self, is_current: Callable[[str], bool]) -> frozenset[int]:
        """Return the brokers that are to lead again and do not yet."""
        return self._read()[0].brokers_owed(is_current)

    def _settle(
        self,
        change: Callable[[Mapping[str, frozenset[int]]], Mapping[str, frozenset[int]]],
        *,
        elect_all: bool = True,
    ) -> None:
        """Bring Kafka to what the causes want; Conflict when another invocation is at it."""
        before, version = self._read()
        wanted = replace(before, avoided=change(before.avoided))
        if wanted.nothing:
            if before.avoided:
                self._write(wanted, version)
            return
        # Who is kept from leading stops or starts: its silence hides nothing of the others.
        kafka = self._kafka.read().without(before.brokers | wanted.brokers)
        if kafka.doubts:
            # A partition left out would lose the order it had before, and be led by whom it avoids.
            raise StillwaterError(kafka.doubt)
        plan_ = plan(kafka.partitions, wanted.original, wanted.brokers)
        intended = replace(wanted, original={**_kept_originals(wanted, plan_), **plan_.original})
        if intended != before:
            self._write(intended, version)
            version += 1
        self._kafka.reorder(plan_.orders)
        avoided = {(p.topic, p.partition) for p in kafka.partitions if p.leader in wanted.brokers}
        self._kafka.elect(plan_.elect if elect_all else plan_.elect & avoided)
        done = replace(wanted, original=plan_.original)
        if done != intended:
            self._write(done, version)

    def _read(self) -> tuple[Shifted, int]:
        return _read(self._records, self._key)

    def _write(self, shifted: Shifted, version: int) -> None:
        document = {
            **shifted.unread,
            "avoided": {cause: sorted(b) for cause, b in sorted(shifted.avoided.items())},
            "original": [[*key, list(order)] for key, order in sorted(shifted.original.items())],
        }
        self._records.write(self._key, document, version)


def _kept_originals(wanted: Shifted, plan_: LeaderPlan) -> dict[Partition, Order]:
    """Return the originals of partitions that are about to get their own order back."""
    return {key: order for key, order in wanted.original.items() if key in plan_.orders}
