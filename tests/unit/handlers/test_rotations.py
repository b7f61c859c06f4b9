"""A rotation run on the station: one node after another, whoever dies on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from core.health.kafka import snapshot_from_dict
from core.health.node import parse
from core.incidents.joining import ignore
from core.incidents.observation import NodeClaim
from core.incidents.record import State
from core.rotation.plan import Build, Launched
from core.rotation.run_record import Phase, Run, RunState
from core.views import PartitionView
from handlers.adapters.aws import tick_message
from handlers.adapters.pods import Scrapes
from handlers.store.ledger import rotation_message
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.fakes import NEW, OLD, group_of
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.walks import come_back, replace_machine

pytestmark = pytest.mark.usefixtures("quiet")

EVERYTHING = {"selection": {"everything": True}}


@pytest.fixture
def station() -> Station:
    return Station()


def start(station: Station, **said: object) -> Run:
    answer = station.conductor.take(
        {"command": "start", "actor": "ada", **EVERYTHING, **said}, station.now
    )
    assert "problems" not in answer, answer
    return current(station)


def current(station: Station) -> Run:
    run = station.runs.current()
    assert run is not None
    return run


def ask(station: Station, command: str, **said: object) -> dict[str, object]:
    return station.conductor.take({"command": command, "actor": "ada", **said}, station.now)


def carry(station: Station) -> Run:
    """Let the run turn, and whoever leaves come back at once, until the run stands still."""
    for _ in range(60):
        if current(station).state is not RunState.RUNNING:
            return current(station)
        turn(station)
        for incident in station.ledger.open_incidents():
            if not incident.ahead:
                come_back(station, incident.instance_id)
    raise AssertionError(current(station).reason)


def turn(station: Station) -> Run:
    station.now += 20
    station.rotations.turn(current(station).version, station.now)
    return current(station)


def test_a_broker_that_is_back_leads_one_partition_first_and_then_ever_more(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    elect = station.cluster.elect

    def counted(partitions: Iterable[tuple[str, int]]) -> None:
        asked.append(len(set(partitions)))
        elect(partitions)

    monkeypatch.setattr(station.cluster, "elect", counted)
    start(station, selection={"node_ids": [10]})
    turn(station)
    come_back(station, OLD)
    assert turn(station).turn_of(10).phase is Phase.RETURNING
    view = station.cluster.read()
    row = replace(view.partitions[0], replicas=(10, 20, 30), isr=(10, 20, 30), leader=20)
    rows = tuple(replace(row, topic="many", partition=n) for n in range(40))
    station.cluster.kafka = replace(view, partitions=rows)
    while current(station).state is RunState.RUNNING:
        turn(station)
    assert current(station).state is RunState.DONE
    assert asked == [1, 4, 20, 15]
    assert {p.leader for p in station.cluster.read().partitions} == {10}


def look(station: Station, id_: str = "i-0a") -> None:
    """Let an incident's ticks come until it waits for something."""
    for _ in range(5):
        incident = station.incident(id_)
        station.now += 1
        station.loop.turn(tick_message(incident.id, incident.version), station.now)


def test_a_pause_takes_effect_once_who_is_away_is_back(station: Station) -> None:
    start(station)
    turn(station)
    assert len(current(station).open_turns) == 1
    assert "once node 10 is back" in str(ask(station, "pause")["said"])
    run = carry(station)
    assert run.state is RunState.PAUSED
    assert [t.phase for t in run.turns] == [Phase.DONE, Phase.WAITING, Phase.WAITING]
    ask(station, "resume")
    assert carry(station).state is RunState.DONE


def test_an_abort_keeps_who_has_not_left_and_takes_the_spare_back(station: Station) -> None:
    start(station)
    turn(station)
    look(station)
    group = group_of("us-east-1a")
    assert station.cluster.groups[group].desired == 2
    ask(station, "abort")
    turn(station)
    look(station)
    turn(station)
    run = turn(station)
    assert run.state is RunState.ABORTED, run.reason
    assert {t.phase for t in run.turns} == {Phase.WAITING}
    assert station.incident().state is State.CANCELLED
    assert station.cluster.groups[group].desired == 1
    assert station.cluster.terminated == []


