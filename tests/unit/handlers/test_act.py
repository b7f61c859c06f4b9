"""act and pause: who starts a drain, how an interruption is heard, and a stop on purpose."""

import contextlib
import json
from dataclasses import replace

import pytest

from core.availability.lease import valid_leases
from core.events import Kind
from core.ground.errors import Conflict
from core.incidents.actions import Action, EndClaim, ForwardDrain, TakeLease, TerminateInGroup
from core.incidents.joining import Pause, ask_release
from core.incidents.observation import cluster_ownership
from core.incidents.record import Forwarding, Release, State
from handlers import interruption
from handlers.adapters.aws import tick_message
from handlers.incidents import act
from handlers.incidents.act import LONGEST_BEFORE_ONCE_SECONDS, LONGEST_TURN_SECONDS, perform
from handlers.incidents.desk import IntakeDesk
from handlers.store.documents import Pauses
from tests.announcements import load
from tests.every_case import every_case
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.failing import Killed, fail, kill, noted
from tests.unit.handlers.fakes import NEW, OLD, PREFIX, TAG
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, START, Station
from tests.unit.handlers.walks import announce, replace_machine
from tests.unit.operator_at_work import FINISHED


@pytest.fixture
def made() -> Station:
    made = Station()
    made.cluster.terminate(OLD)
    made.announce(hook_event("drain"))
    return made


def test_a_drain_is_forwarded_by_whoever_carries_the_incident(made: Station) -> None:
    perform(made.incident(), (TakeLease(), ForwardDrain()), made.loop.effects, made.now)
    assert len(made.forwarded) == 1


def test_a_drain_rests_on_a_reading_of_this_minute(made: Station) -> None:
    """The lease still stands; what was read of Kafka before the sleep does not."""
    incident, effects = made.incident(), made.loop.effects
    perform(incident, (TakeLease(),), effects, made.now)
    read_at, made.now = (made.now, made.now + LONGEST_TURN_SECONDS + 1)
    with pytest.raises(Conflict, match="was read 61 s ago"):
        perform(incident, (ForwardDrain(),), effects, read_at)
    assert made.forwarded == []
    assert [lease.out_at for lease in made.ledger.leases()] == [None]


def test_a_roll_that_begins_after_the_decision_stops_its_drain(made: Station) -> None:
    """Strimzi's operator is read once more directly before a drain is sent."""
    cluster, effects = made.cluster, made.loop.effects
    going = replace(made.incident(), node_id=10, pod_name=cluster.pods[10].name)
    cluster.kafka_conditions = replace(FINISHED, generation_observed=False)
    with pytest.raises(Conflict, match="has not finished with the present description"):
        perform(going, (TakeLease(), ForwardDrain()), effects, made.now)
    cluster.kafka_conditions, cluster.pods[20] = FINISHED, replace(cluster.pods[20], stopping=True)
    with pytest.raises(Conflict, match="no incident of ours asked for that"):
        perform(going, (TakeLease(), ForwardDrain()), effects, made.now)
    assert made.forwarded == []
    assert [lease.out_at for lease in made.ledger.leases()] == [None]


@pytest.mark.parametrize("after", [ForwardDrain(), TerminateInGroup(decrement=False)])
def test_a_lease_that_is_refused_ends_the_turn_before_anything_that_needs_it(
    made: Station, after: ForwardDrain | TerminateInGroup
) -> None:
    made.ledger.take_lease("i-other", made.now, 900.0, node_id=20)
    made.cluster.set_lifecycle(OLD, "InService")
    with pytest.raises(Conflict, match="holds the lease"):
        perform(made.incident(), (TakeLease(), after), made.loop.effects, made.now)
    assert (made.forwarded, made.cluster.terminated) == ([], [])


@pytest.mark.parametrize("lasted", [LONGEST_BEFORE_ONCE_SECONDS + 1, 46.0, 57.0])
def test_a_late_turn_asks_nothing_unrepeatable(made: Station, lasted: float) -> None:
    """The sweep has given the incident to another by then, who asked for the same."""
    made.cluster.set_lifecycle(OLD, "InService")
    read_at, made.now = made.now, made.now + lasted
    once = TerminateInGroup(decrement=True)
    with pytest.raises(Conflict, match="must not repeat"):
        perform(made.incident(), (TakeLease(), once), made.loop.effects, read_at)
    assert made.cluster.asked_to_terminate == []


@pytest.mark.parametrize(
    "once", [ForwardDrain(), TerminateInGroup(decrement=True), EndClaim("broker-i-0a", "uid")]
)
def test_an_invocation_that_was_overtaken_does_nothing_that_nobody_takes_back(
    made: Station, once: Action
) -> None:
    overtaken, cluster = made.incident(), made.cluster
    cluster.set_lifecycle(OLD, "InService")
    made.ledger.put(replace(overtaken, ticked_at=made.now))
    with pytest.raises(Conflict, match="was changed by another invocation"):
        perform(overtaken, (once,), made.loop.effects, made.now)
    assert (made.forwarded, cluster.terminated, cluster.ended_claims) == ([], [], [])


