"""replacement: which node takes over; whether the last in-sync replica is waited for."""

from dataclasses import replace
from decimal import Decimal

import pytest

from core.ground.fields import Unknown
from core.ground.placement import VOLUME_SLOTS, Placement, PodNeeds, Taint, Toleration
from core.incidents.actions import Decision, ForwardDrain, Page, TakeLease
from core.incidents.decide import next_action
from core.incidents.evicted import starts_again_in_place
from core.incidents.observation import GroupView, InstanceView, Observation, PodView
from core.incidents.record import Incident, Replacement, State
from core.incidents.replacement import anybody_idle, none_will_come, replacement_for, what_is_coming
from core.views import ClusterView, Doubt, PartitionView
from tests.every_case import every_case
from tests.unit.core.incidents.announced_incidents import (
    NEW,
    OLD,
    POLICY,
    observation,
    opened_incident,
)
from tests.unit.core.incidents.test_guards import RETAINED
from tests.unit.views import kafka_view, node_view

GIB = 1024**3
OLD_NODE = node_view("old", OLD)
NEW_NODE = replace(OLD_NODE, name="new", instance_id=NEW)
POD = PodView(name="c-broker-a-10", node_id=10, role="broker", node_name="old", ready=True)
GROUP = GroupView(
    name="g", desired=1, maximum=2, instances={OLD: "Terminating:Wait", NEW: "InService"}
)
SEEN = Observation(
    now=1.0,
    instance=InstanceView(instance_id=OLD, state="running", zone="z", private_dns_name="old"),
    group=GROUP,
    nodes=(OLD_NODE, NEW_NODE),
    pods=(POD,),
)


def incident() -> Incident:
    return replace(opened_incident(), zone="z", pool="broker", node_name="old")


def with_new(**changed: object) -> Observation:
    return replace(SEEN, nodes=(OLD_NODE, replace(NEW_NODE, **changed)))


UNFIT = [
    pytest.param(with_new(ready=False), id="not Ready"),
    pytest.param(with_new(schedulable=False), id="cordoned"),
    pytest.param(with_new(csi_ready=False), id="without its EBS driver"),
    pytest.param(with_new(zone="y"), id="in another zone"),
    pytest.param(with_new(pool="controller"), id="of another pool"),
    pytest.param(with_new(instance_id=None), id="of no instance"),
    pytest.param(replace(SEEN, leaving=frozenset({NEW})), id="told to leave, too"),
    pytest.param(
        replace(SEEN, pods=(POD, replace(POD, name="c-broker-a-11", node_name="new"))), id="busy"
    ),
    pytest.param(
        replace(SEEN, group=replace(GROUP, instances={NEW: "Terminating:Wait"})), id="terminating"
    ),
]


@every_case("seen", UNFIT)
def test_a_node_that_cannot_take_the_pod_is_no_replacement(seen: Observation) -> None:
    assert replacement_for(incident(), seen) is None


def test_a_machine_of_another_incident_is_idle_once_it_is_given_up() -> None:
    leaving = frozenset({NEW})
    assert anybody_idle(incident(), replace(with_new(ready=False), leaving=leaving)) is not None
    assert anybody_idle(incident(), replace(SEEN, leaving=leaving)) is None


def test_an_idle_node_of_the_zone_and_pool_takes_over_and_the_first_that_was_found_stays() -> None:
    assert replacement_for(incident(), SEEN) == NEW_NODE
    another = replace(NEW_NODE, name="another", instance_id="i-another")
    group = replace(GROUP, instances={**GROUP.instances, "i-another": "InService"})
    seen = replace(SEEN, nodes=(OLD_NODE, another, NEW_NODE), group=group)
    found = replace(incident(), replacement=Replacement(node="new", ready_at=0.0))
    assert replacement_for(found, seen) == NEW_NODE


def test_a_group_that_wants_no_more_than_is_busy_launches_none() -> None:
    alone = replace(GROUP, instances={OLD: "Terminating:Wait"})
    assert none_will_come(incident(), replace(SEEN, group=replace(alone, desired=0)))
    assert not none_will_come(incident(), replace(SEEN, group=alone))
    assert not none_will_come(incident(), replace(SEEN, group=replace(GROUP, desired=1)))
    assert not none_will_come(incident(), replace(SEEN, group=None))


