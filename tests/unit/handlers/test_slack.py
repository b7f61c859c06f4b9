"""handlers.stories: each thing is said once, whatever fails, and nothing waits."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from core.ground.errors import StillwaterError
from core.incidents.record import Incident
from core.rotation.rebalance import TOLD_SECONDS, Rebalance
from core.rotation.run_record import Options, Run, note_run, open_run
from core.slack import LONGEST_POST_SECONDS, Message, Thread, head_message, worth_telling
from core.zones.incident import LostZone
from handlers import slack
from handlers.adapters.slack import Posted, RateLimited, RefusedBySlack, SlackChannel, Unreachable
from handlers.store.documents import Freezes, Runs, Threads
from handlers.store.ledger import Stories
from handlers.store.table import VersionedTable
from handlers.stories import MOST_ATTEMPTS, RenewedChannel, Teller
from tests.unit.core.availability.clusters import turn_of
from tests.unit.core.slack.test_incident_thread import incident
from tests.unit.handlers.failing import Killed, fail, kill
from tests.unit.handlers.in_memory import (
    FakeChannel,
    FakeQueue,
    MemoryLedger,
    MemoryRecords,
    MemoryThreads,
)
from tests.unit.handlers.station import Station
from tests.unit.handlers.tables import REGION, TABLE

MESSAGE = json.dumps({"incident_id": "i-0a", "attempt": 0})


@dataclass
class Newsroom:
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    threads: Threads = field(default_factory=MemoryThreads)
    records: MemoryRecords = field(default_factory=MemoryRecords)
    channel: FakeChannel = field(default_factory=FakeChannel)
    stories: FakeQueue = field(default_factory=FakeQueue)
    now: float = 1_795_168_900.0

    def knows(self, of: Incident) -> None:
        self.ledger.put(of)

    def teller(self, cluster: str, hold_limit_seconds: float) -> Teller:
        return Teller(
            ledger=self.ledger,
            runs=Runs(self.records, "orders"),
            threads=self.threads,
            channel=self.channel,
            stories=self.stories,
            freezes=Freezes(self.records, "orders"),
            cluster=cluster,
            hold_limit_seconds=hold_limit_seconds,
            runbooks_url="docs/runbooks",
        )

    def take(self, message: str = MESSAGE) -> None:
        teller = self.teller("local-orders", 3600)
        teller.take(message, lambda: self.now)

    @property
    def put_back(self) -> list[tuple[dict[str, object], float]]:
        return [(json.loads(body), delay) for body, delay in self.stories.sent]


@pytest.fixture
def newsroom() -> Newsroom:
    room = Newsroom()
    room.knows(incident(4))
    return room


def test_a_story_is_one_thread_and_the_same_message_again_says_nothing(newsroom: Newsroom) -> None:
    for _ in range(2):
        newsroom.take()
        assert [ts for _, ts, _ in newsroom.channel.messages] == [None, "1.000", "1.000", "1.000"]
    assert newsroom.channel.edits == 0
    assert newsroom.put_back == []


def test_an_incident_that_is_gone_is_not_told(newsroom: Newsroom) -> None:
    newsroom.take(json.dumps({"incident_id": "i-0z"}))
    assert newsroom.channel.messages == []


def test_a_limit_is_respected_without_waiting(newsroom: Newsroom) -> None:
    fail(newsroom.channel, "post", RateLimited("no more", 17.0), times=1)
    newsroom.take()
    assert newsroom.channel.messages == []
    assert newsroom.put_back == [({"incident_id": "i-0a", "attempt": 1}, 17.0)]
    newsroom.take(newsroom.stories.sent[0][0])
    assert len(newsroom.channel.messages) == 4


def test_slack_out_of_reach_is_asked_less_and_less_often(newsroom: Newsroom) -> None:
    fail(newsroom.channel, "post", Unreachable("down"))
    message = MESSAGE
    for _ in range(4):
        newsroom.take(message)
        newsroom.now += LONGEST_POST_SECONDS
        message = newsroom.stories.sent[-1][0]
    assert [delay for _, delay in newsroom.put_back] == [30, 60, 120, 240]


def test_a_story_is_given_up_in_the_end(newsroom: Newsroom) -> None:
    fail(newsroom.channel, "post", RateLimited("no", 1))
    newsroom.take(json.dumps({"incident_id": "i-0a", "attempt": MOST_ATTEMPTS}))
    named = {"incident_id": "rebalance:0a", "name": "grow", "said": "It moves."}
    newsroom.take(json.dumps({**named, "attempt": MOST_ATTEMPTS}))
    assert newsroom.put_back == []


def test_what_slack_refuses_for_good_fails_the_message(newsroom: Newsroom) -> None:
    refused = RefusedBySlack("Slack refused: channel_not_found.", "channel_not_found")
    fail(newsroom.channel, "post", refused, times=1)
    with pytest.raises(StillwaterError, match="channel_not_found"):
        newsroom.take()
    newsroom.take()
    assert len(newsroom.channel.messages) == 4


def test_the_sweep_has_each_word_about_a_rebalance_told_once(station: Station) -> None:
    room, queue = Newsroom(), FakeQueue()
    proposed = Rebalance("orders-grow-11", "ProposalReady", uid="0a", since=station.now)
    carried = replace(proposed, state="Rebalancing")
    over = replace(proposed, state="Ready", since=station.now + 60)
    long_over = replace(over, uid="0b", since=station.now - TOLD_SECONDS)
    for seen in (proposed, proposed, carried, over):
        told = ((seen, f"{seen.sentence}."), (long_over, "of another day"))
        broom = replace(station.broom, stories=Stories(queue), rebalances=lambda t=told: t)
        broom.sweep(station.now)
    assert len(queue.sent) == 4
    fail(room.channel, "post", RateLimited("no more", 17.0), times=1)
    room.take(queue.sent[0][0])
    for body, _ in (*room.stories.sent, *queue.sent):
        room.take(body)
    said = [message.text for *_, message in room.channel.messages]
    assert said == [
        "◐ partitions move · orders-grow-11",
        "KafkaRebalance orders-grow-11: ProposalReady.",
        "KafkaRebalance orders-grow-11: Rebalancing.",
        "KafkaRebalance orders-grow-11: Ready.",
    ]


@pytest.mark.parametrize("call", range(1, 6))
@pytest.mark.parametrize("side", ["before", "after"])
def test_dying_anywhere_repeats_and_omits_nothing(newsroom: Newsroom, call: int, side: str) -> None:
    newsroom.take()
    newsroom.ledger.put(_moved_on(newsroom))
    channel = newsroom.channel
    kill(call, [(channel, "post"), (channel, "edit")], after=side == "after")
    try:
        newsroom.take()
    except Killed:
        newsroom.now += LONGEST_POST_SECONDS + 1
        newsroom.take()
    keys = newsroom.channel.keys
    assert len(keys) == len(set(keys)) == 6
    assert "back in every ISR" in newsroom.channel.messages[0][2].text


def _moved_on(newsroom: Newsroom) -> Incident:
    known = newsroom.ledger.get("i-0a")
    return replace(incident(), version=known.version)


def test_a_post_whose_answer_got_lost_is_found_and_not_repeated(newsroom: Newsroom) -> None:
    fail(newsroom.channel, "post", Unreachable("answer lost"), times=1, after=True)
    newsroom.take()
    assert newsroom.channel.keys == ["i-0a/head"]
    newsroom.now += LONGEST_POST_SECONDS + 1
    newsroom.take()
    assert len(newsroom.channel.keys) == len(set(newsroom.channel.keys)) == 4


def test_two_never_tell_one_thread_at_a_time(newsroom: Newsroom) -> None:
    begun = Thread(incident_id="i-0a", doing="i-0a/head", doing_since=newsroom.now - 1)
    newsroom.threads.put(begun)
    newsroom.take()
    assert newsroom.channel.messages == []
    assert newsroom.put_back == [({"incident_id": "i-0a", "attempt": 0}, 5.0)]


def test_threads_keep_what_was_told_in_the_ledgers_table(aws: None) -> None:
    room = Newsroom(threads=Threads(VersionedTable(TABLE, REGION)))
    room.knows(incident(4))
    room.take()
    room.take()
    assert len(room.channel.messages) == 4
    assert room.threads.get("i-0a").ts == "1.000"


class Vault:
    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    def value(self) -> str:
        return self.tokens[0]

    def renew(self) -> str:
        return self.tokens.pop(1) if len(self.tokens) > 1 else self.tokens[0]


def test_a_token_that_slack_refuses_is_read_again_once() -> None:
    tried: list[str] = []

    def connect(token: str) -> FakeChannel:
        channel = FakeChannel()
        if token != "new":
            fail(channel, "post", RefusedBySlack("no", "token_revoked"))
        post = channel.post

        def noting(*arguments: Any) -> Any:
            tried.append(token)
            return post(*arguments)

        channel.post = noting
        return channel

    channel = RenewedChannel(Vault("old", "new"), connect)
    step_message = head_message(incident(1), "c", 1)
    channel.post("key", step_message, None)
    channel.post("key", step_message, None)
    assert tried == ["old", "new", "new"]
    hopeless = RenewedChannel(Vault("old"), connect)
    with pytest.raises(RefusedBySlack):
        hopeless.post("key", step_message, None)


def test_the_entry_reports_only_the_stories_that_failed(
    newsroom: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    teller = newsroom.teller("c", 1)
    monkeypatch.setattr(slack, "_teller", lambda: teller)
    records = [
        {"messageId": str(number), "body": body, "eventSource": "aws:sqs"}
        for number, body in enumerate((MESSAGE, "not json"))
    ]
    answer = slack.handler({"Records": records}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}


def test_a_zones_incident_is_one_thread_with_its_history(newsroom: Newsroom) -> None:
    freezes = Freezes(newsroom.records, "orders")
    shift = LostZone("use1-az4", "us-east-1a", source="autoshift", occurred_at=newsroom.now)
    freezes.note(shift, newsroom.now)
    queue = FakeQueue()
    told = Stories(queue).tell_zone
    for _ in range(2):
        (found,) = freezes.incidents()
        assert worth_telling(found, newsroom.now)
        told(found)
    ((message, _),) = queue.sent
    newsroom.take(message)
    newsroom.take(message)
    ((_, under, head),) = newsroom.channel.messages
    assert under is None
    assert "zone us-east-1a · frozen" in head.text
    freezes.note(replace(shift, over=True), newsroom.now + 60)
    (found,) = freezes.incidents()
    told(found)
    newsroom.take(queue.sent[-1][0])
    (head, reply) = [message for _, _, message in newsroom.channel.messages]
    assert "thawed" in head.text
    assert reply.text.startswith("thawed: ")
    assert not worth_telling(found, newsroom.now + 7200)


def test_a_rotation_run_is_one_thread_too(newsroom: Newsroom) -> None:
    run = a_run(newsroom)
    message = json.dumps({"incident_id": run.id, "attempt": 0})
    newsroom.take(message)
    noted = note_run(run, "rotation", "1 of 2: broker 10 leaves.", newsroom.now + 1)
    Runs(newsroom.records, "orders").put(noted)
    newsroom.take(message)
    newsroom.take(message)
    first, second = (message.text for _, _, message in newsroom.channel.messages)
    assert "0 of 2 nodes" in first
    assert second == "1 of 2: broker 10 leaves."


def a_run(newsroom: Newsroom) -> Run:
    runs = Runs(newsroom.records, "orders")
    return runs.put(open_run([turn_of(10), turn_of(20)], Options(), "ada", newsroom.now))


def joined(run: Run, of: Incident) -> Incident:
    """Return an incident that a run has asked for."""
    key = f"rotation:{run.id}:{of.instance_id}:1"
    return replace(of, announcements=(*of.announcements, key), version=1)


def test_an_incident_of_a_run_is_told_in_the_runs_thread(newsroom: Newsroom) -> None:
    run = a_run(newsroom)
    newsroom.ledger.put(joined(run, incident(4)))
    newsroom.take()
    newsroom.take()
    keys, threads = newsroom.channel.keys, [ts for _, ts, _ in newsroom.channel.messages]
    # The run's head comes first, though nobody had asked for its story yet.
    assert keys[:2] == [f"{run.id}/head", "i-0a/head"]
    assert threads == [None, *["1.000"] * 4]
    # Every reply says whose it is: two may be on their way at once.
    assert all("broker 10" in str(m.blocks) for _, _, m in newsroom.channel.messages[1:])


def test_its_own_first_message_is_edited_and_not_the_runs(newsroom: Newsroom) -> None:
    run = a_run(newsroom)
    told = newsroom.ledger.put(joined(run, incident(4)))
    newsroom.take()
    newsroom.ledger.put(replace(told, reason="Something else by now."))
    newsroom.take()
    assert "Something else by now." in newsroom.channel.messages[1][2].text
    assert "rotation" in newsroom.channel.messages[0][2].text
    assert len(newsroom.channel.messages) == 5


def test_an_incident_that_had_a_thread_before_its_run_keeps_it(newsroom: Newsroom) -> None:
    newsroom.take()
    told = newsroom.ledger.get("i-0a")
    assert told is not None
    newsroom.ledger.put(replace(joined(a_run(newsroom), told), reason="Its turn.", version=1))
    newsroom.take()
    assert [ts for _, ts, _ in newsroom.channel.messages] == [None, *["1.000"] * 3]


def test_an_incident_of_a_run_that_is_forgotten_has_a_thread_of_its_own(newsroom: Newsroom) -> None:
    forgotten = open_run([turn_of(10)], Options(), "ada", 0.0)
    newsroom.ledger.put(joined(forgotten, incident(4)))
    newsroom.take()
    assert newsroom.channel.keys[0] == "i-0a/head"
    assert newsroom.channel.messages[0][1] is None


@pytest.mark.parametrize("dies_at", ["rotation", "i-0a/head"])
def test_dying_after_a_post_doubles_nothing_in_a_thread(newsroom: Newsroom, dies_at: str) -> None:
    newsroom.ledger.put(joined(a_run(newsroom), incident(4)))
    post, deaths = newsroom.channel.post, []

    def dying(key: str, *arguments: Any) -> Any:
        done = post(key, *arguments)
        if key.startswith(dies_at) and not deaths:
            deaths.append(key)
            raise Killed
        return done

    newsroom.channel.post = dying
    with pytest.raises(Killed):
        newsroom.take()
    newsroom.now += LONGEST_POST_SECONDS + 1
    newsroom.take()
    assert len(newsroom.channel.keys) == len(set(newsroom.channel.keys)) == 5
    assert [ts for _, ts, _ in newsroom.channel.messages] == [None, *["1.000"] * 4]


@pytest.mark.parametrize("edits", [False, True], ids=["post", "edit"])
def test_the_text_beside_the_blocks_mentions_nobody(
    monkeypatch: pytest.MonkeyPatch, *, edits: bool
) -> None:
    channel, sent = SlackChannel("token", "C1", "https://slack.example/api/"), []

    def answer(_method: str, body: dict[str, Any]) -> dict[str, str]:
        sent.append(body)
        return {"channel": "C1", "ts": "1"}

    monkeypatch.setattr(channel, "_answer", answer)
    said = Message("AWS says: <!channel> <https://attacker.example|open> & more", ())
    if edits:
        channel.edit(Posted("C1", "1"), "key", said)
    else:
        channel.post("key", said, None)
    assert sent[0]["text"] == (
        "AWS says: &lt;!channel&gt; &lt;https://attacker.example|open&gt; &amp; more"
    )
