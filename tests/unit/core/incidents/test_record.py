"""record, joining and settling: what announcements and reports do to an incident.

What the ledger holds is read whichever release wrote it, and nothing of it is lost.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events import Kind, parse
from core.ground.errors import InvalidInput
from core.ground.fields import as_document
from core.ground.naming import incident_id
from core.incidents.actions import Decision, ForwardDrain, Heartbeat, Page, settle
from core.incidents.decide import next_action, why_unanswered
from core.incidents.joining import (
    is_reported_by,
    merge,
    note_report,
    open_incident,
    read_drain_report,
    reopens,
)
from core.incidents.observation import (
    GROUP_TAG,
    InstanceView,
    Observation,
    Ownership,
    PodView,
    cluster_ownership,
)
from core.incidents.record import (
    ALLOWED,
    SECTIONS,
    SOMEBODY,
    TERMINAL,
    Drainer,
    Forwarding,
    GroupRefusal,
    Incident,
    InPlace,
    LaunchFailure,
    NodeDisruption,
    Release,
    Section,
    State,
    from_json,
    is_unattended,
    to_json,
)
from core.incidents.sweep import LEFT_OUT_SECONDS, Snapshot, left_out
from tests.every_case import every_case
from tests.unit.core.incidents.announced_incidents import OLD, announcement, opened_incident
from tests.unit.core.incidents.test_sweep import NOW, announced, group, incident_of
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.station import POLICY


def test_an_announcement_that_joined_already_changes_nothing() -> None:
    incident = opened_incident()
    assert merge(incident, announcement(hook="drain", lifecycle_token="t"), 9.0) is incident


def test_the_second_hooks_announcement_adds_its_token() -> None:
    incident = merge(opened_incident(), announcement(hook="gate", lifecycle_token="u"), 1.0)
    assert incident.hooks == {"drain": "t", "gate": "u"}
    assert incident.drain_event == "asg_terminate drain"
    # The gate's alone is never forwarded as the drain.
    assert opened_incident(hook="gate").drain_event is None


def test_what_was_planned_becomes_a_termination_and_then_a_warning() -> None:
    incident = opened_incident(
        Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    )
    incident = merge(incident, announcement(hook="drain", lifecycle_token="t"), 1.0)
    assert incident.kind is Kind.ASG_TERMINATE
    assert incident.group == "g"
    incident = merge(incident, announcement(Kind.SPOT_INTERRUPTION), 2.0)
    assert incident.urgent
    assert merge(incident, announcement(Kind.STATE_CHANGE), 3.0).kind is Kind.SPOT_INTERRUPTION


@pytest.mark.parametrize("code", ["AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED", None])
def test_a_reboot_or_the_end_of_an_unknown_change_takes_no_sickness_over(code: str | None) -> None:
    said = announcement(Kind.SCHEDULED_CHANGE, event_type=code, closed=code is None)
    heard = merge(opened_incident(Kind.SICK_NODE), said, 1.0)
    assert (heard.kind, heard.called_off) == (Kind.SICK_NODE, False)


def test_a_run_calls_off_nothing_but_its_own() -> None:
    theirs = opened_incident(Kind.EVICTION, hook=None, lifecycle_token=None)
    heard = merge(theirs, announcement(Kind.ROTATION, closed=True, hook=None), 1.0)
    assert (heard.kind, heard.called_off) == (Kind.EVICTION, False)


def test_a_root_volume_in_place_is_asked_for_before_anything_has_begun() -> None:
    asked = announcement(Kind.ROTATION, image_id="ami-1")
    for state, place in ((State.OPENED, InPlace(image_id="ami-1")), (State.REPLACING, None)):
        sick = replace(opened_incident(Kind.SICK_NODE), state=state)
        assert merge(sick, asked, 1.0).in_place == place


def test_a_clock_ahead_of_ours_does_not_postpone_heartbeats() -> None:
    assert open_incident(announcement(occurred_at=99.0), 10.0).announced_at == 10.0
    assert open_incident(announcement(occurred_at=None), 10.0).announced_at == 10.0


REOPENING = [
    (State.RELEASED, False),
    (State.LOST, False),
    (State.RETAINED, True),
    (State.CANCELLED, True),
    (State.RIDDEN_THROUGH, True),
]


@every_case(("state", "again"), REOPENING)
def test_an_instance_that_still_runs_may_be_announced_again(state: State, again: bool) -> None:
    finished = replace(opened_incident(), state=state)
    assert reopens(finished, announcement(hook="drain", dedupe_key="new")) is again
    assert not reopens(finished, announcement(hook="drain"))


def test_a_later_round_has_an_id_of_its_own() -> None:
    assert [incident_id(OLD, n) for n in (1, 2)] == ["i-old", "i-old.2"]


def test_launches_and_called_off_plans_open_no_incident() -> None:
    assert why_unanswered(announcement(Kind.ASG_LAUNCH))
    assert why_unanswered(announcement(Kind.SCHEDULED_CHANGE, closed=True))
    assert why_unanswered(announcement()) is None


def test_a_transition_design_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="may not go opened -> released"):
        settle(opened_incident(), Decision(state=State.RELEASED, reason="x"), 1.0)


def test_every_state_but_the_ends_leads_somewhere() -> None:
    assert set(ALLOWED) == set(State)
    assert {s for s, following in ALLOWED.items() if not following} == TERMINAL


def test_a_reason_that_changes_is_noted_once() -> None:
    stay = Decision(state=State.OPENED, reason="waiting", delay_seconds=5)
    incident = settle(settle(opened_incident(), stay, 1.0), stay, 2.0)
    assert [(n.at, n.reason) for n in incident.notes] == [(1.0, "waiting")]
    assert len(incident.transitions) == 1


def test_a_record_survives_being_written() -> None:
    incident = settle(
        merge(opened_incident(), announcement(Kind.SPOT_INTERRUPTION), 2.0),
        Decision(state=State.DRAINING, reason="now", actions=(ForwardDrain(),), delay_seconds=0),
        3.0,
    )
    assert from_json(to_json(incident)) == incident


def test_an_incident_is_unattended_once_its_tick_is_late() -> None:
    incident = replace(opened_incident(), ticked_at=100.0, next_tick_at=1000.0)
    assert not is_unattended(incident, 1040.0, 45)
    assert is_unattended(incident, 1046.0, 45)
    assert is_unattended(opened_incident(), 46.0, 45)
    assert not is_unattended(replace(incident, state=State.LOST), 9999.0, 45)


@pytest.mark.parametrize(("hook", "again"), [(None, True), ("drain", False)])
def test_a_termination_is_another_matter_than_a_warning(hook: str | None, again: bool) -> None:
    warned = announcement(Kind.SPOT_INTERRUPTION)
    incident = open_incident(warned, 0.0)
    if hook is not None:
        incident = merge(incident, announcement(hook=hook), 1.0)
    over = replace(incident, state=State.CANCELLED, ignored_by="ada")
    assert reopens(over, announcement(hook="gate", dedupe_key="new")) is again


def test_what_was_ignored_is_one_termination() -> None:
    over = replace(opened_incident(), state=State.RIDDEN_THROUGH, ignored_by="ada")
    for token, at, again in (("u", 9.0, True), ("t", 9.0, False), ("u", -9.0, False)):
        said = announcement(hook="drain", lifecycle_token=token, occurred_at=at, dedupe_key="new")
        assert reopens(over, said) is again


EVENT_ID = "event-i-0a-drain"


def posted(event_id: str = EVENT_ID, **changed: object) -> str:
    """Return what NTH posts about an announcement; its id, hex-encoded, ends NTH's own."""
    return json.dumps(
        {
            "EventID": f"asg-lifecycle-term-{event_id.encode().hex()}",
            "Kind": "ASG_LIFECYCLE",
            "Monitor": "SQS_MONITOR",
            "Description": "ASG Lifecycle Termination event received. \n",
            "NodeName": "ip-i-0a.ec2.internal",
            "Pods": ["orders-broker-a-10"],
            "InstanceID": "i-0a",
            **changed,
        }
    )