def test_a_node_that_is_not_let_go_within_its_deadline_stops_the_run(station: Station) -> None:
    station.cluster.kafka = healthy_kafka(out=30)
    start(station, deadline_seconds=60, selection={"node_ids": [10, 20]})
    assert "broker 30 is fenced" in turn(station).reason
    station.now += 60
    run = turn(station)
    assert run.state is RunState.STOPPED
    assert "not allowed to go for 80 s" in run.reason
    station.cluster.kafka = healthy_kafka()
    ask(station, "resume")
    turn(station)
    turn(station)  # The number of partitions out of sync has to settle.
    assert turn(station).turn_of(10).phase is Phase.LEAVING


def test_an_incident_that_ends_otherwise_stops_the_run_until_it_is_tried_again(
    station: Station,
) -> None:
    start(station)
    turn(station)
    incident = station.incident()
    station.ledger.put(ignore(incident, "bob", "not today", station.now))
    look(station)
    run = turn(station)
    assert (run.state, run.turn_of(10).phase) == (RunState.STOPPED, Phase.FAILED)
    assert "bob wants this ignored" in run.reason
    ask(station, "resume")
    run = turn(station)
    assert (run.turn_of(10).phase, run.turn_of(10).attempt) == (Phase.LEAVING, 2)
    assert station.incident("i-0a.2").open


def test_a_skipped_node_keeps_its_instance(station: Station) -> None:
    start(station)
    turn(station)
    station.ledger.put(ignore(station.incident(), "bob", "not today", station.now))
    look(station)
    turn(station)
    ask(station, "resume", skip=True)
    run = carry(station)
    assert run.state is RunState.DONE
    assert [t.phase for t in run.turns] == [Phase.SKIPPED, Phase.DONE, Phase.DONE]


@pytest.mark.parametrize("trouble", ["CrashLoopBackOff", "RunContainerError"])
def test_a_pod_that_does_not_start_stops_the_run_and_says_why(
    station: Station, trouble: str
) -> None:
    start(station)
    pod = station.cluster.pods[20]
    station.cluster.pods[20] = replace(pod, ready=False, trouble=trouble)
    run = turn(station)
    assert run.state is RunState.STOPPED
    assert f"Pod {pod.name} does not start: {trouble}" in run.reason


def test_metadata_errors_veto_until_they_are_acknowledged(station: Station) -> None:
    errors = parse("kafka_controller_kafkacontroller_metadataerrorcount 3\n")
    station.cluster.scrapes = Scrapes({20: errors})
    start(station)
    assert "Node 20 counts 3 metadata errors" in turn(station).reason
    ask(station, "resume", acknowledge_errors=True)
    assert turn(station).turn_of(10).phase is Phase.LEAVING


def test_metadata_errors_are_in_the_ledger_before_a_drain(station: Station) -> None:
    errors = parse("kafka_controller_kafkacontroller_metadataerrorcount 3\n")
    station.cluster.scrapes = Scrapes({20: errors})
    replace_machine(station)
    kept = station.records.read(f"errors#{OLD}").document
    assert snapshot_from_dict(kept).nodes[20].controller == 3


@pytest.mark.parametrize(
    "announcement",
    [hook_event("drain"), ec2_event("EC2 Spot Instance Interruption Warning", OLD)],
    ids=["terminated", "spot"],
)
def test_metadata_errors_are_kept_where_the_handler_hears_aws_itself(announcement: str) -> None:
    direct = Station(policy=replace(POLICY, drain_route="direct"))
    errors = parse("kafka_controller_kafkacontroller_metadataerrorcount 3\n")
    direct.cluster.scrapes = Scrapes({20: errors})
    direct.cluster.terminate(OLD)
    direct.announce(announcement)
    direct.tick()
    assert direct.incident().state is State.DRAINING
    assert (
        snapshot_from_dict(direct.records.read(f"errors#{OLD}").document).nodes[20].controller == 3
    )
    # Counted before its pod has left, and not again.
    direct.cluster.scrapes = Scrapes({})
    direct.tick()
    assert direct.records.read(f"errors#{OLD}").version == 1
    assert direct.forwarded == []