@pytest.mark.parametrize(("by", "left"), [(None, []), ("ada", [OLD])])
def test_a_lease_renewed_for_an_incident_that_has_seen_its_drain_end_is_given_back(
    made: Station, by: str | None, left: list[str]
) -> None:
    asked = None if by is None else Release(by=by, at=made.now)
    over = made.ledger.put(replace(made.incident(), state=State.RELEASED, release=asked))
    made.ledger.take_lease(over.id, made.now, 900.0, node_id=10, out=True)
    made.loop.turn(tick_message(over.id, over.version - 1), made.now)
    held = valid_leases(made.ledger.leases(), made.now)
    assert [each.holder for each in held] == left


def sent(station: Station) -> list[dict[str, object]]:
    return [json.loads(body) for body, _ in station.ticks.sent]


def test_announcements_of_one_machine_share_an_incident_and_each_sends_its_tick(
    station: Station,
) -> None:
    station.announce(hook_event("drain"))
    assert station.incident().state is State.OPENED
    assert [outcome for _, outcome in station.ledger.events.values()] == [
        "Incident i-0a, which is opened."
    ]
    station.announce(hook_event("gate"))
    before = station.incident()
    assert before.hooks == {"drain": "token-drain", "gate": "token-gate"}
    station.announce(hook_event("gate"))  # A copy sends only the tick that may be missing.
    assert station.incident() == before
    assert sent(station) == [{"incident_id": OLD, "version": n} for n in (1, 2, 2)]


def test_an_instance_of_another_cluster_is_ignored_with_its_body(station: Station) -> None:
    body = ec2_event("EC2 Instance State-change Notification", "i-0foreign", state="stopping")
    station.announce(body)
    ((kept, reason),) = station.ledger.ignored
    assert kept == body
    assert reason == "EC2 does not know instance i-0foreign."
    station.cluster.add_instance("i-0foreign", "us-east-1a")
    elsewhere = replace(station.reception, whose=cluster_ownership(f"{PREFIX}-2"))
    IntakeDesk(elsewhere, replace(station.notices, reception=elsewhere)).take(body, START)
    assert f"Instance i-0foreign has no tag {TAG}-2: another's." in {
        reason for _, reason in station.ledger.ignored
    }
    assert station.ticks.sent == []


@pytest.mark.parametrize("body", ["", "{", "[]", '{"source": "aws.s3"}', "\x00"])
def test_what_cannot_be_read_is_kept_and_never_raises(station: Station, body: str) -> None:
    station.announce(body)
    assert [kept for kept, _ in station.ledger.ignored] == [body]


def test_an_echo_of_an_instance_that_is_gone_opens_nothing(station: Station) -> None:
    station.announce(hook_event("drain"))
    incident = station.incident()
    station.ledger.put(replace(incident, state=State.RELEASED))
    station.announce(ec2_event("EC2 Instance State-change Notification", OLD, state="terminated"))
    assert len(station.ticks.sent) == 1
    assert station.ledger.get("i-0a.2") is None


def test_a_retained_instance_terminated_again_opens_a_round(station: Station) -> None:
    station.announce(hook_event("drain"))
    station.ledger.put(replace(station.incident(), state=State.RETAINED))
    station.announce(hook_event("drain"))  # an echo of the first round
    assert station.ledger.get("i-0a.2") is None
    station.announce(hook_event("drain", token="token-of-a-fresh-cycle"))
    assert station.incident("i-0a.2").hooks == {"drain": "token-of-a-fresh-cycle"}
    assert sent(station)[-1] == {"incident_id": "i-0a.2", "version": 1}


@every_case("after", [False, True])
@every_case("at", [1, 2, 3, 4])
def test_dying_at_any_write_loses_nothing_once_delivered_again(at: int, *, after: bool) -> None:
    station = Station()
    kill(at, [(station.ledger, "put"), (station.ledger, "record_event")], after=after)
    for body in (hook_event("drain"), hook_event("gate")):
        try:
            station.announce(body)
        except Killed:
            station.announce(body)
    assert station.incident().hooks == {"drain": "token-drain", "gate": "token-gate"}
    assert sent(station)[-1] == {"incident_id": OLD, "version": 2}
    assert len(station.ledger.events) == 2


@every_case(("times", "heard"), [(4, True), (5, False)])
def test_an_announcement_that_meets_others_tries_again_and_is_then_delivered_again(
    times: int, *, heard: bool
) -> None:
    station = Station()
    fail(station.ledger, "put", Conflict("Somebody else was first."), times=times)
    with contextlib.nullcontext() if heard else pytest.raises(Conflict):
        station.announce(hook_event("drain"))
    assert (station.ledger.get(OLD) is not None) is heard


