"""Who begins next in a run, what is asked before it goes, and what stops the run."""

from dataclasses import replace

import pytest

from core.availability.budget import PERIOD_SECONDS, Spent
from core.ground.fields import Unknown
from core.incidents.actions import Page
from core.incidents.observation import PodView
from core.rotation.estimate import RunObservation
from core.rotation.plan import Build, Launched, stale_template, why_outdated, why_unknown
from core.rotation.preconditions import objections
from core.rotation.progress import KEY, OVERTAKEN_AFTER_SECONDS, counting_since, next_step
from core.rotation.run_record import Begin, Options, Phase, Run, RunState, RunStep, open_run, resume
from core.views import ClusterView, Doubt, PartitionView
from tests.every_case import every_case
from tests.unit.core.availability.clusters import around, turn_of
from tests.unit.operator_at_work import operator_view
from tests.unit.policies import policy_with
from tests.unit.views import kafka_view

THREE = (10, 20, 30)
DEADLINE = 120.0
LATER = 1.0 + OVERTAKEN_AFTER_SECONDS


def whole() -> ClusterView:
    return kafka_view(THREE, PartitionView("t", 0, 10, THREE, THREE, 1))


def a_run(**changes: object) -> Run:
    turns = [turn_of(node_id) for node_id in THREE]
    return open_run(turns, Options(deadline_seconds=DEADLINE, **changes), "ada", 0.0)


def seen_at(now: float, *, busy: tuple[int, ...] = ()) -> RunObservation:
    """Return a reading in which the groups have some nodes' instances on their way already."""
    seen = around(whole(), now=now)
    (group,) = seen.groups
    taken = {f"i-{n}": "Terminating:Wait" for n in busy}
    return replace(seen, groups=(replace(group, instances={**group.instances, **taken}),))


def begun(step: RunStep) -> list[int]:
    return [action.node_id for action in step.actions if isinstance(action, Begin)]


def refused(*node_ids: int) -> Run:
    """Return a run at which these were refused at its first turn."""
    return next_step(a_run(), seen_at(1.0, busy=node_ids), policy_with()).run


def test_one_that_may_not_go_for_a_moment_keeps_its_place() -> None:
    step = next_step(refused(10), seen_at(LATER - 1.0, busy=(10,)), policy_with())
    assert begun(step) == []
    assert step.run.reason.startswith("Node 10 waits.")
    assert begun(next_step(step.run, seen_at(LATER), policy_with())) == [10]


def test_one_that_may_not_go_does_not_stop_those_behind_it() -> None:
    step = next_step(refused(10), seen_at(LATER, busy=(10,)), policy_with())
    assert begun(step) == [20]
    waits = step.run.turn_of(10)
    assert waits.phase is Phase.WAITING
    assert "i-10 of node 10 in Terminating:Wait" in waits.reason
    assert any("Node 10 waits" in note.text for note in step.run.notes)


def test_the_one_that_was_passed_over_is_tried_again_first() -> None:
    run = next_step(refused(10), seen_at(LATER, busy=(10,)), policy_with()).run
    back = run.replace_turn(replace(run.turn_of(20), phase=Phase.DONE))
    assert begun(next_step(back, seen_at(500.0), policy_with())) == [10]
    # Refused all the while, it holds nobody up for another minute.
    assert begun(next_step(back, seen_at(500.0, busy=(10,)), policy_with())) == [30]


def _all_refused(until: float) -> RunStep:
    run = refused(*THREE)
    for now in (LATER, until):
        step = next_step(run, seen_at(now, busy=THREE), policy_with())
        run = step.run
    return step


def test_where_nobody_may_go_the_run_says_who_waits_for_what() -> None:
    step = _all_refused(LATER + OVERTAKEN_AFTER_SECONDS)
    assert begun(step) == []
    for node_id in THREE:
        assert f"Node {node_id} waits." in step.run.reason
        assert f"of node {node_id} in Terminating:Wait" in step.run.turn_of(node_id).reason


