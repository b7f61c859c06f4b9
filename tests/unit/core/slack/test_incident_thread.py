"""core.slack: what a thread says, and in which order it is told."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events import Kind
from core.ground.words import span
from core.incidents.record import Incident, State, Transition
from core.slack import (
    LONGEST_POST_SECONDS,
    Thread,
    ThreadStep,
    durations,
    from_json,
    head_message,
    next_step,
    outlook,
    time_shown,
    to_json,
)
from tests.unit.docs import markdown

AT = 1_795_168_800.0
WALK = (
    (0, State.OPENED, "AWS announced asg_terminate for instance i-0a."),
    (5, State.REPLACING, "A replacement is on its way."),
    (65, State.HOLDING, "Node ip-i-0d is Ready."),
    (95, State.DRAINING, "Kafka can spare broker 10."),
    (150, State.GATING, "Pod orders-broker-a-10 has left the node."),
    (180, State.RELEASED, "Broker 10 is back in every ISR."),
)


def incident(steps: int = len(WALK), **changed: object) -> Incident:
    transitions = tuple(Transition(AT + t, s, "tick", reason) for t, s, reason in WALK[:steps])
    walked = Incident(
        id="i-0a",
        instance_id="i-0a",
        kind=Kind.ASG_TERMINATE,
        state=transitions[-1].state,
        opened_at=AT,
        announced_at=AT,
        announcements=("key",),
        group="local-orders-broker-a",
        zone="us-east-1a",
        pool="broker",
        node_id=10,
        role="broker",
        reason=transitions[-1].reason,
        transitions=transitions,
    )
    return replace(walked, **changed)


def told(of: Incident, thread: Thread) -> tuple[list[ThreadStep], Thread]:
    """Take every step as Slack would, and return them."""
    steps: list[ThreadStep] = []
    while (step := next_step(of, thread, "local-orders", 3600)) is not None:
        thread = thread.advance(step, "C0HARBOUR", thread.ts or "1.000100")
        steps.append(step)
    return steps, thread


def test_the_guide_shows_the_thread_of_this_walk() -> None:
    page = markdown.REPOSITORY / "docs/how-to/slack.md"
    (shown,) = (each.body for each in markdown.blocks(page) if each.language == "text")
    steps, _ = told(incident(), Thread(incident_id="i-0a"))
    assert shown.splitlines() == [step.message.text for step in steps]


def test_what_others_did_is_a_reply() -> None:
    note = Transition(AT + 99, State.DRAINING, "nth", "NTH has ended its attempt.")
    steps, _ = told(incident(4, notes=(note,)), Thread(incident_id="i-0a"))
    assert "NTH has ended its attempt." in json.dumps(steps[-1].message.blocks)


def test_a_note_with_an_earlier_time_moves_no_reply_that_was_told() -> None:
    _, thread = told(incident(4), Thread(incident_id="i-0a"))
    late = Transition(AT + 50, State.REPLACING, "ana", "ana holds instance i-0a.")
    steps, _ = told(incident(4, notes=(late,)), thread)
    assert [step.action for step in steps] == ["reply"]
    assert "ana holds" in steps[0].message.text


@given(st.lists(st.integers(min_value=1, max_value=len(WALK)), max_size=8))
def test_however_often_and_early_it_is_told_everything_is_said_once(moments: list[int]) -> None:
    thread, steps = Thread(incident_id="i-0a"), []
    for moment in (*sorted(moments), len(WALK)):
        more, thread = told(incident(moment), thread)
        steps += more
    replies = [step.key for step in steps if step.action == "reply"]
    assert len(replies) == len(set(replies)) == len(WALK) - 1
    assert [step.action for step in steps].count("head") == 1
    assert thread.head == head_message(incident(), "local-orders", 3600).fingerprint


def test_the_end_says_how_long_everything_took() -> None:
    steps, _ = told(incident(), Thread(incident_id="i-0a"))
    outcome = next(step for step in steps if step.message.text.startswith("released"))
    said = outcome.message.blocks[0]["text"]["text"]
    assert "draining: 55 s" in said
    assert "in all: 3 min" in said


def test_a_story_says_what_comes_next_and_when() -> None:
    assert "Kafka can spare" in outlook(incident(3), 3600)
    assert "2026-11-20 11:00:00 UTC" in outlook(incident(3), 3600)
    retired = incident(1, kind=Kind.SCHEDULED_CHANGE, due_at=AT + 86_400)
    assert "AWS acts at 2026-11-21 10:00:00 UTC" in outlook(retired, 3600)
    assert "two minutes" in outlook(incident(1, kind=Kind.SPOT_INTERRUPTION), 3600)
    assert "stillwater release ENV i-0a" in outlook(incident(1, state=State.RETAINED), 3600)
    assert outlook(incident(), 3600) == ""


def test_what_aws_or_kafka_said_cannot_mention_anybody() -> None:
    hostile = incident(2, reason="<!channel> & <script>alert(1)</script>")
    said = json.dumps(head_message(hostile, "c", 1).blocks)
    assert "<!channel>" not in said
    assert "&lt;!channel&gt; &amp; &lt;script&gt;" in said


def test_no_text_exceeds_what_slack_takes() -> None:
    long = incident(3, reason="p" * 50_000, pod_name="q" * 5_000)
    blocks = head_message(long, "c", 1).blocks
    assert len(blocks[0]["text"]["text"]) <= 150
    assert len(blocks[1]["text"]["text"]) <= 3000
    assert all(len(field["text"]) <= 2000 for field in blocks[2]["fields"])
    assert len(blocks[2]["fields"]) <= 10


def test_a_thread_reads_as_it_was_written() -> None:
    _, thread = told(incident(), Thread(incident_id="i-0a"))
    assert from_json(to_json(thread)) == thread


def test_one_that_began_and_was_never_heard_of_is_taken_for_dead() -> None:
    step = next_step(incident(1), Thread(incident_id="i-0a"), "c", 1)
    assert step is not None
    begun = Thread(incident_id="i-0a").begun(step, 100.0)
    assert begun.busy(101.0)
    assert not begun.busy(101.0 + LONGEST_POST_SECONDS)
    assert not begun.given_up().busy(101.0)


def test_durations_and_times_read_well() -> None:
    expected = ["0 s", "59 s", "1 min 1 s", "1 h", "1 d 2 h"]
    assert [span(s) for s in (0.2, 59, 61, 3600, 93_784)] == expected
    assert durations(incident(1)) == ["in all: 0 s"]
    assert time_shown(AT).endswith("|2026-11-20 10:00:00 UTC>")


@pytest.mark.parametrize(
    ("runbooks_url", "line"),
    [
        ("https://wiki.example/kafka", "<https://wiki.example/kafka/budget.md|budget:orders>"),
        ("docs/runbooks", "docs/runbooks/budget.md"),
    ],
)
def test_a_head_links_the_runbook_of_the_last_page(runbooks_url: str, line: str) -> None:
    called = replace(incident(), pages=("hold_limit", "budget:orders"))
    said = [
        block["text"]["text"] for block in head_message(called, "c", 1, runbooks_url).blocks[:2]
    ]
    assert said[1].endswith(f"\n*Runbook:* {line}")
    assert "Runbook" not in json.dumps(head_message(incident(), "c", 1, runbooks_url).blocks)
