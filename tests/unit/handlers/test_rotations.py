"""A rotation run on the station: one node after another, whoever dies or restarts on the way."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Any

import pytest

from core.availability.budget import Spent
from core.ground.constants import RELEASE
from core.ground.errors import StillwaterError
from core.health.kafka import snapshot_from_dict
from core.health.node import parse
from core.incidents.joining import ignore
from core.incidents.observation import NodeClaim
from core.incidents.record import Incident, State
from core.rotation.following import STUCK_SECONDS
from core.rotation.plan import Build, Launched
from core.rotation.run_record import Phase, Run, RunState
from core.settings.prometheus import FAILED, ProbeBudget
from core.views import PartitionView
from handlers.adapters.aws import tick_message
from handlers.adapters.pods import Scrapes
from handlers.adapters.prometheus import Prometheus
from handlers.rotation.turns import ClientsBudget
from handlers.store.ledger import rotation_message
from tests.every_case import every_case
from tests.unit.handlers.adapters.test_volume_sources import NOW, Said, vector
from tests.unit.handlers.announced import DAY, REBOOT, ec2_event, health_event, hook_event
from tests.unit.handlers.failing import fail
from tests.unit.handlers.fakes import NEW, OLD, group_of, six_brokers
from tests.unit.handlers.healthy import ZONES, healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.walks import come_back, replace_machine

pytestmark = pytest.mark.usefixtures("quiet")

EVERYTHING = {"selection": {"everything": True}}


def test_a_plan_names_what_runs_and_what_clients_failed_at(station: Station) -> None:
    assert ask(station, "plan")["spent"] is None
    asked: list[float] = []
    budget = Spent(objective_percent=99.9, allowed_percent=10, attempts=100.0, failed=1.0)

    class Counting(ClientsBudget):
        def spending(self, since: float, now: float) -> Spent:
            asked.append(now - since)
            return budget

    counting = Counting(None, SETTINGS, "kafka", "orders")
    station.conductor = replace(station.conductor, budget=counting)
    station.cluster.builds = {OLD: Launched(Build(image_id="ami-1"), Build(image_id="ami-2"))}
    told = ask(station, "plan")
    assert told["spent"] == asdict(budget)
    versions: Any = told["versions"]
    expected = ("1.36", "ami-1", RELEASE)
    assert (versions["eks"], versions["image"], versions["stillwater"]) == expected
    start(station)
    for hours in (1, 5, 24 * 30):
        station.now += hours * 3600
        ask(station, "plan")
    # Since the run began, and for an hour to three days.
    assert asked == [3600, 3600, 6 * 3600, 72 * 3600]
    by_pool: Any = ask(station, "plan", selection={"pools": ["broker"]})
    assert len(by_pool["plan"]["nodes"]) == 3


def outsider_lost(station: Station) -> None:
    """Have broker 20, of another zone, leave an ISR."""
    view = station.cluster.read()
    partitions = tuple(
        replace(p, isr=tuple(r for r in p.isr if r != 20), leader=next(r for r in p.isr if r != 20))
        for p in view.partitions
    )
    station.cluster.kafka = replace(view, partitions=partitions, fenced=frozenset({20}))


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


def test_a_run_waits_for_no_reboot_that_is_days_ahead(station: Station) -> None:
    station.announce(health_event(REBOOT, due=station.now + 20 * DAY, said_at=station.now))
    station.tick()
    start(station)
    assert carry(station).state is RunState.DONE


def test_a_run_begins_with_nobody_while_aws_reboots_a_machine_soon(station: Station) -> None:
    station.announce(health_event(REBOOT, due=station.now + 3600, said_at=station.now))
    station.tick()
    start(station)
    assert "takes Kafka node 10 out first" in turn(station).reason


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
    home = station.cluster.pods[10].node_name
    (machine,) = (i for i, node in station.cluster.node_views.items() if node.name == home)
    station.cluster.place_pod(10, machine, ready=False)
    assert "or a readiness gate of it is not" in turn(station).turn_of(10).reason
    station.cluster.place_pod(10, machine)
    station.cluster.change_node(machine, ready=False)
    assert "is not Ready" in turn(station).turn_of(10).reason
    station.cluster.change_node(machine, ready=True)
    view = station.cluster.read()
    row = replace(view.partitions[0], replicas=(10, 20, 30), isr=(10, 20, 30), leader=20)
    rows = tuple(replace(row, topic="many", partition=n) for n in range(40))
    station.cluster.kafka = replace(view, partitions=rows)
    while current(station).state is RunState.RUNNING:
        turn(station)
    assert current(station).state is RunState.DONE
    assert asked == [1, 4, 20, 15]
    assert {p.leader for p in station.cluster.read().partitions} == {10}


def look(station: Station, id_: str = "i-0a") -> Incident:
    """Let an incident's ticks come until it waits for something."""
    for _ in range(5):
        incident = station.incident(id_)
        station.now += 1
        station.loop.turn(tick_message(incident.id, incident.version), station.now)
    return station.incident(id_)


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