def test_what_all_wait_for_is_said_once() -> None:
    run = a_run()
    for now in (1.0, LATER, LATER + OVERTAKEN_AFTER_SECONDS):
        seen = replace(seen_at(now), kafka=replace(whole(), reassigning=("t-0",)))
        run = next_step(run, seen, policy_with()).run
    assert run.reason.startswith("Nodes 10, 20, 30 wait. 1 partitions are being reassigned")


def test_a_deadline_counts_while_nobody_goes_and_the_first_is_who_it_stopped_at() -> None:
    run = refused(*THREE)
    assert [turn.since for turn in run.turns] == [1.0, None, None]
    step = _all_refused(2.0 + DEADLINE)
    assert step.run.state is RunState.STOPPED
    assert [a.key for a in step.actions if isinstance(a, Page)] == ["blocked:10"]
    assert "Node 20 waits." in step.run.reason


def test_while_somebody_goes_nobodys_deadline_counts() -> None:
    policy = policy_with()
    run = refused(*THREE)
    for now in (LATER, LATER + OVERTAKEN_AFTER_SECONDS):
        run = next_step(run, seen_at(now, busy=(10, 20)), policy).run
    assert run.turn_of(30).phase is Phase.LEAVING
    back = run.replace_turn(replace(run.turn_of(30), phase=Phase.DONE))
    step = next_step(back, seen_at(5_000.0, busy=(10, 20)), policy)
    assert step.run.state is RunState.RUNNING


def test_a_node_behind_whose_pod_is_missing_for_now_is_not_taken_off_the_run() -> None:
    run = a_run()
    for now in (1.0, LATER, LATER + OVERTAKEN_AFTER_SECONDS):
        seen = seen_at(now)
        seen = replace(seen, pods=tuple(pod for pod in seen.pods if pod.node_id != 30))
        step = next_step(run, seen, policy_with())
        run = step.run
        assert begun(step) == []
    assert step.run.turn_of(30).phase is Phase.WAITING
    assert "Node 30 is part of the cluster and has no pod" in step.run.reason


@every_case(
    ("behind", "begins"),
    [
        ((0,), True),
        ((0, 2, 0), False),
        ((0, 2, 0, 0, 0), True),
        ((2,), False),  # Whether it grows or shrinks, one reading does not tell.
        ((5, 3, 2), False),
        ((5, 2, 2, 2), True),
    ],
)
def test_a_run_begins_once_out_of_sync_settles(behind: tuple[int, ...], begins: bool) -> None:
    run = a_run()
    for now, count in enumerate(behind):
        # Replicas of somebody else's brokers, so that nothing but their number speaks against it.
        lag = tuple(PartitionView("u", n, 40, (40, 50), (40,), 1) for n in range(count))
        view = whole()
        view = replace(view, brokers=view.brokers | {40, 50}, partitions=view.partitions + lag)
        step = next_step(run, around(view, now=float(now)), policy_with())
        run = replace(run, out_of_sync=step.run.out_of_sync)
    assert bool(begun(step)) is begins, step.run.reason
    assert begins or "partitions out of sync is not the same" in step.run.reason


BROKERS = (10, 20, 30, 40)
POD = PodView(name="orders-10", node_id=10, role="broker", node_name="n10", ready=True)
WHOLE = kafka_view(
    BROKERS,
    PartitionView("t", 0, 10, (10, 20, 30), (10, 20, 30), 1),
    PartitionView("u", 0, 40, (40, 30, 20), (40, 30, 20), 2),
)


def against(seen: RunObservation, node_id: int = 10, **options: bool) -> list[str]:
    return list(objections(turn_of(node_id), seen, Options(**options), policy_with()))


def test_nothing_speaks_against_a_node_of_a_cluster_that_is_well() -> None:
    assert against(around(WHOLE)) == []


def test_a_run_begins_with_nobody_while_strimzis_operator_has_work() -> None:
    pods = tuple(replace(POD, name=f"orders-{n}", node_id=n, node_name=f"n{n}") for n in BROKERS)
    seen = replace(around(WHOLE), pods=pods)
    assert against(replace(seen, operator=operator_view(pods))) == []
    rolled = operator_view(pods, {"orders-20": "next"})
    assert any("restart pod orders-20" in said for said in against(replace(seen, operator=rolled)))
    own = operator_view(pods, {POD.name: "next"})
    assert against(replace(seen, operator=own)) == []
    unread = Unknown("The Kubernetes API answered 403.")
    assert any("answered 403" in said for said in against(replace(seen, operator=unread)))