def test_a_batch_reports_only_the_messages_that_failed(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "_desk", lambda: station.desk)
    station.cluster.add_instance(NEW, "us-east-1b")
    good, bad = hook_event("drain"), hook_event("drain", instance_id=NEW)
    original = station.cluster.instance

    def failing(instance_id: str):
        if instance_id == NEW:
            raise RuntimeError("throttled")
        return original(instance_id)

    monkeypatch.setattr(station.cluster, "instance", failing)
    records = [
        {"messageId": f"m{n}", "body": body, "eventSource": "aws:sqs", "attributes": {}}
        for n, body in enumerate((good, bad))
    ]
    answer = interruption.handler({"Records": records}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert station.incident().state is State.OPENED


def test_one_event_about_hundreds_of_others_instances_is_asked_about_once(station: Station) -> None:
    event = load("health-retirement")
    named = [OLD, *(f"i-0{number:07x}" for number in range(300))]
    event["detail"]["affectedEntities"] = [{"entityValue": id_} for id_ in named]
    asked = noted(station.cluster, "instance")
    station.announce(json.dumps(event))
    assert asked == [(OLD,)]
    assert station.incident().kind is Kind.SCHEDULED_CHANGE
    ((_, reason),) = station.ledger.ignored
    assert reason.startswith("300 of the 301 instances it names are another's")


WHY = Pause("ada", "We look at the disks", START)


@pytest.fixture
def stopped() -> Station:
    return paused(Station())


def paused(station: Station, pause: Pause | None = WHY) -> Station:
    Pauses(station.records, "orders").write(pause)
    return station


def test_nothing_is_drained_while_it_holds_and_the_hooks_keep_beating(stopped: Station) -> None:
    announce(stopped)
    stopped.cluster.join(NEW)
    stopped.tick_while_open(5)
    stopped.now += POLICY.hold_limit_seconds + 60
    stopped.tick_while_open(1)
    incident = stopped.incident()
    assert incident.state is State.HOLDING
    assert incident.reason == (
        "Paused by ada since 2026-11-20 10:00 UTC, until somebody resumes: We look at the disks."
    )
    assert stopped.forwarded == []
    assert stopped.ledger.leases() == ()
    assert incident.heartbeat_at == stopped.now
    paused(stopped, None)
    stopped.tick_while_open(3)
    assert stopped.incident().state is not State.HOLDING


def test_a_pause_outlasts_a_reading_that_failed(stopped: Station) -> None:
    announce(stopped)
    stopped.cluster.kubernetes_answers = False
    stopped.now += POLICY.hold_limit_seconds + 60
    stopped.tick_while_open(1)
    assert stopped.incident().open


def test_a_node_without_kafka_stays_too(stopped: Station) -> None:
    stopped.cluster.pods.pop(10)
    stopped.cluster.attached.clear()
    stopped.cluster.terminate(OLD)
    stopped.announce(hook_event("drain"))
    stopped.tick_while_open(20)
    assert stopped.forwarded == []
    assert stopped.incident().state is State.OPENED


def test_a_drain_that_runs_ends(stopped: Station) -> None:
    paused(stopped, None)
    replace_machine(stopped)
    paused(stopped)
    stopped.cluster.place_pod(10, NEW)
    stopped.cluster.kafka = healthy_kafka()
    stopped.tick_while_open(12)
    assert stopped.incident().state is State.RELEASED


def test_a_two_minute_warning_is_drained_all_the_same(stopped: Station) -> None:
    warning = ec2_event("EC2 Spot Instance Interruption Warning", OLD)
    stopped.announce(warning)
    assert stopped.tick().incident().state is State.DRAINING
    assert stopped.termination_handler.sent == [(warning, 0.0)]


def test_not_even_a_person_lets_one_go_before_it_is_resumed(stopped: Station) -> None:
    announce(stopped)
    stopped.ledger.put(ask_release(stopped.incident(), "ada", stopped.now))
    stopped.sweep(60)
    stopped.tick_while_open(5)
    assert stopped.forwarded == []


@pytest.mark.parametrize("action", [ForwardDrain(), TerminateInGroup(decrement=False)])
def test_a_pause_that_comes_after_the_decision_stops_its_effect(
    stopped: Station, action: ForwardDrain | TerminateInGroup
) -> None:
    paused(stopped, None)
    announce(stopped)
    incident = replace(stopped.incident(), node_id=10)
    paused(stopped)
    with pytest.raises(Conflict, match="Paused by ada"):
        perform(incident, (TakeLease(), action), stopped.loop.effects, stopped.now)
    assert stopped.forwarded == []
    assert stopped.cluster.asked_to_terminate == []


def test_a_pause_is_heard_at_the_last_look(made: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(act, "_check_operator", lambda *_: paused(made))
    incident = replace(made.incident(), node_id=10)
    with pytest.raises(Conflict, match="Paused by ada"):
        perform(incident, (TakeLease(), ForwardDrain()), made.loop.effects, made.now)
    # A drain that was sent may be under way: whoever pauses does not take it back.
    sent = replace(incident, forwarded=Forwarding(first_at=made.now, last_at=made.now))
    perform(sent, (TakeLease(), ForwardDrain()), made.loop.effects, made.now)
    assert len(made.forwarded) == 1


def test_a_pause_with_an_end_is_over_then() -> None:
    station = paused(Station(), replace(WHY, until=START + 60))
    assert station.freezes.current_pause(START + 59) is not None
    assert station.freezes.current_pause(START + 60) is None
