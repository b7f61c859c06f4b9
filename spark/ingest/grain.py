"""Tells the two grains of a bill apart by where each format keeps them (spark.ingest.sieve).

Apart from the sieve, which needs pyarrow, since a reader of any format names its columns here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spark.tag_keys import CLAIM_TAG, KafkaTags, column_spellings, spellings, words_of


@dataclass(frozen=True, slots=True)
class Grain:
    """Where a format keeps a line's resource, zone and tags, and what makes a line Kafka's."""

    kafka: KafkaTags
    resource: str
    zone: str
    # Columns that hold one tag each, in lower case.
    spread: tuple[str, ...] = ()

    @property
    def looked_up(self) -> frozenset[str]:
        """Return the keys of all tags that later rooms look up, in every spelling."""
        return _all_spellings(self.kafka.keys)

    @property
    def telling(self) -> frozenset[str]:
        """Return the keys, in every spelling, of the tags that say Kafka."""
        claim = [CLAIM_TAG] if self.kafka.claims else []
        return _all_spellings([self.kafka.cluster, self.kafka.pool, *claim])


def _all_spellings(keys: Iterable[str]) -> frozenset[str]:
    return frozenset(
        spelled
        for key in keys
        for spelled in (*column_spellings(key), *spellings(key), words_of(key))
    )