def test_a_partition_below_its_minimum_keeps_everybody_also_who_does_not_hold_it() -> None:
    short = replace(WHOLE.partitions[1], isr=(40,))
    seen = around(replace(WHOLE, partitions=(WHOLE.partitions[0], short)))
    assert any("Partition u-0 has 1 in-sync replicas of the 2" in said for said in against(seen))


def test_a_node_that_recovers_its_own_logs_stays() -> None:
    seen = replace(around(WHOLE), recovering=(10,))
    assert any("Broker 10 is still recovering its logs" in said for said in against(seen))


def test_a_person_may_have_it_go_even_so_and_hears_what_that_costs() -> None:
    seen = replace(around(WHOLE), recovering=(10,))
    (said,) = against(seen)
    assert "--even-recovering" in said
    assert "begins again" in said
    assert against(seen, even_recovering=True) == []
    assert against(replace(seen, recovering=(40,)), even_recovering=True) != []


def test_another_that_recovers_keeps_a_node_and_one_that_goes_along_does_not() -> None:
    seen = replace(around(WHOLE), recovering=(40,))
    assert any("Broker 40 is still recovering" in said for said in against(seen))
    beside = list(objections(turn_of(10), seen, Options(), policy_with(), away=[40]))
    assert not any("recovering" in said for said in beside)


def test_a_node_of_the_cluster_without_a_pod_keeps_everybody() -> None:
    seen = around(WHOLE)
    seen = replace(seen, pods=tuple(pod for pod in seen.pods if pod.node_id != 40))
    assert any("Node 40 is part of the cluster and has no pod" in said for said in against(seen))


ALLOWED = Spent(
    objective_percent=99.9, allowed_percent=10, seconds=3600.0, attempts=10_800.0, failed=0.0
)
# What spends a tenth of the 30 days' budget, were it to come within this hour.
TENTH = ALLOWED.attempts / 1000 * 0.1 * PERIOD_SECONDS / ALLOWED.seconds


def stepped(spent: Spent | None, run: Run | None = None) -> RunStep:
    return next_step(run or a_run(), replace(seen_at(1.0), spent=spent), policy_with())


@pytest.mark.parametrize(
    "spent",
    [None, ALLOWED, replace(ALLOWED, failed=TENTH - 1)],
    ids=["no probe", "nothing failed", "within the budget"],
)
def test_a_run_begins_with_the_next_node(spent: Spent | None) -> None:
    assert begun(stepped(spent)) == [10]


def test_a_run_that_spent_too_much_stops_for_a_person_and_says_what_failed() -> None:
    step = stepped(replace(ALLOWED, failed=1.5 * TENTH))
    assert step.run.state is RunState.STOPPED
    assert begun(step) == []
    assert [action.key for action in step.actions if isinstance(action, Page)] == [KEY]
    assert "15.0 % of the clients' error budget" in step.run.reason


def test_a_run_waits_while_nobody_knows_what_clients_see() -> None:
    step = stepped(replace(ALLOWED, silence="Prometheus does not answer."))
    assert (step.run.state, begun(step)) == (RunState.RUNNING, [])
    assert step.delay_seconds is not None
    assert "Prometheus does not answer." in step.run.reason


def test_a_persons_resume_gives_the_run_as_much_again() -> None:
    run = stepped(replace(ALLOWED, failed=TENTH + 1)).run
    assert counting_since(run) == 0.0
    assert counting_since(resume(run, "ada", 500.0)) == 500.0


OLD = Build(template_id="lt-1", template_version="3", image_id="ami-1", instance_type="m7g.large")
SERVER = "v1.36.1-eks-2"