def draining() -> Incident:
    (found,) = parse(hook_event("drain"))
    sent = Forwarding(first_at=2.0, last_at=2.0)
    return replace(open_incident(found, 1.0), forwarded=sent)


def test_a_report_leads_back_to_its_announcement() -> None:
    report = read_drain_report(posted())
    assert report.announcement_id == EVENT_ID
    assert is_reported_by(draining(), report)


@every_case("other", [posted("event-i-0a-gate"), posted(InstanceID="i-0b")])
def test_a_report_of_something_else_concerns_nothing(other: str) -> None:
    assert not is_reported_by(draining(), read_drain_report(other))
    assert not is_reported_by(replace(draining(), forwarded=None), read_drain_report(posted()))


def test_a_drain_sent_in_place_of_a_lost_announcement_is_known_by_its_request_id() -> None:
    lost = replace(draining(), drain_event=None)
    assert is_reported_by(lost, read_drain_report(posted("stillwater-i-0a")))


def test_a_report_is_noted_once() -> None:
    once = note_report(draining(), read_drain_report(posted()), 5.0)
    (note,) = once.notes
    assert (note.actor, note.at) == ("nth", 5.0)
    assert "ip-i-0a.ec2.internal" in note.reason
    assert note_report(once, read_drain_report(posted()), 6.0) is once


