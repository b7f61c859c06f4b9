"""One suite for both ledgers, and listeners that hold nobody up.

What is over is filed once; an hour of samples becomes one file.
"""

import functools
import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from aws_lambda_powertools.metrics import EphemeralMetrics
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from core.availability.lease import Lease
from core.events import parse
from core.ground.constants import (
    CALLING,
    INCIDENTS_LOST,
    INCIDENTS_OPENED,
    INCIDENTS_RETAINED,
    LEDGER_ERRORS,
)
from core.ground.errors import Conflict, StillwaterError
from core.incidents.joining import open_incident
from core.incidents.record import Incident, State, Transition
from core.volumes.series import HOUR_SECONDS, WANTED, Whose, sample_key
from handlers.adapters import metrics
from handlers.adapters.calls import NO_ANSWER
from handlers.adapters.prometheus import Prometheus
from handlers.incidents.broom import Archive, Archivist, archive_key
from handlers.store.ledger import Ledger, Stories, rounds
from handlers.volume.filing import Filing, S3SampleFiles
from tests.explorer.ledger import ObjectLedger
from tests.explorer.world import World
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.failing import fail
from tests.unit.handlers.in_memory import FakeQueue, MemoryArchive, MemoryLedger
from tests.unit.handlers.tables import REGION, TABLE, stored_items


@pytest.fixture(params=["memory", "explored", "dynamodb"])
def ledger(request: pytest.FixtureRequest) -> Ledger:
    if request.param == "memory":
        return MemoryLedger()
    if request.param == "explored":
        world = World()
        return ObjectLedger(lambda: world)
    request.getfixturevalue("aws")
    return Ledger(TABLE, "orders", REGION)


def incident(instance_id: str = "i-0a", round_number: int = 1) -> Incident:
    (found,) = parse(hook_event("drain", instance_id=instance_id))
    before = tuple(incident(instance_id, number) for number in range(1, round_number))
    return open_incident(found, 1.5, after=before)


def test_an_incident_reads_as_it_was_written(ledger: Ledger) -> None:
    assert ledger.get("i-0a") is None
    written = ledger.put(incident())
    assert written.version == 1
    assert ledger.get("i-0a") == written
    assert replace(written, version=0) == incident()


def test_a_write_over_an_older_version_is_refused(ledger: Ledger) -> None:
    first = ledger.put(incident())
    with pytest.raises(Conflict, match="Incident i-0a was changed"):
        ledger.put(incident())
    second = ledger.put(replace(first, ticked_at=2.0))
    with pytest.raises(Conflict):
        ledger.put(replace(first, ticked_at=3.0))
    assert ledger.get("i-0a") == second


def test_only_open_incidents_are_listed(ledger: Ledger) -> None:
    over = ledger.put(incident())
    still = ledger.put(incident("i-0b"))
    ledger.put(replace(over, state=State.RELEASED))
    assert ledger.open_incidents() == (still,)


def test_rounds_come_in_their_order(ledger: Ledger) -> None:
    assert rounds(ledger, "i-0a") == ()
    both = (ledger.put(incident()), ledger.put(incident(round_number=2)))
    assert rounds(ledger, "i-0a") == both
    assert both[1].id == "i-0a.2"


def test_the_lease_has_one_holder(ledger: Ledger) -> None:
    assert ledger.leases() == ()
    assert ledger.take_lease("i-0a", 10.0, 30).granted
    refused = ledger.take_lease("i-0b", 20.0, 30)
    assert not refused.granted
    assert "i-0a" in refused.reason
    assert ledger.take_lease("i-0a", 20.0, 30).granted
    assert ledger.leases() == (Lease("i-0a", 50.0),)
    assert ledger.take_lease("i-0b", 50.0, 30).granted


def test_a_lease_is_shared_by_one_party_alone(ledger: Ledger) -> None:
    for party, node_id in ("r/a/10+11", 10), ("r/a/10+11", 11), ("r/b/20", 20):
        asked = ledger.take_lease(f"i-{node_id}", 10.0, 30, party=party, node_id=node_id)
        assert asked.granted is (node_id < 20)


def test_only_its_holder_gives_the_lease_back(ledger: Ledger) -> None:
    ledger.drop_lease("i-0a")
    ledger.take_lease("i-0a", 10.0, 30)
    ledger.drop_lease("i-0b")
    assert not ledger.take_lease("i-0b", 11.0, 30).granted
    ledger.drop_lease("i-0a")
    assert ledger.take_lease("i-0b", 12.0, 30).granted


