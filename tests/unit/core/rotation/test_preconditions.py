"""What a run asks before a node goes, beyond what consent asks."""

from __future__ import annotations

from dataclasses import replace

from core.ground.fields import Unknown
from core.incidents.observation import PodView
from core.rotation.estimate import RunObservation
from core.rotation.preconditions import objections
from core.rotation.run_record import Options
from core.views import ClusterView, PartitionView, VoterView
from tests.unit.core.availability.clusters import around, turn_of
from tests.unit.operator_at_work import operator_view
from tests.unit.policies import policy_with

BROKERS = (10, 20, 30, 40)
POD = PodView(name="orders-10", node_id=10, role="broker", node_name="n10", ready=True)
WHOLE = ClusterView(
    brokers=frozenset(BROKERS),
    fenced=frozenset(),
    voters=(VoterView(1, 0.0),),
    quorum_leader=1,
    partitions=(
        PartitionView("t", 0, 10, (10, 20, 30), (10, 20, 30), 1),
        PartitionView("u", 0, 40, (40, 30, 20), (40, 30, 20), 2),
    ),
)


def against(seen: RunObservation, node_id: int = 10, **options: bool) -> list[str]:
    return list(objections(turn_of(node_id), seen, Options(**options), policy_with()))  # type: ignore[arg-type]


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
    assert "begins anew" in said
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