@every_case("word, state", [("pause", RunState.PAUSED), ("abort", RunState.ABORTED)])
def test_a_word_within_a_turn_keeps_who_is_not_begun_with(word: str, state: RunState) -> None:
    station = Station()
    start(station)
    words, read = [word], station.cluster.read
    vars(station.cluster)["read"] = lambda *a: (words and ask(station, words.pop()), read(*a))[1]
    turn(station)
    assert turn(station).state is state
    assert station.ledger.open_incidents() == ()


def test_a_run_that_is_resumed_is_aborted_no_more(station: Station) -> None:
    start(station)
    ask(station, "abort")
    ask(station, "resume")
    assert [t.node_id for t in turn(station).open_turns] == [10]


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


@every_case("state, hooks", [(State.REPLACING, {}), (State.GATING, {"gate": None})])
def test_an_abort_ends_a_run_whose_node_is_late(state: State, hooks: dict[str, None]) -> None:
    """Its incident goes on by itself, or takes its time to give the room back."""
    station = Station()
    start(station)
    turn(station)
    station.ledger.put(replace(station.incident(), state=state, hooks=hooks, group="g"))
    station.now += current(station).options.deadline_seconds + 60
    assert turn(station).state is RunState.STOPPED
    ask(station, "abort")
    for _ in range(3):
        turn(station)
    late = current(station).turn_of(10)
    assert (current(station).state, late.phase) == (RunState.ABORTED, Phase.FAILED)
    assert station.incident().called_off is (not hooks)


def test_an_incident_that_ends_otherwise_stops_the_run(station: Station) -> None:
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
def test_a_pod_that_never_starts_stops_the_run_and_says_why(station: Station, trouble: str) -> None:
    start(station)
    station.cluster.change_pod(20, ready=False, trouble=trouble)
    run = turn(station)
    assert run.state is RunState.STOPPED
    assert f"Pod orders-broker-b-20 does not start: {trouble}" in run.reason
    station.cluster.change_pod(20, ready=True, trouble="")
    ask(station, "resume", skip=True)
    assert turn(station).turn_of(20).phase is Phase.SKIPPED


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
    assert direct.tick().incident().state is State.DRAINING
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
    assert answer["said"].startswith("No node is known to be outdated, and some nodes are unknown")
    first, second, *_ = answer["plan"]["notes"]
    assert first.startswith("Node 10 may be outdated, which is unknown: no group of this")
    assert second.startswith("Node 30 may be outdated, which is unknown: its launch template")
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
    first, second, _ = answer["nodes"]
    # 1 MB/s for 90 s, caught up at 125 MB/s.
    assert first["resync_bytes"] == pytest.approx(90e6 * 125 / 124)
    assert second["resync_bytes"] == 0


def test_one_rotation_at_a_time_and_the_one_before_is_found(station: Station) -> None:
    first = start(station)
    problems = ask(station, "start", **EVERYTHING)["problems"]
    assert "one rotation at a time" in str(problems)
    ask(station, "abort")
    ended = turn(station)
    station.now += 1
    assert start(station).id != first.id == ended.id
    assert station.runs.find(first.id) == replace(ended, version=1)


def test_a_node_that_has_moved_meanwhile_is_skipped(station: Station) -> None:
    start(station)
    station.cluster.join(NEW)
    station.cluster.place_pod(10, NEW)
    run = turn(station)
    assert run.turn_of(10).phase is Phase.SKIPPED
    assert NEW in run.turn_of(10).reason


def test_the_sweep_wakes_a_run_that_nobody_carries(station: Station) -> None:
    start(station)
    station.ticks.sent.clear()
    station.sweep(120)
    assert [body for body, _ in station.ticks.sent] == [rotation_message(1)]


@every_case(
    "out_for, state",
    [(5.0, RunState.RUNNING), (STUCK_SECONDS + 1, RunState.STOPPED), (None, RunState.STOPPED)],
)
def test_a_pod_without_a_node_for_long_stops_a_run(out_for: float | None, state: RunState) -> None:
    station = Station()
    start(station)
    pod = station.cluster.pods[30]
    since = None if out_for is None else station.now - out_for
    station.cluster.pods[30] = replace(
        pod, node_name=None, ready=False, trouble="Unschedulable", out_since=since
    )
    station.cluster.kafka = healthy_kafka(out=30)
    turn(station)
    assert current(station).state is state


def called(station: Station) -> list[str]:
    return [page["page"] for page in station.ticks.pages if "run" in page]


def turns(station: Station, seconds: float) -> None:
    until = station.now + seconds
    while station.now < until:
        station.now += 280
        turn(station)


