"""Damaged announcements: none raises, none vanishes, memory stays flat.

STILLWATER_FUZZ_SEED repeats a run; each has a seed of its own. `make test-long` tries 100,000.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from core.events import GroupNotice, Ignored, Interruption, VolumeNotice, ZoneNotice, parse
from core.ground.fields import readable
from handlers import interruption
from handlers.incidents.reception import LONGEST_KEPT
from tests.effort import EFFORT
from tests.unit.handlers.fakes import FakeCluster
from tests.unit.handlers.station import Station
from tests.unit.mutation import bodies

COUNT = 5_000 * EFFORT
SEED = int(os.environ.get("STILLWATER_FUZZ_SEED", str(random.randrange(2**32))))  # noqa: S311
# Of the parsed messages a share goes through the function: what it does with one takes longer.
ENTRY_COUNT = COUNT // 10
# Counting every allocation takes long, so the last ones stand for all.
WEIGHED, ROUNDS = 2_000, 8
# Less than a reference per message: nothing is kept of any of them.
ALLOWED_GROWTH_BYTES = 8 * WEIGHED


@pytest.fixture(autouse=True)
def seed() -> Iterator[None]:
    """Print the seed, which pytest shows beside a failure; and log nothing a hundred times."""
    print(f"STILLWATER_FUZZ_SEED={SEED}")  # noqa: T201
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def judge(raw: str | bytes) -> list[str]:
    """Return the names of a message's results, each of which any store accepts."""
    found = parse(raw)
    assert found
    for result in found:
        result.body.encode()
        if isinstance(result, Ignored):
            assert result.reason.endswith("."), result.reason
            result.reason.encode()
        else:
            assert result.dedupe_key
            result.dedupe_key.encode()
    return [type(result).__name__ for result in found]


def test_every_message_has_a_result() -> None:
    seen: Counter[str] = Counter()
    for raw in bodies(SEED, COUNT):
        seen.update(judge(raw))
    # Damage that always ends as ignored would prove nothing.
    kinds = (Interruption, VolumeNotice, ZoneNotice, GroupNotice, Ignored)
    assert min(seen[kind.__name__] for kind in kinds) > COUNT / 100


def test_nothing_is_kept_of_what_was_parsed() -> None:
    grown: list[int] = []
    tracemalloc.start()
    try:
        # What Python keeps of a type that it has not met before grows in some, a leak in each.
        while len(grown) < ROUNDS and min(grown, default=math.inf) >= ALLOWED_GROWTH_BYTES:
            before = tracemalloc.get_traced_memory()[0]
            for raw in bodies(SEED + 2 + len(grown), WEIGHED):
                judge(raw)
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    assert min(grown) < ALLOWED_GROWTH_BYTES, grown


class Everybodys(FakeCluster):
    """An account in which every instance is ours, so that announcements get as far as they can."""

    def instance(self, instance_id: str) -> Any:
        if instance_id not in self.instances:
            self.add_instance(instance_id, "us-east-1a")
        return self.instances[instance_id]


def batches(station: Station) -> Iterator[tuple[list[str], dict[str, Any]]]:
    texts = (readable(raw) for raw in bodies(SEED + 1, ENTRY_COUNT))
    batch: list[str] = []
    for body in texts:
        batch.append(body)
        if len(batch) == 10:
            yield batch, _event(batch)
            batch = []


def _event(batch: list[str]) -> dict[str, Any]:
    return {
        "Records": [
            {"messageId": f"m{n}", "body": body, "eventSource": "aws:sqs", "attributes": {}}
            for n, body in enumerate(batch)
        ]
    }


def test_the_function_drops_nothing_and_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    station = Station(cluster=Everybodys())
    monkeypatch.setattr(interruption, "_desk", lambda: station.desk)
    for batch, event in batches(station):
        assert interruption.handler(event, None) == {"batchItemFailures": []}
        kept = {body for body, _ in station.ledger.ignored}
        kept |= {body for body, _ in station.ledger.events.values()}
        for body in batch:
            told = {found.body[:LONGEST_KEPT] for found in parse(body)}
            known = {found.dedupe_key for found in parse(body) if not isinstance(found, Ignored)}
            assert told <= kept or known <= set(station.ledger.events), body[:500]
        station.ledger.ignored.clear()
    opened = {incident.instance_id for incident in station.ledger.open_incidents()}
    assert len(opened) > ENTRY_COUNT / 1000
    # One instance, one open incident, whatever was said of it and how often.
    assert len(opened) == len(station.ledger.open_incidents())


def test_the_same_seed_gives_the_same_messages() -> None:
    assert [*bodies(7, 50)] == [*bodies(7, 50)]
    assert [*bodies(7, 50)] != [*bodies(8, 50)]
