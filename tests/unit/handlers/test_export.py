"""What is over is filed once; an hour of samples becomes one file."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from moto import mock_aws

from core.ground.errors import StillwaterError
from core.incidents.record import Incident, State, Transition
from core.volumes.series import HOUR_SECONDS, WANTED, Whose, sample_key
from handlers.adapters.prometheus import Prometheus
from handlers.incidents.broom import Archive, Archivist, archive_key
from handlers.volume.filing import Filing, S3SampleFiles
from tests.unit.handlers.failing import fail
from tests.unit.handlers.in_memory import MemoryArchive, MemoryLedger
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
    expected = {"at": ENDED, "state": "released", "actor": "tick", "reason": "Over."}
    assert row["transitions"][-1] == expected


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


NOON = 1_800_000_000.0 - 1_800_000_000.0 % HOUR_SECONDS
NOW = NOON + 700
BUCKET = "test-orders-billing"
NEVER = float("inf")
COUNTER = "kafka_server_brokertopicmetrics_bytesinpersec_total"


class Remembers:
    """A Prometheus that has some series of one counter, with a sample at each step."""

    def __init__(self, series: int = 2, *, silent_after: int | None = None) -> None:
        self._series, self._left = series, silent_after
        self.asked = 0

    def get(self, path: str, seconds: float) -> str:
        self.asked += 1
        if self._left is not None and self.asked > self._left:
            raise StillwaterError("Prometheus did not answer.")
        told = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        known = COUNTER in told["query"]
        if "count(" in told["query"]:
            count = [{"metric": {}, "value": [0, str(self._series)]}] if known else []
            return answer("vector", count)
        begin, end, step = (float(told[name]) for name in ("start", "end", "step"))
        moments = [begin + n * step for n in range(round((end - begin) / step) + 1)]
        return answer(
            "matrix",
            [
                {
                    "metric": {"__name__": COUNTER, "pod": f"orders-broker-a-{n}"},
                    "values": [[at, "123456789012345678"] for at in moments],
                }
                for n in range(self._series)
            ],
        )


def answer(kind: str, result: list[Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}})


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield client


def filing(prometheus: Remembers) -> Filing:
    files = S3SampleFiles(BUCKET, "us-east-1")
    return Filing(Prometheus(prometheus), files, Whose("orders", "kafka", {}))


def filed(s3: Any) -> list[str]:
    return [each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET).get("Contents", ())]


def content(s3: Any, key: str) -> Any:
    return json.loads(gzip.decompress(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()))


def test_each_hour_of_the_last_day_is_filed_once_under_its_own_name(s3: Any) -> None:
    assert filing(Remembers()).turn(NOW, until=NEVER) == {"filed": 24, "left": 0}
    assert len(filed(s3)) == 24
    assert filed(s3)[-1] == f"metrics/{sample_key(NOON - HOUR_SECONDS)}"
    assert filing(Remembers()).turn(NOW, until=NEVER) == {"filed": 0, "left": 0}


def test_a_file_is_an_answer_with_every_sample_and_its_name(s3: Any) -> None:
    filing(Remembers()).turn(NOW, until=NEVER)
    read = content(s3, filed(s3)[0])
    first, second = read["data"]["result"]
    assert (read["status"], read["data"]["resultType"]) == ("success", "matrix")
    assert first["metric"] == {"__name__": COUNTER, "pod": "orders-broker-a-0"}
    assert len(first["values"]) == len(second["values"]) == 240
    assert float(first["values"][0][1]) == float("123456789012345678")


def test_an_hour_that_breaks_off_is_no_file_and_the_next_turn_makes_it(s3: Any) -> None:
    questions = len(WANTED) + 1
    with pytest.raises(StillwaterError, match="did not answer"):
        filing(Remembers(silent_after=2 * questions + 3)).turn(NOW, until=NEVER)
    assert len(filed(s3)) == 2
    assert filing(Remembers()).turn(NOW, until=NEVER)["filed"] == 22


def test_a_turn_ends_before_its_function_does_and_says_what_is_left(s3: Any) -> None:
    assert filing(Remembers()).turn(NOW, until=time.monotonic() - 1) == {"filed": 0, "left": 24}


def test_more_series_than_fit_are_named_with_what_chooses_among_them(s3: Any) -> None:
    with pytest.raises(StillwaterError, match=r"200,001 series.*metrics\.prometheus\.labels"):
        filing(Remembers(series=200_001)).turn(NOW, until=NEVER)
    assert filed(s3) == []


def test_what_somebody_else_put_there_stays(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="metrics/ours.json", Body=b"{}")
    assert filing(Remembers()).turn(NOW, until=NEVER)["filed"] == 24
    assert s3.get_object(Bucket=BUCKET, Key="metrics/ours.json")["Body"].read() == b"{}"
