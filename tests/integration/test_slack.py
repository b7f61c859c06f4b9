"""Slack's own client against the twin's Slack, and the page of what was told."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from core.incidents.record import Replacement
from core.slack import Message, Thread, head_message, next_step
from handlers.adapters.slack import Posted, RateLimited, RefusedBySlack, SlackChannel, Unreachable
from local.slack.server import CHANNEL, TOKEN, SlackServer
from tests import browser
from tests.integration.waiting import PATIENCE_SECONDS
from tests.unit.core.slack.test_incident_thread import incident

pytestmark = pytest.mark.integration
OUTPUT = Path("out/integration")
REPLACEMENT = Replacement(node="ip-10-11-1-9", ready_at=1.0)


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    server = SlackServer(("127.0.0.1", 0))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def url(slack: SlackServer) -> str:
    return f"http://127.0.0.1:{slack.server_port}/api/"


@pytest.fixture
def channel(slack: SlackServer) -> SlackChannel:
    return SlackChannel(TOKEN, CHANNEL, url(slack))


HEAD = Message("head", ({"type": "section", "text": {"type": "mrkdwn", "text": "*head*"}},))


def test_a_message_is_posted_answered_and_edited(slack: SlackServer, channel: SlackChannel) -> None:
    head = channel.post("i-0a/head", HEAD, None)
    reply = channel.post("i-0a/1", Message("reply", ()), head)
    channel.edit(head, "i-0a/edit", Message("newer", HEAD.blocks))
    ((first, replies),) = slack.workspace.threads()
    assert (first.text, first.edits, [r.text for r in replies]) == ("newer", 1, ["reply"])
    assert head.channel == CHANNEL
    assert reply.ts != head.ts


def test_what_was_posted_is_found_by_its_key(slack: SlackServer, channel: SlackChannel) -> None:
    for number in range(250):
        channel.post(f"other/{number}", Message("other", ()), None)
    head = channel.post("i-0a/head", HEAD, None)
    reply = channel.post("i-0a/1", Message("reply", ()), head)
    assert channel.find("i-0a/head", 0.0, None) == head
    assert channel.find("i-0a/1", 0.0, head) == reply
    assert channel.find("other/0", 0.0, None) is not None
    assert channel.find("i-0a/2", 0.0, head) is None
    assert channel.find("i-0a/head", float(head.ts) + 60, None) is None


def test_a_limit_says_for_how_long(slack: SlackServer, channel: SlackChannel) -> None:
    slack.workspace.limit(1, 17)
    with pytest.raises(RateLimited, match="17 s") as limited:
        channel.post("key", HEAD, None)
    assert limited.value.retry_after_seconds == 17
    assert channel.post("key", HEAD, None)


def test_an_outage_leaves_open_whether_it_was_posted(
    slack: SlackServer, channel: SlackChannel
) -> None:
    slack.workspace.fail(1)
    with pytest.raises(Unreachable):
        channel.post("key", HEAD, None)
    assert slack.workspace.calls == ["chat.postMessage"]


def test_a_slack_that_is_not_there_is_out_of_reach() -> None:
    nobody = SlackChannel(TOKEN, CHANNEL, "http://127.0.0.1:1/api/")
    with pytest.raises(Unreachable):
        nobody.post("key", HEAD, None)


@pytest.mark.parametrize(
    ("token", "name", "code"),
    [("xoxb-wrong", CHANNEL, "invalid_auth"), (TOKEN, "C0NOWHERE1", "channel_not_found")],
)
def test_a_refusal_names_slacks_reason_and_no_token(
    slack: SlackServer, token: str, name: str, code: str
) -> None:
    with pytest.raises(RefusedBySlack, match=code) as refused:
        SlackChannel(token, name, url(slack)).post("key", HEAD, None)
    assert refused.value.code == code
    assert token not in str(refused.value)


def test_a_reply_to_nothing_and_blocks_too_long_are_refused(
    slack: SlackServer, channel: SlackChannel
) -> None:
    with pytest.raises(RefusedBySlack, match="thread_not_found"):
        channel.post("key", HEAD, Posted(CHANNEL, "1.000001"))
    long = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
    with pytest.raises(RefusedBySlack, match="invalid_blocks"):
        channel.post("key", Message("long", (long,)), None)


def tell(channel: SlackChannel, of: object, thread: Thread) -> Thread:
    """Tell an incident as λ slack does, without its ledger."""
    while (step := next_step(of, thread, "local-harbour", 3600)) is not None:  # type: ignore[arg-type]
        head = Posted(thread.channel, thread.ts) if thread.channel and thread.ts else None
        if step.action == "edit" and head is not None:
            channel.edit(head, step.key, step.message)
            thread = thread.advance(step, head.channel, head.ts)
        else:
            posted = channel.post(step.key, step.message, head)
            thread = thread.advance(step, posted.channel, posted.ts)
    return thread


@pytest.fixture
def page(slack: SlackServer, channel: SlackChannel) -> Path:
    """The page of one incident that was told as it went, and of one that stands open."""
    known = {"node_name": "ip-10-11-1-4.ec2.internal", "pod_name": "harbour-broker-a-10"}
    thread = Thread(incident_id="i-0a")
    for steps in range(1, 7):
        thread = tell(channel, incident(steps, replacement=REPLACEMENT, **known), thread)
    hostile = "Topic <script>document.title = 'owned'</script> & <!channel> has *no* margin."
    tell(channel, incident(3, id="i-0b", reason=hostile), Thread(incident_id="i-0b"))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    target = OUTPUT / "slack.html"
    answer = urllib3.request(
        "GET", f"http://127.0.0.1:{slack.server_port}/", timeout=PATIENCE_SECONDS
    )
    target.write_bytes(answer.data)
    return target


@browser.needed
def test_the_page_shows_every_thread_in_a_browser(page: Path) -> None:
    chromium = browser.find()
    assert chromium is not None
    seen = browser.look(chromium, page)
    assert seen.console == ()
    assert seen.dom.count("<article") == 2
    assert "back in every ISR" in seen.dom
    assert "2026-11-20 10:00:00 UTC" in seen.dom
    assert "in all: 3 min" in seen.dom
    assert "<title>#kafka-harbour" in seen.dom
    assert "&lt;script&gt;document.title" in seen.dom
    for size, name in ((browser.DESKTOP, "slack.png"), (browser.PHONE, "slack-phone.png")):
        assert browser.photograph(chromium, page, OUTPUT / name, size=size).stat().st_size > 10_000


def test_the_real_head_is_within_what_slack_accepts(
    slack: SlackServer, channel: SlackChannel
) -> None:
    worst = incident(
        6, reason="p" * 90_000, pod_name="q" * 9_000, due_at=1e9, replacement=REPLACEMENT
    )
    channel.post("key", head_message(worst, "c", 1), None)
    assert json.dumps(slack.workspace.posts[0].blocks)