@every_case(
    "body",
    [
        "",
        "null",
        "[]",
        "{",
        '{"EventID": NaN}',
        # NTH's default template: a raw newline in a string.
        '{"text":"Description: interrupted \n"}',
        "[" * 100_000,
        posted(EventID="asg-lifecycle-term-xyz"),
        posted(EventID=7),
        posted(InstanceID="i-0a; drop"),
        posted(Kind=None),
    ],
)
def test_anything_else_is_refused_with_a_sentence(body: str) -> None:
    with pytest.raises(InvalidInput, match=r"\.$"):
        read_drain_report(body)


POD = PodView(
    name="orders-broker-a-10",
    node_id=10,
    role="broker",
    node_name=None,
    ready=False,
    out_since=NOW - LEFT_OUT_SECONDS,
    trouble="Unschedulable",
)
LEAVING = Snapshot(now=NOW, groups=(group(i_0a="Terminating:Wait"),))


def test_a_pod_nobody_cares_for_is_told_with_what_it_waits_for() -> None:
    (told,) = left_out([POD], [], NOW)
    assert (told.key, told.page) == ("left_out:orders-broker-a-10", "left_out")
    assert told.reason.startswith(
        "Kafka node 10 is out for 30 minutes, and no incident has called a person about it. Pod "
        "orders-broker-a-10 is on no node: Unschedulable."
    )


@pytest.mark.parametrize(
    "pod",
    [
        replace(POD, ready=True, out_since=None),
        replace(POD, out_since=NOW - LEFT_OUT_SECONDS + 1),
        replace(POD, out_since=None),
    ],
    ids=["Ready", "not for long", "nobody said since when"],
)
def test_a_pod_that_is_back_or_may_yet_come_is_not_told(pod: PodView) -> None:
    assert list(left_out([pod], [], NOW)) == []


def test_an_open_incident_cares_for_its_own_pod_alone() -> None:
    own = replace(incident_of(announced(LEAVING)), pod_name=POD.name, state=State.GATING)
    assert list(left_out([POD], [own], NOW)) == []
    other = replace(own, pod_name="orders-broker-b-20")
    assert len(list(left_out([POD], [other], NOW))) == 1


THEIRS = Ownership(
    marks=({"eks:cluster-name": ("shop",), "eks:nodegroup-name": ("quorum", "brokers")},),
    scaling_groups=("kafka-a",),
)


@every_case(
    ("tags", "belongs"),
    [
        ({GROUP_TAG: "kafka-a"}, True),
        ({GROUP_TAG: "kafka-b"}, False),
        ({"eks:cluster-name": "shop", "eks:nodegroup-name": "brokers"}, True),
        ({"eks:cluster-name": "lab", "eks:nodegroup-name": "brokers"}, False),
        ({"eks:nodegroup-name": "brokers"}, False),
        ({}, False),
    ],
)
def test_all_tags_or_the_groups_name_are_asked_for(tags: dict[str, str], belongs: bool) -> None:
    assert THEIRS.owns(tags) is belongs


def test_our_own_are_known_by_a_key_whatever_its_value() -> None:
    assert cluster_ownership("prod-orders").owns({"aws-node-termination-handler/prod-orders": ""})
    assert not cluster_ownership("prod-orders").owns(
        {"aws-node-termination-handler/prod-orders-2": "true"}
    )
    assert cluster_ownership("x").lacking == "no tag aws-node-termination-handler/x"


STORED = Path(__file__).parents[3] / "data" / "stored"
RUNS = InstanceView(instance_id="i-0a", state="running", zone="a", private_dns_name="ip-10-0-0-1")
RELEASED = sorted(STORED.glob("incident-*.json"))


def newer(**changes: Any) -> str:
    """Return a document as a release after this one may write it."""
    return json.dumps({**json.loads(RELEASED[-1].read_text()), **changes})


@every_case("path", RELEASED, ids=lambda path: path.stem)
def test_a_document_of_every_release_is_read(path: Path) -> None:
    incident = from_json(path.read_text())
    assert (incident.kind, incident.state) == (Kind.ASG_TERMINATE, State.DRAINING)
    assert incident.hooks == {"drain": "t1", "gate": None}
    assert incident.transitions[-1].state is State.DRAINING
    assert incident.unreadable is None
    assert json.loads(path.read_text()).items() <= json.loads(to_json(incident)).items()


