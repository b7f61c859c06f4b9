"""Nodes of the shared cluster are terminated as the demo does it, one and two at a time."""

from typing import Any

import pytest

from core.incidents.record import Incident, State
from local.demo import result
from local.demo import rotation as demo
from local.demo.costs import Costs
from tests.integration.cluster import BROKERS, CONTROLLERS, Cluster, quiet_narrator

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
# A replacement may be Ready before the first look at it, so not every state must be seen.
ORDER = [State.OPENED, State.REPLACING, State.HOLDING, State.DRAINING, State.GATING, State.RELEASED]
CERTAIN = {State.OPENED, State.REPLACING, State.DRAINING, State.GATING, State.RELEASED}


def entered(incident: Incident, state: State) -> float:
    """Return when an incident entered a state, in epoch seconds."""
    return next(t.at for t in incident.transitions if t.state is state)


def check_states(incident: Incident) -> None:
    states = [t.state for t in incident.transitions]
    assert states == [state for state in ORDER if state in states], states
    assert set(states) >= CERTAIN
    times = [t.at for t in incident.transitions]
    assert times == sorted(times)


def check_lifecycle(incident: Incident) -> None:
    """Its history says that the broker went and returned; what fell between two ticks may miss."""
    said = [note.reason for note in incident.notes if note.reason.startswith("Broker ")]
    print("\n".join(said))  # noqa: T201 - shown with a test that fails
    states = [reason.split()[3].rstrip(":") for reason in said]
    assert {"offline", "fenced"} & set(states), said
    assert (states[-1], incident.lifecycle) == ("online", "online"), said


def ec2_state(cluster: Cluster, instance_id: str) -> str:
    found = cluster.twin.aws("ec2").describe_instances(InstanceIds=[instance_id])
    return str(found["Reservations"][0]["Instances"][0]["State"]["Name"])


def home(cluster: Cluster, node_id: int) -> tuple[str, str, set[str]]:
    """Return a Kafka node's Kubernetes node, that one's zone, and its volumes."""
    api, pod, node = cluster.twin.api, cluster.pods()[node_id], cluster.node_of(node_id)
    claims = f"/api/v1/namespaces/{pod['metadata']['namespace']}/persistentvolumeclaims"
    volumes = {
        str(api.get(f"{claims}/{v['persistentVolumeClaim']['claimName']}")["spec"]["volumeName"])
        for v in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in v
    }
    zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
    return node["metadata"]["name"], zone, volumes


def test_a_brokers_node_dies_under_load_and_nothing_is_lost(cluster: Cluster) -> None:
    old_node, zone, volumes = home(cluster, demo.BROKER_ID)
    with cluster.under_load() as load:
        rotation = demo.terminate(cluster.twin)
        demo.follow(cluster.twin, str(cluster.outputs["ledger_table"]), rotation, quiet_narrator())
        figures = result.assemble(
            cluster.twin,
            rotation,
            load.finish(),
            cluster.provisioned,
            cluster.provisioned,
            cluster.layers.engine_version,
            cost=Costs("0", "0", None),
        )
    assert (figures["lost"], figures["client_errors"]) == (0, 0), load.summary
    assert figures["acked"] == load.summary["sent"] > 0
    assert figures["nth"]["forwarded_at_s"] >= figures["replacement_ready_at_s"]
    assert figures["nth"]["drained_at_s"] > figures["nth"]["forwarded_at_s"]
    assert figures["broker_back_in_isr_at_s"] < figures["instance_terminated_at_s"]
    incident = cluster.released(rotation.instance_id)
    check_states(incident)
    check_lifecycle(incident)
    assert ec2_state(cluster, rotation.instance_id) == "terminated"
    view = cluster.settle()
    assert all(demo.BROKER_ID in p.isr for p in view.partitions)
    new_node, same_zone, same_volumes = home(cluster, demo.BROKER_ID)
    assert new_node == incident.replacement_node != old_node
    assert (same_zone, same_volumes) == (zone, volumes)


def make_topic(cluster: Cluster, name: str) -> None:
    """Make a topic and take it back: two records that only a majority of the quorum can commit."""
    cluster.create_topic(name, num_partitions=1, replication_factor=3)
    cluster.delete_topic(name)


@pytest.mark.long
def test_the_quorums_leader_loses_its_node_and_the_quorum_keeps_its_majority(
    cluster: Cluster,
) -> None:
    leader = cluster.settle().quorum_leader
    assert leader in CONTROLLERS
    old_node, _, volumes = home(cluster, leader)
    rotation = demo.terminate(cluster.twin, leader)
    since = rotation.terminated_call_at
    cluster.until(lambda: stops(cluster, since), "the controller's pod stops", 120)
    make_topic(cluster, f"while-{leader}-is-away")
    incident = cluster.released(rotation.instance_id)
    check_states(incident)
    assert incident.role == "controller"
    assert [name for name, _ in stops(cluster, since)] == [incident.pod_name]
    view = cluster.settle()
    assert {voter.node_id for voter in view.voters if voter.caught_up} == CONTROLLERS
    new_node, _, same_volumes = home(cluster, leader)
    assert (new_node != old_node, same_volumes) == (True, volumes)


def stops(cluster: Cluster, since: float) -> list[tuple[str, float]]:
    """Return the Kafka pods that were told to stop after `since`, and when."""
    ours = {pod["metadata"]["name"] for pod in cluster.pods().values()}
    return [
        (fact["pod"], fact["at"])
        for fact in cluster.facts("pod_stopping")
        if fact["at"] >= since and fact["pod"] in ours
    ]


@pytest.mark.long
def test_two_brokers_whose_nodes_go_at_once_are_out_one_after_the_other(cluster: Cluster) -> None:
    pair = (20, 30)
    with cluster.under_load() as load:
        rotations = {id_: demo.terminate(cluster.twin, id_) for id_ in pair}
        incidents = [cluster.released(r.instance_id) for r in rotations.values()]
        samples = result.isr_samples(cluster.twin)
        summary = load.finish()
    assert (summary["lost"], summary["client_errors"]) == (0, 0), summary
    for incident in incidents:
        check_states(incident)
        assert ec2_state(cluster, incident.instance_id) == "terminated"
    first, second = sorted(incidents, key=lambda i: entered(i, State.DRAINING))
    # The first holder gives the lease back when its broker is back for good.
    assert entered(second, State.DRAINING) >= entered(first, State.RELEASED)
    told = dict(stops(cluster, min(r.terminated_call_at for r in rotations.values())))
    assert list(told) == [first.pod_name, second.pod_name]
    assert told[str(second.pod_name)] >= back_at(cluster, first, told[str(first.pod_name)])
    assert all(len(sample["missing"]) <= 1 for sample in samples)
    assert {id_ for sample in samples for id_ in sample["missing"]} <= set(pair)
    assert all(set(pair) <= set(p.isr) for p in cluster.settle().partitions)
    assert cluster.settle().brokers == BROKERS


def back_at(cluster: Cluster, incident: Incident, stopped_at: float) -> float:
    """Return when a pod that was told to stop was Ready again."""
    found: list[dict[str, Any]] = cluster.facts("pod_ready", pod=incident.pod_name)
    return min(float(fact["at"]) for fact in found if fact["at"] > stopped_at)