def test_a_topic_that_cannot_be_kept_up_is_named_and_must_be_accepted(station: Station) -> None:
    view = healthy_kafka()
    lonely = PartitionView("lonely", 0, 20, (20,), (20,), 1)
    station.cluster.kafka = replace(view, partitions=(*view.partitions, lonely))
    asked = {"command": "start", "actor": "ada", **EVERYTHING}
    problems = str(station.conductor.take(asked, station.now)["problems"])
    assert "Partition lonely-0" in problems
    assert "--accept-unavailable" in problems
    assert start(station, accept_unavailable=True).options.accepted_topics == ("lonely",)


def test_without_a_name_what_is_outdated_is_rotated(station: Station) -> None:
    old, new = Build(image_id="ami-1"), Build(image_id="ami-2")
    station.cluster.builds = dict.fromkeys((OLD, "i-0b", "i-0c"), Launched(new, new))
    assert ask(station, "start")["said"] == "Nothing is outdated: there is nothing to rotate."
    station.cluster.builds |= {"i-0b": Launched(old, new)}
    ask(station, "start")
    (only,) = current(station).turns
    assert (only.node_id, only.why) == (20, "image ami-1 instead of ami-2")


def test_who_cannot_be_compared_is_not_said_to_be_as_new(station: Station) -> None:
    new, by_parameter = Build(image_id="ami-2"), Build(image_id="resolve:ssm:/eks/1.36")
    station.cluster.builds = {"i-0b": Launched(new, new), "i-0c": Launched(new, by_parameter)}
    answer = ask(station, "plan")
    assert answer["said"].startswith("Nothing is known to be outdated, and of some nodes nobody")
    first, second, *_ = answer["plan"]["notes"]
    assert first.startswith("Node 10 may be outdated, which nobody can tell: no group of this")
    assert second.startswith("Node 30 may be outdated, which nobody can tell: its launch template")
    # Whoever names a node has not asked.
    assert "nobody can tell" not in str(ask(station, "plan", **EVERYTHING)["plan"]["notes"])


def test_of_its_own_machines_karpenter_says_whether_they_have_drifted(station: Station) -> None:
    station.cluster.node_claims = tuple(
        NodeClaim(name=id_, uid=id_, instance_id=id_) for id_ in (OLD, "i-0b", "i-0c")
    )
    assert ask(station, "plan")["said"] == "Nothing is outdated: there is nothing to rotate."


def test_a_plan_says_how_much_a_broker_has_to_catch_up_on(station: Station) -> None:
    station.cluster.held = {10: 1_000_000, 20: 0, 30: 0}
    held = ask(station, "held")["held"]
    station.now += 10
    station.cluster.held = {10: 11_000_000, 20: 0, 30: 0}
    answer = ask(station, "plan", held=held, **EVERYTHING)["plan"]
    assert isinstance(answer, dict)
    first, second, _ = answer["nodes"]
    # 1 MB/s for 90 s, caught up at 125 MB/s.
    assert first["resync_bytes"] == pytest.approx(90e6 * 125 / 124)
    assert second["resync_bytes"] == 0


def test_one_rotation_at_a_time(station: Station) -> None:
    start(station)
    problems = ask(station, "start", **EVERYTHING)["problems"]
    assert "one rotation at a time" in str(problems)


def test_a_node_that_has_moved_meanwhile_is_skipped(station: Station) -> None:
    start(station)
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.cluster.place_pod(10, NEW)
    run = turn(station)
    assert run.turn_of(10).phase is Phase.SKIPPED
    assert NEW in run.turn_of(10).reason


def test_the_sweep_wakes_a_run_that_nobody_carries(station: Station) -> None:
    start(station)
    station.ticks.sent.clear()
    station.now += 120
    station.broom.sweep(station.now)
    assert [body for body, _ in station.ticks.sent] == [rotation_message(1)]
