"""`stillwater rotate plan` on the shared cluster: order, time, bytes, what blocks, what triggers.

Nothing is rotated: groups, templates and a node's version are changed for a moment and put back.
"""

import io
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from rich.console import Console

from cli.rotate import Rotations, selection, show_plan
from core.ground.errors import InvalidInput
from core.ground.naming import TWIN_ENVIRONMENT
from tests.integration.cluster import BROKERS, CONTROLLERS, Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
BROKER = min(BROKERS)
EVERYTHING = selection(everything=True, node_ids=[], pools=[], zones=[])
NOTHING_NAMED = selection(everything=False, node_ids=[], pools=[], zones=[])


@contextmanager
def lonely_topic(cluster: Cluster) -> Iterator[str]:
    """A topic that nobody can keep up: one replica, on one broker."""
    name = f"lonely-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, assignments={0: [BROKER]})
    cluster.until(
        lambda: (view := cluster.kafka()) and any(p.topic == name for p in view.partitions),
        "the topic is there",
        120,
    )
    try:
        yield name
    finally:
        cluster.delete_topic(name)


@contextmanager
def group_with(cluster: Cluster, name: str, **changed: Any) -> Iterator[Mapping[str, Any]]:
    """Change an Auto Scaling group for the block; yield it as it was."""
    scaling = cluster.twin.aws("autoscaling")
    (before,) = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    scaling.update_auto_scaling_group(AutoScalingGroupName=name, **changed)
    try:
        yield before
    finally:
        template = before["LaunchTemplate"]
        scaling.update_auto_scaling_group(
            AutoScalingGroupName=name,
            MaxSize=before["MaxSize"],
            LaunchTemplate={
                "LaunchTemplateId": template["LaunchTemplateId"],
                "Version": template["Version"],
            },
        )


def group_of(cluster: Cluster, node_id: int) -> dict[str, Any]:
    """Return the Auto Scaling group of the instance that a Kafka node runs on."""
    provider = cluster.node_of(node_id)["spec"]["providerID"]
    scaling = cluster.twin.aws("autoscaling")
    found: list[dict[str, Any]] = [
        group
        for group in scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        if any(i["InstanceId"] == provider.rpartition("/")[2] for i in group["Instances"])
    ]
    (group,) = found
    return group


def quorum_leader(cluster: Cluster) -> int:
    return cluster.until(
        lambda: (view := cluster.kafka()) and {view.quorum_leader} - {None}, "a quorum", 120
    ).pop()


def printed(*, as_json: bool, sample_seconds: float = 0.0, **said: Any) -> str:
    written = io.StringIO()
    console = Console(file=written, width=200)
    show_plan(TWIN_ENVIRONMENT, console, as_json=as_json, sample_seconds=sample_seconds, **said)
    return written.getvalue()


def test_a_plan_says_order_minutes_bytes_what_blocks_and_what_is_lost(
    cluster: Cluster, rotations: Rotations
) -> None:
    name = group_of(cluster, BROKER)["AutoScalingGroupName"]
    leaders = [quorum_leader(cluster)]
    with lonely_topic(cluster) as topic, group_with(cluster, name, MaxSize=1):
        document = json.loads(printed(as_json=True, sample_seconds=1.0, selection=EVERYTHING))
        page = printed(as_json=False, selection=EVERYTHING)
        with pytest.raises(InvalidInput) as refused:
            rotations.ask("start", selection=EVERYTHING)
    ids = [node["node_id"] for node in document["nodes"]]
    leaders.append(quorum_leader(cluster))
    assert set(ids[:3]) == CONTROLLERS
    assert ids[3:] == sorted(BROKERS)
    assert [node["zone"] for node in document["nodes"]][3:] == sorted(
        node["zone"] for node in document["nodes"][3:]
    )
    # One that is elected meanwhile may have been a follower when the plan was made.
    assert ids[2] in leaders or leaders[0] != leaders[1]
    # As long as an earlier run on this cluster took, else what is assumed.
    assert all(node["seconds"] > 0 for node in document["nodes"])
    altogether = sum(node["seconds"] for node in document["nodes"])
    assert document["seconds"] == pytest.approx(altogether)
    copies = {node["node_id"]: node["resync_bytes"] for node in document["nodes"]}
    assert all((copies[id_] is None) == (id_ in CONTROLLERS) for id_ in ids)
    assert document["topics"] == [topic]
    (lost,) = document["unavailable"]
    assert lost.startswith(f"Partition {topic}-0 has replication factor 1")
    assert any("Replication at " in note for note in document["notes"])
    blocked = next(node["objections"] for node in document["nodes"] if node["node_id"] == BROKER)
    assert any("no place for a replacement" in s and "raise its maximum" in s for s in blocked)

    assert "What blocks it now:" in page
    assert f"no place for a replacement of node {BROKER}; raise its maximum." in page
    assert "What will be unavailable, and needs --accept-unavailable:" in page
    assert f"Partition {topic}-0" in page
    assert lost in refused.value.problems
    assert "--accept-unavailable" in refused.value.problems[-1]


def test_a_new_template_image_type_or_kubernetes_version_each_triggers_a_rotation(
    cluster: Cluster, rotations: Rotations
) -> None:
    assert rotations.ask("plan", selection=NOTHING_NAMED)["plan"]["nodes"] == []
    group = group_of(cluster, BROKER)
    template, ec2 = group["LaunchTemplate"]["LaunchTemplateId"], cluster.twin.aws("ec2")
    image = str(ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"])
    # Moto deletes no version; one that no group names is none of anybody's.
    made = ec2.create_launch_template_version(
        LaunchTemplateId=template,
        SourceVersion=group["LaunchTemplate"]["Version"],
        LaunchTemplateData={"ImageId": image, "InstanceType": "m6g.2xlarge"},
    )["LaunchTemplateVersion"]
    version = str(made["VersionNumber"])
    wanted = {"LaunchTemplateId": template, "Version": version}
    with (
        group_with(cluster, group["AutoScalingGroupName"], LaunchTemplate=wanted),
        kubelet(cluster, BROKER, "v1.30.9"),
    ):
        (node,) = rotations.ask("plan", selection=NOTHING_NAMED)["plan"]["nodes"]
    assert node["node_id"] == BROKER
    assert "kubelet v1.30.9 under Kubernetes " in node["why"]
    assert f" instead of {image}" in node["why"]
    assert "instead of m6g.2xlarge" in node["why"]
    assert (
        f"launch template version {group['LaunchTemplate']['Version']} instead of {version}"
        in (node["why"])
    )


@contextmanager
def kubelet(cluster: Cluster, node_id: int, version: str) -> Iterator[None]:
    """Have a Kafka node's kubelet be of another version for the block."""
    node = cluster.node_of(node_id)
    path = f"/api/v1/nodes/{node['metadata']['name']}"
    before = node["status"]["nodeInfo"]["kubeletVersion"]
    try:
        _say_version(cluster, path, version)
        yield
    finally:
        _say_version(cluster, path, before)


def _say_version(cluster: Cluster, path: str, version: str) -> None:
    changed = {"status": {"nodeInfo": {"kubeletVersion": version}}}
    cluster.twin.api.merge(f"{path}/status", changed)
