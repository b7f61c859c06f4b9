"""core.availability.drain_notice: who is out, as Strimzi's operator is told of it."""

from __future__ import annotations

import re
from pathlib import Path

from core import naming
from core.availability.drain_notice import NOTICE_SECONDS, drain_notice, lease_spec
from core.availability.lease import Lease

NOW = 1_795_168_800.0
PLUGIN = Path(__file__).parents[4] / "strimzi/src/main/java/dev/stillwater/strimzi"


def test_who_only_waits_for_its_turn_keeps_nobody_waiting() -> None:
    assert drain_notice([Lease("i-0a", NOW + 900, node_id=10)], NOW) is None
    assert drain_notice([], NOW) is None


def test_a_drain_is_told_with_its_node_and_its_incident() -> None:
    notice = drain_notice([Lease("i-0a.2", 0.0, node_id=10, out_at=NOW - 60)], NOW)
    assert notice is not None
    assert notice.reason == "Kafka node 10 is taken out by Stillwater's incident i-0a.2."
    assert lease_spec(notice) == {
        "holderIdentity": "i-0a.2",
        "acquireTime": "2026-11-20T09:59:00.000000Z",
        "renewTime": "2026-11-20T10:00:00.000000Z",
        "leaseDurationSeconds": NOTICE_SECONDS,
    }


def test_a_party_is_told_as_one_since_its_last_drain() -> None:
    """A run that goes on for hours is not one drain that lasts for hours."""
    notice = drain_notice(
        [Lease("i-0a", 0.0, 10, "run", NOW - 3600), Lease("i-0b", 0.0, 11, "run", NOW - 60)], NOW
    )
    assert notice is not None
    assert notice.reason == "Kafka node 10, 11 is taken out by Stillwater's incident i-0a, i-0b."
    assert notice.since == NOW - 60


def test_nobody_out_takes_every_word_of_it_away() -> None:
    assert set(lease_spec(None).values()) == {None}


def test_the_plugin_reads_the_names_that_are_written() -> None:
    java = (PLUGIN / "Drain.java").read_text()
    assert re.search(r'"stillwater-" \+ kafka', java)
    assert naming.drain_lease("orders") == "stillwater-orders"
    assert f'REASON = "{naming.DRAIN_REASON_ANNOTATION}"' in java