def test_a_lease_asked_for_twice_is_refused(aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(TABLE, "orders", REGION)
    before = ledger._lease_record()
    assert ledger.take_lease("i-0a", 10.0, 30).granted
    monkeypatch.setattr(ledger, "_lease_record", lambda: before)
    assert not ledger.take_lease("i-0b", 10.0, 30).granted


def test_a_message_is_kept_once_as_it_was_first_recorded(aws: None) -> None:
    ledger = Ledger(TABLE, "orders", REGION)
    for outcome in ("opened", "again"):
        ledger.record_ignored("{not json", "It is not readable JSON.", 1000.0)
        ledger.record_event("k" * 4000, "body", outcome, 1.0)  # It may name itself at any length.
    (item,) = stored_items("ignored#")
    assert item["body"] == {"S": "{not json"}
    assert item["outcome"] == {"S": "It is not readable JSON."}
    assert item["expires_at"] == {"N": str(1000 + 90 * 86_400)}
    (item,) = stored_items("event#")
    assert item["outcome"] == {"S": "opened"}


def test_the_latest_end_of_an_event_stands(ledger: Ledger) -> None:
    assert ledger.closed_at("an event") is None
    for said_at in (20.5, 30.0, 10.0):
        ledger.close_event("an event", said_at, 100.0)
    assert ledger.closed_at("an event") == 30.0
    assert ledger.closed_at("another") is None


def test_the_end_of_an_event_is_kept_as_long_as_what_was_announced(aws: None) -> None:
    Ledger(TABLE, "orders", REGION).close_event("an event", 20.5, 1000.0)
    (item,) = stored_items("closed#")
    assert item["expires_at"] == {"N": str(1000 + 90 * 86_400)}


def test_what_is_over_is_listed_until_it_is_filed(ledger: Ledger) -> None:
    ledger.put(incident("i-0b"))
    over = ledger.put(replace(ledger.put(incident()), state=State.RELEASED))
    assert ledger.closing(10) == (over,)
    ledger.file(over, 5000.0)
    assert ledger.closing(10) == ()
    found = ledger.get("i-0a")
    assert found is not None
    assert replace(found, version=over.version) == over


def test_an_incident_that_changed_meanwhile_is_not_filed(ledger: Ledger) -> None:
    over = ledger.put(replace(ledger.put(incident()), state=State.RELEASED))
    newer = ledger.put(replace(over, reason="late"))
    with pytest.raises(Conflict):
        ledger.file(over, None)
    assert ledger.closing(10) == (newer,)


def test_at_most_so_many_are_listed_for_filing(ledger: Ledger) -> None:
    for name in ("i-0a", "i-0b", "i-0c"):
        ledger.put(replace(ledger.put(incident(name)), state=State.LOST))
    assert len(ledger.closing(2)) == 2


def test_only_what_was_filed_with_a_time_expires(aws: None) -> None:
    ledger = Ledger(TABLE, "orders", REGION)
    over = ledger.put(replace(ledger.put(incident()), state=State.RELEASED))
    assert "expires_at" not in stored_items("incident#i-0a")[0]
    ledger.file(over, 5000.4)
    assert stored_items("incident#i-0a")[0]["expires_at"] == {"N": "5000"}


def test_a_proxys_page_is_no_empty_table() -> None:
    page = {"ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {}}}  # as botocore reads it
    client = Mock(**{"get_item.return_value": page, "put_item.return_value": page})
    ledger = Ledger(TABLE, "orders", REGION, client=client)
    for ask in (ledger.leases, lambda: ledger.put(incident())):
        with pytest.raises(NO_ANSWER, match="proxy"):
            ask()


@pytest.mark.parametrize("text", ["not json", "[]", "{}"])
def test_an_incident_that_somebody_has_edited_hides_no_other(aws: None, text: str) -> None:
    ledger = Ledger(TABLE, "orders", REGION)
    ledger.put(incident("i-0a"))
    ledger.put(incident("i-0b"))
    edited = {"pk": {"S": "incident#i-0a"}, "version": {"N": "1"}, "open": {"S": "open"}}
    boto3.client("dynamodb", region_name=REGION).put_item(
        TableName=TABLE, Item={**edited, "document": {"S": text}}
    )
    found = {each.id: each for each in ledger.open_incidents()}
    assert found.keys() == {"i-0a", "i-0b"}
    assert found["i-0a"].unreadable
    assert found["i-0b"].unreadable is None
    # It is held, and a person told once: what is written then can be read again.
    ledger.put(replace(found["i-0a"], pages=("unreadable",)))
    again = ledger.get("i-0a")
    assert again.unreadable
    assert again.pages == ("unreadable",)


@pytest.mark.parametrize("text", ["not json", '{"leases": [{"holder": "i-0a"}]}'])
def test_a_lease_that_somebody_has_edited_is_refused_in_a_sentence(aws: None, text: str) -> None:
    item = {"pk": {"S": "lease#orders"}, "version": {"N": "1"}, "document": {"S": text}}
    boto3.client("dynamodb", region_name=REGION).put_item(TableName=TABLE, Item=item)
    with pytest.raises(StillwaterError, match="cannot read"):
        Ledger(TABLE, "orders", REGION).leases()


def test_a_change_a_reader_would_see_is_queued_once(counted: list[str]) -> None:
    stories = FakeQueue()
    chronicle = Stories(stories).count_and_tell
    opened = replace(incident(), version=1)
    for written in (opened, replace(opened, version=2, ticked_at=9.0)):
        chronicle(written)
    assert [json.loads(body) for body, _ in stories.sent] == [{"incident_id": "i-0a"}]
    chronicle(replace(opened, version=3, reason="Kafka cannot spare it."))
    assert len(stories.sent) == 2


def test_a_queue_that_fails_holds_nobody_up_and_is_asked_again(counted: list[str]) -> None:
    stories = FakeQueue()
    fail(stories, "send", EndpointConnectionError(endpoint_url="https://sqs"), times=1)
    chronicle = Stories(stories).count_and_tell
    chronicle(incident())
    chronicle(incident())
    assert [json.loads(body)["incident_id"] for body, _ in stories.sent] == ["i-0a"]


def test_an_incident_is_counted_when_it_opens_and_when_it_ends_badly(counted: list[str]) -> None:
    chronicle = Stories(None).count_and_tell
    opened = replace(incident(), version=1)
    chronicle(opened)
    chronicle(replace(opened, version=2))
    chronicle(replace(opened, version=3, state=State.RETAINED))
    chronicle(replace(opened, version=3, state=State.LOST))
    chronicle(replace(opened, version=3, state=State.RELEASED))
    assert counted == [INCIDENTS_OPENED, INCIDENTS_RETAINED, INCIDENTS_LOST]


def test_a_ledger_tells_of_every_write_that_succeeded(aws: None, counted: list[str]) -> None:
    heard: list[int] = []
    ledger = Ledger(TABLE, "orders", REGION, written=lambda i: heard.append(i.version))
    written = ledger.put(incident())
    with pytest.raises(Exception, match="was changed"):
        ledger.put(incident())
    ledger.file(replace(written, state=State.RELEASED), None)
    assert heard == [1]


def test_a_refused_call_is_an_error_and_a_lost_race_is_none(aws: None, counted: list[str]) -> None:
    ledger = Ledger(TABLE, "orders", REGION)
    ledger.put(incident())
    with pytest.raises(Exception, match="was changed"):
        ledger.put(incident())
    assert counted == []
    with pytest.raises(Exception, match="ResourceNotFound"):
        Ledger("no-such-table", "orders", REGION).get("i-0a")
    assert counted == [LEDGER_ERRORS]


def test_what_was_counted_is_one_line_of_embedded_metrics(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STILLWATER_SETTINGS", '{"prefix":"local-orders"}')
    # The real one is one for the whole process, whatever is asked for.
    monkeypatch.setattr(metrics, "Metrics", EphemeralMetrics)
    monkeypatch.setattr(metrics, "_metrics", functools.cache(metrics._metrics.__wrapped__))

    @metrics.emits_metrics
    def entry(event: object, context: object) -> str:
        metrics.count(INCIDENTS_OPENED)
        metrics.count(INCIDENTS_OPENED, 2)
        return "done"

    assert entry({}, None) == "done"
    (line,) = capsys.readouterr().out.splitlines()
    document = json.loads(line)
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Stillwater"
    assert directive["Dimensions"] == [["cluster"]]
    assert document["cluster"] == "local-orders"
    assert sum(document["IncidentsOpened"]) == 3
    metrics.emits_metrics(lambda *_: None)({}, None)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", sorted(CALLING))
def test_what_calls_a_person_is_written_before_the_function_can_die(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "Metrics", EphemeralMetrics)
    monkeypatch.setattr(metrics, "_metrics", functools.cache(metrics._metrics.__wrapped__))
    metrics.count(name)
    assert json.loads(capsys.readouterr().out)[name] == [1]


ENDED = 1_795_168_800.0  # 2026-11-20T10:00:00Z


def over(state: State = State.RELEASED) -> Incident:
    opened = incident()
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
def desk() -> Desk:
    return Desk()


def test_what_is_over_is_told_and_filed_once_by_the_day_it_ended(desk: Desk) -> None:
    desk.has(over())
    desk.ledger.put(incident("i-0b"))  # It is open, and left alone.
    assert [desk.archivist.file_closed(), desk.archivist.file_closed()] == [1, 0]
    assert desk.told == ["i-0a"]
    ((key, line),) = desk.archive.objects.items()
    assert key == "incidents/closed_on=2026-11-20/i-0a.jsonl"
    row = json.loads(line)
    assert "\n" not in line
    assert (row["cluster"], row["state"], row["closed_at"]) == ("local-orders", "released", ENDED)
    expected = {"at": ENDED, "state": "released", "actor": "tick", "reason": "Over."}
    assert row["transitions"][-1] == expected
    assert row["hooks"] == ["drain"]
    # No lifecycle token leaves the ledger.
    assert "token-drain" not in line.replace(incident().announcements[0], "")


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


def test_all_rounds_of_an_instance_expire_once_it_is_gone(desk: Desk) -> None:
    desk.has(over(State.RETAINED))
    desk.archivist.file_closed()
    assert desk.ledger.filed == {"i-0a": None}
    desk.has(over(State.RELEASED))
    desk.archivist.file_closed()
    expiry = ENDED + 90 * 86_400
    assert desk.ledger.filed == {"i-0a": expiry, "i-0a.2": expiry}


def test_an_incident_that_changes_meanwhile_is_filed_with_the_next_sweep(desk: Desk) -> None:
    desk.has(over())

    def meddle(told: Incident) -> None:
        desk.ledger.put(replace(told, reason="late"))

    assert replace(desk.archivist, tell=meddle).file_closed() == 0
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
