"""handlers.incidents.broom: what is over is filed once, whole, and leaves the index only then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import boto3
import pytest

from core.incidents.record import Incident, State, Transition
from handlers.incidents.broom import Archive, Archivist, archive_key
from tests.unit.handlers.failing import fail
from tests.unit.handlers.memory_archive import MemoryArchive
from tests.unit.handlers.memory_ledger import MemoryLedger
from tests.unit.handlers.tables import REGION
from tests.unit.handlers.test_ledger import incident

ENDED = 1_795_168_800.0  # 2026-11-20T10:00:00Z


def over(
    state: State = State.RELEASED, instance_id: str = "i-0a", round_number: int = 1
) -> Incident:
    opened = incident(instance_id, round_number)
    end = Transition(ENDED, state, "tick", "Over.")
    return replace(opened, state=state, transitions=(*opened.transitions, end))


class Desk:
    """An archivist with everything it touches in memory."""

    def __init__(self) -> None:
        self.ledger, self.archive = MemoryLedger(), MemoryArchive()
        self.told: list[str] = []
        self.archivist = Archivist(
            self.ledger, self.archive, lambda told: self.told.append(told.id), "local-orders"
        )

    def has(self, written: Incident) -> Incident:
        opened = self.ledger.put(incident(written.instance_id, len(self.ledger._incidents) + 1))
        return self.ledger.put(replace(written, version=opened.version, id=opened.id))


@pytest.fixture
def desk() -> Iterator[Desk]:
    return Desk()


def test_one_object_per_incident_by_the_day_it_ended(desk: Desk) -> None:
    desk.has(over())
    assert desk.archivist.file_closed() == 1
    ((key, line),) = desk.archive.objects.items()
    assert key == "incidents/closed_on=2026-11-20/i-0a.jsonl"
    row = json.loads(line)
    assert "\n" not in line
    assert (row["cluster"], row["state"], row["closed_at"]) == ("local-orders", "released", ENDED)
    assert row["transitions"][-1] == {
        "at": ENDED,
        "state": "released",
        "actor": "tick",
        "reason": "Over.",
    }


def test_no_lifecycle_token_leaves_the_ledger(desk: Desk) -> None:
    desk.has(over())
    desk.archivist.file_closed()
    (line,) = desk.archive.objects.values()
    assert "token-drain" not in line.replace(incident().announcements[0], "")
    assert json.loads(line)["hooks"] == ["drain"]


def test_what_is_filed_is_not_filed_again(desk: Desk) -> None:
    desk.has(over())
    assert [desk.archivist.file_closed(), desk.archivist.file_closed()] == [1, 0]


def test_an_open_incident_is_left_alone(desk: Desk) -> None:
    desk.ledger.put(incident())
    assert desk.archivist.file_closed() == 0
    assert desk.archive.objects == {}


def test_dying_between_archive_and_index_files_it_again_to_the_same_key(desk: Desk) -> None:
    written = desk.has(over())
    desk.archive.store(archive_key(written), "half of it")
    desk.archivist.file_closed()
    ((_, line),) = desk.archive.objects.items()
    assert json.loads(line)["id"] == "i-0a"


def test_nothing_expires_before_the_archive_has_it(desk: Desk) -> None:
    desk.has(over())
    fail(desk.archive, "store", OSError("no space"))
    with pytest.raises(OSError, match="no space"):
        desk.archivist.file_closed()
    assert desk.ledger.filed == {}


def test_the_story_is_told_once_more_before_the_incident_leaves_the_index(desk: Desk) -> None:
    desk.has(over())
    desk.archivist.file_closed()
    assert desk.told == ["i-0a"]


def test_only_an_instance_that_is_gone_lets_its_incident_expire(desk: Desk) -> None:
    desk.has(over(State.RETAINED))
    desk.archivist.file_closed()
    assert desk.ledger.filed == {"i-0a": None}


def test_all_rounds_of_an_instance_expire_with_its_last(desk: Desk) -> None:
    desk.has(over(State.RETAINED))
    desk.archivist.file_closed()
    desk.has(over(State.RELEASED))
    desk.archivist.file_closed()
    expiry = ENDED + 90 * 86_400
    assert desk.ledger.filed == {"i-0a": expiry, "i-0a.2": expiry}


def test_an_incident_that_changes_meanwhile_is_filed_with_the_next_sweep(desk: Desk) -> None:
    desk.has(over())

    def meddle(told: Incident) -> None:
        desk.ledger.put(replace(told, reason="late"))

    meddling = replace(desk.archivist, tell=meddle)
    assert meddling.file_closed() == 0
    assert desk.archivist.file_closed() == 1
    (line,) = desk.archive.objects.values()
    assert json.loads(line)["reason"] == "late"


def test_s3_holds_the_line_as_json_lines(aws: None) -> None:
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="archive")
    Archive("archive", REGION).store("incidents/closed_on=2026-11-20/i-0a.jsonl", '{"id":1}')
    found = s3.get_object(Bucket="archive", Key="incidents/closed_on=2026-11-20/i-0a.jsonl")
    assert found["Body"].read() == b'{"id":1}\n'
    assert found["ContentType"] == "application/x-ndjson"