def test_a_wait_says_what_it_waits_for() -> None:
    assert what_is_coming(incident(), with_new(ready=False)) == ": new is not Ready yet"
    assert "EBS driver" in what_is_coming(incident(), with_new(csi_ready=False))
    alone = replace(SEEN, nodes=(OLD_NODE,), group=replace(GROUP, instances={}))
    assert what_is_coming(incident(), alone) == ": g is launching one"
    assert what_is_coming(incident(), replace(alone, group=None)) == ""


LABELS = {"pool": "broker"}
KAFKA_TAINT = Taint(key="dedicated", value="kafka", effect="NoSchedule")
AGENT_TAINT = Taint(key="ebs.csi.aws.com/agent-not-ready", effect="NoSchedule")
ASKING = replace(
    POD,
    needs=PodNeeds(
        wants=Placement(
            labels=LABELS,
            tolerations=(Toleration(key="dedicated", value="kafka", effect="NoSchedule"),),
        ),
        requests={"memory": Decimal(8 * GIB), VOLUME_SLOTS: Decimal(1)},
    ),
)
SENT = replace(incident(), pod_name=POD.name)
ROOM = {"memory": Decimal(10 * GIB), VOLUME_SLOTS: Decimal(2)}
AGENT = PodNeeds(title="kube-system/aws-node", requests={"memory": Decimal(GIB)})


def as_scheduled(tenants: object = (AGENT,), attached: int = 1, **changed: object) -> Observation:
    shown = {"labels": LABELS, "taints": (KAFKA_TAINT,), "allocatable": ROOM, **changed}
    return replace(
        with_new(**shown),
        pods=(ASKING,),
        tenants={"new": tenants},
        attachments={"new": ("pvc-x",) * attached},
    )


def test_a_node_dedicated_to_kafka_with_room_takes_over() -> None:
    assert replacement_for(SENT, as_scheduled()) is not None


PASSED_OVER = {
    "a startup taint that stays": (
        as_scheduled(taints=(KAFKA_TAINT, AGENT_TAINT)),
        "is Ready and has taint ebs.csi.aws.com/agent-not-ready:NoSchedule, which the pod does not",
    ),
    "another's taint": (as_scheduled(taints=(replace(KAFKA_TAINT, value="spark"),)),
        "taint dedicated=spark:NoSchedule"),
    "no label": (as_scheduled(labels={}), "lacks label pool=broker"),
    "too little memory": (as_scheduled((AGENT, AGENT, AGENT)),
        "is Ready and has 7.0 GiB of memory free, and the pod requests 8.0 GiB of memory"),
    "no slot": (as_scheduled(attached=2), "has 0 volume attachment slots free"),
    "allocatable unsaid": (as_scheduled(allocatable={}), "has 0.0 GiB of memory free"),
    "tenants that were not read": (as_scheduled(Unknown("403.")), "is not known: 403"),
    "a sick network": (as_scheduled(sick={"NetworkingReady": 0.0}),
        "reports NetworkingReady as False: restart its node monitoring agent"),
    "a kubelet that says why": (as_scheduled(ready=False, unready_why="cni plugin not initialized"),
        "is not Ready yet (cni plugin not initialized)"),
}  # fmt: skip


@every_case("case", PASSED_OVER)
def test_a_node_that_the_scheduler_passes_over_is_waited_for_by_its_reason(case: str) -> None:
    seen, named = PASSED_OVER[case]
    assert replacement_for(SENT, seen) is None
    assert what_is_coming(SENT, seen).startswith(": new ")
    assert named in what_is_coming(SENT, seen)


def test_a_deleted_pod_is_not_awaited_on_a_node_that_it_may_not_return_to() -> None:
    there = replace(
        as_scheduled(), nodes=(replace(OLD_NODE, labels=LABELS, taints=(KAFKA_TAINT,)),)
    )
    assert starts_again_in_place(SENT, there)
    leftover = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule")
    barred = replace(there, nodes=(replace(there.nodes[0], taints=(KAFKA_TAINT, leftover)),))
    assert not starts_again_in_place(SENT, barred)


LATE = POLICY.hold_limit_seconds + 2
ALONE = PartitionView("t", 0, 10, (10, 20), (10,), 2)
KAFKA = kafka_view({10, 20}, ALONE)


def held(**changes: object) -> Incident:
    """Return an incident whose replacement is Ready and that waits for Kafka."""
    said: dict[str, object] = {"node_id": 10, "node_name": "old", "pod_name": "c-10", "zone": "z"}
    said |= {"pool": "broker", "replacement": Replacement(node="new", ready_at=0.0)}
    return replace(opened_incident(), state=State.HOLDING, **{**said, **changes})