def test_a_refused_election_stops_the_run_at_its_deadline_once(station: Station) -> None:
    fail(station.cluster, "elect", StillwaterError("The functions' user may not do that."))
    start(station)
    turn(station)
    come_back(station, OLD)
    view = station.cluster.read()
    led = tuple(replace(p, leader=20) for p in view.partitions)
    station.cluster.kafka = replace(view, partitions=led)
    turns(station, current(station).options.deadline_seconds + 1200)
    assert current(station).state is RunState.STOPPED
    assert called(station) == ["action_fails", "deadline:10"]


def test_what_is_refused_for_ten_minutes_calls_and_calls_again_once_it_was_done(
    station: Station,
) -> None:
    fail(station.cluster, "elect", StillwaterError("Not now."))
    start(station, deadline_seconds=86_400)
    turn(station)
    come_back(station, OLD)
    view = station.cluster.read()
    led = tuple(replace(p, leader=20) for p in view.partitions)
    station.cluster.kafka = replace(view, partitions=led)
    turns(station, 1200)
    assert called(station) == []
    turns(station, 600)
    assert called(station) == ["action_fails"] == [*current(station).pages]
    del vars(station.cluster)["elect"]
    assert turn(station).pages == ()


def test_a_node_that_could_not_be_begun_with_until_its_deadline_is_not_begun_with_after_it(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(station)
    with monkeypatch.context() as patch:
        patch.setattr(type(station.reception), "rotate", lambda *_: None)
        turns(station, current(station).options.deadline_seconds - 600)
        assert current(station).turn_of(10).phase is Phase.LEAVING
    station.now += 1200
    turn(station)
    assert current(station).state is RunState.STOPPED
    assert station.ledger.open_incidents() == ()
    assert called(station) == ["deadline:10"]


def test_a_run_that_sees_nothing_for_a_quarter_calls_once_each(station: Station) -> None:
    start(station, deadline_seconds=86_400)
    for number in (1, 2):
        station.cluster.kubernetes_answers = False
        turns(station, 600)
        assert len(called(station)) == number - 1
        turns(station, 3600)
        assert called(station) == ["blind"] * number
        station.cluster.kubernetes_answers = True
        turn(station)
    assert current(station).state is RunState.RUNNING
    assert "problems" not in ask(station, "abort")


def test_nobody_leaves_next_beside_a_party_that_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS takes a broker of another zone as soon as the party has given the lease back."""
    for node_id, zone in ((11, "us-east-1a"), (21, "us-east-1b"), (31, "us-east-1c")):
        monkeypatch.setitem(ZONES, node_id, zone)
    station = Station(cluster=six_brokers())
    start(station, at_once="zone")
    turn(station)
    for id_ in ("i-0a", "i-1a"):
        come_back(station, id_)
    assert {station.incident(id_).state for id_ in ("i-0a", "i-1a")} == {State.RELEASED}
    outsider_lost(station)
    for _ in range(6):
        run = turn(station)
    assert run.state is RunState.RUNNING, run.reason
    assert {t.phase for t in run.turns if t.zone == "us-east-1a"} == {Phase.DONE}
    assert [page["page"] for page in station.ticks.pages] == []


SETTINGS = ProbeBudget(
    address="http://prometheus.monitoring.svc:9090",
    labels={"env": "prod"},
    objective_percent=99.9,
    rotation_percent=10,
)


def read(answer: Callable[[str], Any], since: float) -> tuple[Spent, Said]:
    said = Said(answer)
    budget = ClientsBudget(Prometheus(said), SETTINGS, "kafka", "orders")
    return budget.spending(since, NOW), said


def refusing(_query: str) -> Any:
    raise StillwaterError("Prometheus does not answer.")


def test_what_failed_is_asked_of_this_cluster_since_the_run_went_on() -> None:
    spent, said = read(lambda query: vector(({}, "12" if FAILED in query else "10800")), NOW - 3600)
    assert (spent.attempts, spent.failed, spent.seconds) == (10_800, 12, 3600)
    assert (spent.objective_percent, spent.allowed_percent, spent.silence) == (99.9, 10, "")
    (attempts, _) = [query["query"] for _, query, _ in said.asked]
    assert 'namespace="kafka",cluster="orders",env="prod"}[3600s]' in attempts


def test_a_run_that_has_just_begun_is_judged_by_five_minutes() -> None:
    assert read(lambda _query: vector(({}, "900")), NOW - 1)[0].seconds == 300


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refusing, "does not answer"),
        (lambda _query: vector(), "no attempt"),
        (lambda _query: vector(({}, "0")), "no attempt"),
    ],
    ids=["no answer", "no series", "no attempts"],
)
def test_what_nobody_counted_is_said_and_no_zero(answer: Callable[[str], Any], said: str) -> None:
    assert said in read(answer, NOW - 3600)[0].silence