@every_case(
    ("wanted", "why"),
    [
        ({}, None),
        ({"image_id": "ami-2"}, "image ami-1 instead of ami-2"),
        ({"instance_type": "m8g.large"}, "instance type m7g.large instead of m8g.large"),
        ({"template_version": "4"}, "launch template version 3 instead of 4"),
        ({"template_id": "lt-2"}, "launch template lt-1 instead of lt-2"),
        ({"template_id": "lt-2", "template_version": "1"}, "launch template lt-1 instead of lt-2"),
        ({"image_id": None, "instance_type": None, "template_version": None}, None),
        # A parameter says which image it is, and was not read.
        ({"image_id": "resolve:ssm:/eks/1.36"}, None),
        (
            {"template_id": None, "configuration": "kafka-2"},
            "launch template lt-1 instead of launch configuration kafka-2",
        ),
    ],
)
def test_each_difference_is_a_reason(wanted: dict[str, str | None], why: str | None) -> None:
    assert why_outdated(Launched(OLD, replace(OLD, **wanted)), SERVER, SERVER) == why


@every_case(
    ("present", "wanted", "why"),
    [
        ("kafka-1", "kafka-1", None),
        ("kafka-1", "kafka-2", "launch configuration kafka-1 instead of kafka-2"),
        (None, "kafka-2",
            "no launch template or configuration instead of launch configuration kafka-2"),
    ],
)  # fmt: skip
def test_a_launch_configuration_has_no_versions(
    present: str | None, wanted: str, why: str | None
) -> None:
    launched = Launched(Build(configuration=present), Build(configuration=wanted))
    assert why_outdated(launched, SERVER, SERVER) == why


@every_case(
    ("launched", "words"),
    [
        (Launched(OLD, OLD), None),
        (None, "no group of this cluster has its instance"),
        (Launched(OLD, replace(OLD, image_id="resolve:ssm:/eks/1.36")), "resolve:ssm:/eks/1.36"),
    ],
)
def test_what_cannot_be_compared_says_why(launched: Launched | None, words: str | None) -> None:
    assert (words or "") in (why_unknown(launched) or "")
    assert (why_unknown(launched) is None) is (words is None)


def test_an_older_kubelet_is_a_reason_where_a_new_node_would_have_another() -> None:
    said = why_outdated(Launched(OLD, replace(OLD, image_id="ami-2")), "v1.35.4", SERVER)
    assert said == f"kubelet v1.35.4 under Kubernetes {SERVER}, image ami-1 instead of ami-2"


@pytest.mark.parametrize("side", ["present", "wanted"])
def test_an_older_kubelet_is_a_reason_where_the_image_is_not_known(side: str) -> None:
    unknown = replace(Launched(OLD, OLD), **{side: replace(OLD, image_id=None)})
    assert why_outdated(unknown, "v1.35.4", SERVER) == f"kubelet v1.35.4 under Kubernetes {SERVER}"
    assert not list(stale_template({"i-1": unknown}, {"i-1": "v1.35.4"}, SERVER))


def test_an_older_kubelet_in_the_same_image_is_said_and_no_reason() -> None:
    same = Launched(OLD, OLD)
    assert why_outdated(same, "v1.35.4", SERVER) is None
    (note,) = stale_template({"i-1": same}, {"i-1": "v1.35.4", "i-2": "v1.35.4"}, SERVER)
    assert "give it a newer one first" in note


@pytest.mark.parametrize("kubelet", ["v1.36.0", "1.36+", ""])
def test_a_kubelet_of_the_same_minor_version_or_none_is_no_reason(kubelet: str) -> None:
    unknown = Launched(replace(OLD, image_id=None), OLD)
    assert why_outdated(unknown, kubelet, SERVER) is None


def test_one_that_nobody_knows_is_taken_off_the_run_once_the_reading_is_whole() -> None:
    gone = replace(seen_at(1.0), pods=(), kafka=kafka_view((20, 30)))
    left = next_step(a_run(), gone, policy_with()).run.turn_of(10)
    assert (left.phase, left.reason) == (Phase.SKIPPED, "Node 10 is no longer part of the cluster.")
    doubtful = replace(
        gone, kafka=replace(gone.kafka, doubts=(Doubt("Broker 20 did not answer."),))
    )
    assert next_step(a_run(), doubtful, policy_with()).run.turn_of(10).phase is Phase.WAITING