@pytest.mark.parametrize(
    "added",
    [
        {"eviction_asked_at": 12.5},
        {"kind": "nodeclaim_expired"},
        {"state": "recalling"},
        {"kind": "nodeclaim_expired", "zone_incident": {"id": "z1", "since": 3.0}},
        {
            "transitions": [
                {"at": 1.5, "state": "recalling", "actor": "tick", "reason": "Recalled."}
            ]
        },
        {"in_place": {**as_document(InPlace(image_id="ami-1")), "snapshot_id": "snap-1"}},
    ],
    ids=["field", "kind", "state", "kind-and-field", "transition", "part"],
)
def test_what_a_newer_release_added_is_written_back_as_it_was(added: dict[str, Any]) -> None:
    incident = from_json(newer(**added))
    assert incident.open
    written = json.loads(to_json(incident))
    assert {name: written[name] for name in added} == added
    assert "unread" not in written
    assert from_json(to_json(incident)) == incident


@pytest.mark.parametrize("added", [{"kind": "nodeclaim_expired"}, {"state": "recalling"}])
def test_an_incident_nobody_here_can_read_is_held_and_paged_once(added: dict[str, str]) -> None:
    incident = from_json(newer(**added))
    policy = POLICY
    seen = Observation(now=incident.announced_at + policy.heartbeat_timeout_seconds, instance=RUNS)
    decision = next_action(incident, seen, policy)
    assert decision.state is incident.state
    assert {type(action) for action in decision.actions} == {Heartbeat, Page}
    (word,) = added.values()
    assert word in decision.reason
    again = next_action(settle(incident, decision, seen.now), seen, policy)
    assert not [action for action in again.actions if isinstance(action, Page)]


def test_only_a_missing_word_makes_an_incident_unreadable() -> None:
    assert from_json(newer(eviction_asked_at=12.5)).unreadable is None
    assert isinstance(from_json(newer()), Incident)


def test_a_root_volume_in_place_is_read_as_it_was_written_and_by_an_older_release() -> None:
    place = {"image_id": "ami-1", "task_id": "replacevol-1", "task_state": "in-progress"}
    incident = from_json(newer(in_place={**place, "since_a_later_release": True}))
    assert incident.in_place == InPlace(**place)
    assert from_json(to_json(incident)) == incident
    assert from_json(newer()).in_place is None