def shown(now: float, kafka: ClusterView | None = KAFKA, **changes: object) -> Observation:
    nodes = tuple(
        node_view(name, instance_id, schedulable=name == "new")
        for name, instance_id in (("old", OLD), ("new", NEW))
    )
    stands = {OLD: "Terminating:Wait", NEW: "InService"}
    around = {
        "group": GroupView(name="g", desired=1, maximum=2, instances=stands),
        "nodes": nodes,
        "pods": (PodView(name="c-10", node_id=10, role="broker", node_name="old", ready=True),),
        "kafka": kafka,
    }
    return observation(now, **{**around, **changes})


def decided(incident: Incident, observation: Observation) -> Decision:
    return next_action(incident, observation, POLICY)


def pages(decision: Decision) -> list[str]:
    return [action.key for action in decision.actions if isinstance(action, Page)]


def test_within_the_hold_limit_it_stays_for_as_long_as_another_replica_is_behind() -> None:
    decision = decided(held(), shown(60.0))
    assert decision.state is State.HOLDING
    assert TakeLease() not in decision.actions
    assert "it is the last in-sync replica of partition t-0" in decision.reason


def test_at_the_hold_limit_aws_has_it_and_the_page_says_what_goes_offline() -> None:
    asks = decided(held(), shown(LATE))
    assert asks.state is State.HOLDING
    assert TakeLease() in asks.actions
    assert pages(asks) == ["last_in_sync"]
    assert "the last in-sync replica of 1 partitions" in asks.reason
    incident = held(pages=("last_in_sync",))
    goes = decided(incident, shown(LATE, lease_holder=incident.id))
    assert goes.state is State.DRAINING
    assert ForwardDrain() in goes.actions
    assert pages(goes) == []


def test_near_the_date_of_aws_nobody_waits_for_the_hold_limit() -> None:
    decision = decided(held(due_at=POLICY.hold_limit_seconds), shown(60.0))
    assert TakeLease() in decision.actions


@pytest.mark.parametrize(
    "kafka",
    [
        pytest.param(None, id="Kafka is silent"),
        pytest.param(replace(KAFKA, doubts=(Doubt("A topic is hidden."),)), id="not whole"),
        pytest.param(replace(KAFKA, fenced=frozenset({20})), id="another broker is out"),
        pytest.param(
            replace(KAFKA, partitions=(ALONE, PartitionView("u", 0, 10, (10, 20), (10,), 1))),
            id="a partition that could be kept",
        ),
    ],
)
def test_nothing_else_is_overruled(kafka: ClusterView | None) -> None:
    decision = decided(held(), shown(LATE, kafka))
    assert decision.state is State.RETAINED
    assert "hold_limit" in pages(decision)


@pytest.mark.parametrize(
    ("incident", "around"),
    [
        pytest.param({"announcements": ("rotation:run-1:i-old:1",)}, {}, id="a run's own"),
        pytest.param({}, {"lease_holder": "i-other"}, id="another has the lease"),
        pytest.param({}, {"drains": (replace(RETAINED, open=True),)}, id="another's drain stands"),
        pytest.param({"replacement": None}, {"nodes": ()}, id="nowhere to go"),
    ],
)
def test_who_could_not_go_is_kept(incident: dict[str, object], around: dict[str, object]) -> None:
    decision = decided(held(**incident), shown(LATE, **around))
    assert decision.state is State.RETAINED


@pytest.mark.parametrize(
    ("eligible", "words"),
    [((10,), "only its volume has it"), ((10, 20), "broker 20 still holds all of it")],
)
def test_a_lost_broker_is_paged_with_its_remedy(eligible: tuple[int, ...], words: str) -> None:
    offline = PartitionView("t", 0, None, (10, 20), (), 2, eligible)
    kafka = replace(KAFKA, fenced=frozenset({10}), partitions=(offline,))
    dead = InstanceView(instance_id=OLD, state="terminated", zone="z", private_dns_name="old")
    incident = replace(held(), state=State.GATING, lost_at=1.0)
    decision = decided(incident, shown(120.0, kafka, instance=dead))
    (page,) = [action for action in decision.actions if isinstance(action, Page)]
    assert page.key == "lost"
    assert f"1 partitions are offline, among them t-0: {words}." in page.reason
