"""A broker of the shared cluster gets a new root volume in place, under load."""

from dataclasses import dataclass
from typing import Any

import pytest

from cli.rotate import Rotations
from core.incidents.record import State
from core.rotation.run_record import Phase, Run, RunState
from handlers.store.ledger import rounds
from local.aws.root_volumes import TROUBLE_TAG
from tests.integration.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
BROKER = 20


@dataclass(frozen=True)
class Machine:
    """What is known of the machine that a broker runs on."""

    instance_id: str
    boot_id: str
    root: str
    data: frozenset[str]


@pytest.mark.long
def test_a_root_volume_is_replaced_in_place_and_nothing_is_lost(
    cluster: Cluster, rotations: Rotations
) -> None:
    before, instances = machine(cluster), running(cluster)
    with cluster.under_load() as load:
        answer = rotations.ask("start", selection={"node_ids": [BROKER]}, in_place=True)
        assert answer["run"]["turns"][0]["by_replacement"] == ""
        run = cluster.until(lambda: done(rotations), "the run is done", 240)
        summary = load.finish()
    assert (summary["lost"], summary["client_errors"]) == (0, 0), summary
    after = machine(cluster)
    assert (after.instance_id, after.data) == (before.instance_id, before.data)
    assert after.boot_id != before.boot_id
    assert after.root != before.root
    assert running(cluster) == instances
    incident = cluster.incident(before.instance_id)
    assert incident is not None
    assert incident.state is State.RIDDEN_THROUGH, incident.reason
    assert incident.in_place is not None
    assert incident.in_place.done
    # The handler has said that it is done: its message cannot come again, and the lease is free.
    assert incident.forwarded is not None
    assert incident.forwarded.reported_at is not None
    assert incident.id not in {lease.holder for lease in cluster.ledger.leases()}
    (task,) = tasks(cluster, before.instance_id)
    assert task["TaskState"] == "succeeded"
    turn = run.turn_of(BROKER)
    assert (turn.phase, turn.image_id) == (Phase.DONE, incident.in_place.image_id)


@pytest.mark.long
def test_a_task_that_fails_costs_a_start_and_the_instance_is_replaced(
    cluster: Cluster, rotations: Rotations
) -> None:
    before = machine(cluster)
    cluster.twin.aws("ec2").create_tags(
        Resources=[before.instance_id], Tags=[{"Key": TROUBLE_TAG, "Value": "failed"}]
    )
    with cluster.under_load() as load:
        rotations.ask("start", selection={"node_ids": [BROKER]}, in_place=True)
        run = cluster.until(lambda: done(rotations), "the run is done", 360)
        summary = load.finish()
    assert (summary["lost"], summary["client_errors"]) == (0, 0), summary
    found = rounds(cluster.ledger, before.instance_id)
    assert [each.state for each in found[-2:]] == [State.RIDDEN_THROUGH, State.RELEASED]
    assert "the root volume it had" in found[-2].reason
    after = machine(cluster)
    assert after.instance_id != before.instance_id
    assert after.data == before.data
    assert "failed, and the old root volume stays" in run.turn_of(BROKER).by_replacement


def machine(cluster: Cluster) -> Machine:
    node = cluster.node_of(BROKER)
    instance_id = node["spec"]["providerID"].rpartition("/")[2]
    ec2 = cluster.twin.aws("ec2")
    found = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    volumes = {each["DeviceName"]: each["Ebs"]["VolumeId"] for each in found["BlockDeviceMappings"]}
    root = volumes.pop(found["RootDeviceName"])
    boot_id = node["status"]["nodeInfo"]["bootID"]
    return Machine(instance_id, boot_id, root, frozenset(volumes.values()))


def running(cluster: Cluster) -> set[str]:
    states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    pages = cluster.twin.aws("ec2").describe_instances(Filters=states)["Reservations"]
    return {each["InstanceId"] for page in pages for each in page["Instances"]}


def tasks(cluster: Cluster, instance_id: str) -> list[dict[str, Any]]:
    about = [{"Name": "instance-id", "Values": [instance_id]}]
    found = cluster.twin.aws("ec2").describe_replace_root_volume_tasks(Filters=about)
    return list(found["ReplaceRootVolumeTasks"])


def done(rotations: Rotations) -> Run | None:
    run = rotations.run()
    assert run is not None
    assert run.state is not RunState.STOPPED, run.reason
    return run if run.state is RunState.DONE else None