@pytest.mark.parametrize(
    "changed",
    [
        {"announcements": None},
        {"transitions": [{"when": 3.0}]},
        {"scheduled": [{"code": "X"}]},
        {"in_place": {"image": "ami-1"}},
        {"opened_at": {"at": 3.0}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_document_of_another_shape_is_held_told_once_and_left(changed: dict[str, Any]) -> None:
    stored = newer(**changed)
    incident = from_json(stored)
    assert (incident.id, incident.instance_id, incident.open) == ("i-0a.2", "i-0a", True)
    seen = Observation(now=5000.0, instance=RUNS)
    decision = next_action(incident, seen, POLICY)
    assert [a.key for a in decision.actions if isinstance(a, Page)] == ["unreadable"]
    assert Heartbeat("drain") in decision.actions
    written = to_json(settle(incident, decision, seen.now))
    again = next_action(from_json(written), replace(seen, now=5001.0), POLICY)
    assert not any(isinstance(action, Page) for action in again.actions)
    own = {"pages", "reason", "notes", "next_tick_at", "heartbeat_at", "version"}
    kept = {k: v for k, v in json.loads(written).items() if k not in own}
    assert {k: v for k, v in json.loads(stored).items() if k not in own}.items() <= kept.items()


def test_a_document_of_another_shape_that_is_over_stays_so() -> None:
    assert not from_json(newer(state="released", transitions=[{"when": 3.0}])).open


def test_a_document_without_an_id_is_no_incident() -> None:
    with pytest.raises(KeyError):
        from_json("{}")


# As the first release wrote it, and as this one writes the same.
OLDEST = json.loads((STORED / "incident-0.1.0.json").read_text())
PLAIN = json.loads(to_json(from_json(json.dumps(OLDEST))))
OPENED_AT = PLAIN["opened_at"]
KEYS = sorted(key for section in SECTIONS.values() for key in section.keys.values())
WORDS = st.text(min_size=1, max_size=8)
MOMENTS = st.floats(0, 2e9, allow_nan=False)
COUNTS = st.integers(1, 9)


def value_of(key: str) -> st.SearchStrategy[Any]:
    if key == "forwards":
        return COUNTS
    return MOMENTS if key.endswith("_at") else WORDS


def section_of(section: Section) -> st.SearchStrategy[dict[str, Any]]:
    """Return a story that has not begun, or one with all that it needs."""
    begun: dict[str, st.SearchStrategy[Any]] = {}
    for name, key in section.keys.items():
        value = value_of(key)
        begun[key] = st.none() | value if name in section.may_lack else value
    return st.just(section.flat(None)) | st.fixed_dictionaries(begun)


DOCUMENTS = st.tuples(*map(section_of, SECTIONS.values())).map(
    lambda drawn: PLAIN | {key: value for each in drawn for key, value in each.items()}
)


def written(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def read(**stored: Any) -> Incident:
    return from_json(json.dumps(PLAIN | stored))


@given(DOCUMENTS)
def test_a_document_is_written_back_as_it_was_read(document: dict[str, Any]) -> None:
    assert to_json(from_json(written(document))) == written(document)


@given(DOCUMENTS)
def test_an_incident_is_read_back_as_it_was_written(document: dict[str, Any]) -> None:
    incident = from_json(written(document))
    assert from_json(to_json(incident)) == incident
    without = replace(incident, **dict.fromkeys(SECTIONS))
    assert from_json(to_json(without)) == without


@given(DOCUMENTS, st.sets(st.sampled_from(KEYS)))
def test_a_story_stored_in_part_is_read_once(document: dict[str, Any], lost: set[str]) -> None:
    without = {key: value for key, value in document.items() if key not in lost}
    incident = from_json(written(without))
    assert from_json(to_json(incident)) == incident
    assert from_json(written(document | dict.fromkeys(lost))) == incident


def test_what_the_first_release_wrote_has_no_story_but_what_it_says() -> None:
    incident = from_json(json.dumps(OLDEST))
    assert [getattr(incident, name) for name in SECTIONS] == [None] * len(SECTIONS)
    assert OLDEST.items() <= json.loads(to_json(incident)).items()


def test_a_key_of_a_newer_release_that_is_named_like_a_section_is_kept_apart() -> None:
    incident = read(release={"by": "ada"})
    assert incident.release is None
    assert json.loads(to_json(incident))["release"] == {"by": "ada"}


@pytest.mark.parametrize(
    ("stored", "section"),
    [
        ({"replacement": "ip-1"}, {"replacement": None}),
        ({"replacement_ready_at": 9.0}, {"replacement": None}),
        ({"release_asked_by": "ada"}, {"release": None}),
        ({"release_asked_at": 9.0}, {"release": None}),
        (
            {"release_asked_by": "ada", "release_asked_at": 0.0},
            {"release": Release(by="ada", at=0.0)},
        ),
    ],
    ids=" ".join,
)
def test_half_a_good_news_is_none(stored: dict[str, Any], section: dict[str, Any]) -> None:
    incident = read(**stored)
    assert {name: getattr(incident, name) for name in section} == section


@every_case(
    ("stored", "section"),
    [
        ({"asked_at": 9.0}, {"drainer": Drainer(name=SOMEBODY, asked_at=9.0)}),
        ({"forced_at": 9.0}, {"disruption": NodeDisruption(reason="untold", forced_at=9.0)}),
        ({"forwarded_at": 9.0, "drain_reported_at": 11.0},
            {"forwarded": Forwarding(first_at=9.0, last_at=9.0, times=2, reported_at=11.0)}),
        ({"forwarded_last_at": 9.0, "forwards": 3},
            {"forwarded": Forwarding(first_at=9.0, last_at=9.0, times=3)}),
        ({"drain_reported_at": 9.0},
            {
                "forwarded": Forwarding(
                    first_at=OPENED_AT, last_at=OPENED_AT, times=2, reported_at=9.0)}),
        ({"refused_at": 9.0}, {"refusal": GroupRefusal(since=9.0, words="it gives no reason")}),
        ({"refusal": "below minSize"},
            {"refusal": GroupRefusal(since=OPENED_AT, words="below minSize")}),
        ({"launch_failed_at": 9.0},
            {"launch_failure": LaunchFailure(since=9.0, cause="AWS gave no cause")}),
        ({"launch_failure": "no capacity"},
            {"launch_failure": LaunchFailure(since=OPENED_AT, cause="no capacity")}),
    ],
    ids=" ".join,
)  # fmt: skip
def test_half_a_bad_news_is_believed(stored: dict[str, Any], section: dict[str, Any]) -> None:
    incident = read(**stored)
    assert {name: getattr(incident, name) for name in section} == section
