"""`stillwater doctor` on a live cluster: nothing to say of a healthy one, and sabotage by its name.

Every sabotage is undone before the next begins, and the doctor itself says when it is.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from cli.doctor.examine import Diagnosis, examine
from cli.target import find_twin
from core.checks.finding import Finding, Weight
from core.ground import naming
from local.demo import spec as demo_spec
from local.place import PLACE_VARIABLE
from tests.integration.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDE = REPOSITORY / "docs" / "how-to" / "doctor.md"
PREFIX = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}"
GROUP = naming.auto_scaling_group(PREFIX, "broker", demo_spec.ZONES[0])
HOOK = naming.DRAIN_HOOK
NAMESPACE = "/api/v1/namespaces/kafka"
TARGETS = naming.target_group(PREFIX, naming.target_group_role(10))
QUEUE = naming.queue(PREFIX, "nth")

Sabotage = Callable[[Cluster], AbstractContextManager[None]]


def differences(diagnosis: Diagnosis) -> dict[str, str]:
    return {f.subject: f.evidence for f in diagnosis.findings if f.weight is Weight.DRIFT}


def unread(diagnosis: Diagnosis) -> list[Finding]:
    return [each for each in diagnosis.findings if each.weight is Weight.UNKNOWN]


@contextmanager
def removed_hook(cluster: Cluster) -> Iterator[None]:
    scaling = cluster.twin.aws("autoscaling")
    (before,) = scaling.describe_lifecycle_hooks(
        AutoScalingGroupName=GROUP, LifecycleHookNames=[HOOK]
    )["LifecycleHooks"]
    try:
        scaling.delete_lifecycle_hook(AutoScalingGroupName=GROUP, LifecycleHookName=HOOK)
        yield
    finally:
        kept = ("LifecycleTransition", "HeartbeatTimeout", "DefaultResult")
        scaling.put_lifecycle_hook(
            AutoScalingGroupName=GROUP,
            LifecycleHookName=HOOK,
            **{key: before[key] for key in kept},
        )


@contextmanager
def slow_health_check(cluster: Cluster) -> Iterator[None]:
    balancing = cluster.twin.aws("elbv2")
    (group,) = balancing.describe_target_groups(Names=[TARGETS])["TargetGroups"]
    arn, before = group["TargetGroupArn"], group["HealthCheckIntervalSeconds"]
    try:
        balancing.modify_target_group(TargetGroupArn=arn, HealthCheckIntervalSeconds=30)
        yield
    finally:
        balancing.modify_target_group(TargetGroupArn=arn, HealthCheckIntervalSeconds=before)


@contextmanager
def no_gate_label(cluster: Cluster) -> Iterator[None]:
    def label(value: str | None) -> None:
        labels = {naming.READINESS_GATE_LABEL: value}
        cluster.twin.api.merge(NAMESPACE, {"metadata": {"labels": labels}})

    try:
        label(None)
        yield
    finally:
        label("enabled")


def a_volume(cluster: Cluster) -> str:
    listed = cluster.twin.api.get("/api/v1/persistentvolumes")["items"]
    claim = naming.claim(demo_spec.CLUSTER, "broker-a", 10, 0)
    (name,) = [v["metadata"]["name"] for v in listed if v["spec"]["claimRef"]["name"] == claim]
    return str(name)


@contextmanager
def reclaimed_volume(cluster: Cluster) -> Iterator[None]:
    path = f"/api/v1/persistentvolumes/{a_volume(cluster)}"

    def policy(value: str) -> None:
        cluster.twin.api.merge(path, {"spec": {"persistentVolumeReclaimPolicy": value}})

    try:
        # While the claim lives nothing is deleted.
        policy("Delete")
        yield
    finally:
        policy("Retain")


@contextmanager
def small_group(cluster: Cluster) -> Iterator[None]:
    scaling = cluster.twin.aws("autoscaling")
    found = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
    before = found["AutoScalingGroups"][0]["MaxSize"]
    try:
        scaling.update_auto_scaling_group(AutoScalingGroupName=GROUP, MaxSize=1)
        yield
    finally:
        scaling.update_auto_scaling_group(AutoScalingGroupName=GROUP, MaxSize=before)


@contextmanager
def short_memory(cluster: Cluster) -> Iterator[None]:
    sqs = cluster.twin.aws("sqs")
    url, name = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"], "MessageRetentionPeriod"
    before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]
    try:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: "300"})
        yield
    finally:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: before})


# What is done -> the sabotage, what the doctor calls it, what it should be and what it is.
SABOTAGES: dict[str, tuple[Sabotage, str, str, str]] = {
    "hook removed": (removed_hook, f"lifecycle hook {HOOK} of {GROUP}", "present", "missing"),
    "health check slowed": (
        slow_health_check,
        f"health check interval of target group {TARGETS}",
        "5 s",
        "30 s",
    ),
    "gate label gone": (
        no_gate_label,
        f"label {naming.READINESS_GATE_LABEL} of namespace kafka",
        "enabled",
        "none",
    ),
    "Retain flipped": (reclaimed_volume, "reclaim policy of volume", "Retain", "Delete"),
    "max size cut": (small_group, f"maximum size of Auto Scaling group {GROUP}", "2", "1"),
    "queue retention cut": (short_memory, f"retention of queue {QUEUE}", "900 s", "300 s"),
}


@pytest.mark.parametrize("name", SABOTAGES)
def test_every_sabotage_is_named_and_nothing_else(cluster: Cluster, name: str) -> None:
    sabotage, what, expected, found = SABOTAGES[name]
    with sabotage(cluster):
        diagnosis = examine(find_twin())
    assert unread(diagnosis) == []
    ((named, values),) = differences(diagnosis).items()
    assert named.startswith(what)
    assert values == f"expected {expected}, found {found}"
    assert diagnosis.exit_code == 1
    cluster.until(lambda: examine(find_twin()).exit_code == 0, "the sabotage is undone")


def test_a_healthy_cluster_gives_the_doctor_nothing_to_say_with_the_rights_of_the_guide(
    cluster: Cluster,
) -> None:
    target, called = find_twin(), set()
    target.session.events.register(
        "before-call.*.*", lambda model, **_: called.add(model.name), unique_id="calls"
    )
    diagnosis = examine(target)
    assert differences(diagnosis) == {}
    assert unread(diagnosis) == []
    sys.stdout.write(f"read in {diagnosis.seconds:.2f} s\n")
    # The one call that needs no permission.
    assert called - {"GetCallerIdentity"} == {action.partition(":")[2] for action in granted()}


def granted() -> set[str]:
    """Return the actions of the guide's policy."""
    (policy,) = re.findall(r"```json\n(\{\s*\"Version\".*?)```", GUIDE.read_text(), re.DOTALL)
    return {action for s in json.loads(policy)["Statement"] for action in s["Action"]}


def test_the_doctor_finds_a_running_twin_from_another_process(cluster: Cluster) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "doctor", "local", "--json"],
        cwd=REPOSITORY,
        env={**os.environ, PLACE_VARIABLE: str(cluster.twin.place.directory)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = json.loads(done.stdout)
    hurts = [each for each in said["findings"] if each["weight"] != Weight.ADVICE]
    assert (done.returncode, hurts) == (0, [])
    assert said["cluster"] == PREFIX
    assert "secret" not in done.stdout.lower()
