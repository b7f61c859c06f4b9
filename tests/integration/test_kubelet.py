"""Nodes, pods and volumes on the real control plane: the twin's kubelet and CSI controller.

The kubelet's own end and return are in test_kubelet_restart.py.

Makes a role for the pods of a service account, as an association gives it, and takes it away.
"""

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.ground.naming import ZONE_LABEL
from local import environment
from local.kubernetes.identity import POD_IDENTITY, POD_IDENTITY_ACTIONS
from local.processes import start_time_ticks
from local.store import ResourceStore
from local.tools import chart_path, tool_path
from local.twin import Twin
from tests.integration.nodes import (
    CLAIMS,
    CLUSTER,
    NAMESPACE,
    PODS,
    SPACE,
    STUBBORN,
    ZONE,
    World,
    claim_body,
    is_true,
    keeper,
    pids_in,
    pod_body,
    python,
    ready_once,
    world_on,
)
from tests.integration.waiting import until

pytestmark = pytest.mark.integration

ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"


@contextlib.contextmanager
def role_for(
    twin: Twin, cluster: str, namespace: str, service_account: str, *actions: str
) -> Iterator[None]:
    """Let a service account's pods do some actions for as long as the block lasts."""
    iam, store = twin.aws("iam"), ResourceStore(twin.place.path("store"))
    name = f"{cluster}-{service_account}"
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": POD_IDENTITY},
        "Action": list(POD_IDENTITY_ACTIONS),
    }
    made = iam.create_role(
        RoleName=name, AssumeRolePolicyDocument=json.dumps({"Statement": [trust]})
    )
    rights = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [rights]})
    iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=policy)
    association = {
        "clusterName": cluster,
        "namespace": namespace,
        "serviceAccount": service_account,
        "roleArn": made["Role"]["Arn"],
    }
    store.put(ASSOCIATION, name, association)
    try:
        yield
    finally:
        store.remove(ASSOCIATION, name)
        iam.delete_role_policy(RoleName=name, PolicyName="rights")
        iam.delete_role(RoleName=name)


@pytest.fixture(scope="module")
def world(twin: Twin, subnets: Mapping[str, str]) -> Iterator[World]:
    with world_on(twin, subnets["a"]) as made:
        yield made


def test_a_running_instance_becomes_a_ready_node_with_what_its_user_data_asks(world: World) -> None:
    instance = world.launch("join")
    name = until(lambda: world.ready_node(instance), "the node is ready")
    node = world.api.get(f"/api/v1/nodes/{name}")
    assert node["metadata"]["labels"]["stillwater.dev/pool"] == "join"
    assert node["metadata"]["labels"][ZONE_LABEL] == ZONE
    assert node["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    assert {"key": "dedicated", "value": "join", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["status"]["allocatable"]["cpu"] == "1930m"
    lease = world.api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")
    assert lease["spec"]["holderIdentity"] == name


def test_a_volume_follows_its_pod_to_another_node_of_the_zone(world: World) -> None:
    instances = [world.launch("move"), world.launch("move")]
    for instance in instances:
        until(lambda: world.ready_node(instance), "the node is ready")  # noqa: B023  # called at once
    world.api.post(CLAIMS, claim_body("data-keeper"))
    world.api.post(PODS, keeper("keeper", "move"))
    first = until(lambda: world.ready_pod("keeper"), "the pod is ready")
    old_node = first["spec"]["nodeName"]
    world.api.merge(f"/api/v1/nodes/{old_node}", {"spec": {"unschedulable": True}})

    world.evict("keeper")
    assert world.stop_seconds("keeper") >= 0.5
    world.api.post(PODS, keeper("keeper", "move"))
    second = until(lambda: world.ready_pod("keeper"), "the pod is ready again")

    new_node = second["spec"]["nodeName"]
    assert new_node != old_node
    bound = world.api.get(f"{CLAIMS}/data-keeper")["spec"]["volumeName"]
    volume = world.api.get(f"/api/v1/persistentvolumes/{bound}")
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    handle = volume["spec"]["csi"]["volumeHandle"]
    directory = world.place.path("volumes", handle)
    assert (directory / "stops").read_text().split() == [old_node]
    assert [line.split()[0] for line in (directory / "starts").read_text().splitlines()] == [
        old_node,
        new_node,
    ]
    described = world.aws("ec2").describe_volumes(VolumeIds=[handle])["Volumes"][0]
    assert (described["Size"], described["Iops"], described["Encrypted"]) == (3, 4000, True)
    attached = [a["InstanceId"] for a in described["Attachments"]]
    node = world.api.get(f"/api/v1/nodes/{new_node}")
    assert attached == [node["spec"]["providerID"].rpartition("/")[2]]
    assert world.facts("pod_evicted", "keeper")


@pytest.fixture(scope="module")
def busy(world: World) -> str:
    """Return the pool of one ready node for tests that need no more."""
    instance = world.launch("busy")
    until(lambda: world.ready_node(instance), "the node is ready")
    return "busy"


def test_a_process_that_ignores_sigterm_is_killed_when_its_grace_is_over(
    world: World, busy: str, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    body = pod_body("stubborn", busy, *python(STUBBORN), str(starts))
    body["spec"]["containers"][0]["readinessProbe"] = ready_once(str(starts))
    body["spec"]["terminationGracePeriodSeconds"] = 2
    world.api.post(PODS, body)
    until(lambda: world.ready_pod("stubborn"), "the pod is ready")
    world.api.delete(f"{PODS}/stubborn")
    # Its own grace, not the 30 s of a pod that asks for none.
    assert 2.0 <= world.stop_seconds("stubborn") < 30.0
    assert start_time_ticks(pids_in(starts)[0]) is None


def test_a_container_that_fails_its_liveness_is_restarted_and_says_so(
    world: World, busy: str, tmp_path: Path
) -> None:
    alive = tmp_path / "alive"
    alive.touch()
    probe = {
        "exec": {"command": ["test", "-e", str(alive)]},
        "periodSeconds": 1,
        "timeoutSeconds": 5,
        "failureThreshold": 2,
    }
    world.api.post(PODS, pod_body("sick", busy, "sleep", "600", livenessProbe=probe))
    until(lambda: world.ready_pod("sick"), "the pod is ready")
    alive.unlink()

    def restarts() -> int:
        (container,) = world.api.get(f"{PODS}/sick")["status"]["containerStatuses"]
        return int(container["restartCount"])

    until(restarts, "the container was restarted")
    alive.touch()
    (container,) = until(lambda: world.ready_pod("sick"), "ready again")["status"][
        "containerStatuses"
    ]
    assert container["lastState"]["terminated"]["exitCode"] == 128 + signal.SIGTERM
    # The journal hears of it after the API server does.
    (told, *_) = until(lambda: world.facts("container_restarted", "sick"), "it is told")
    assert "livenessProbe" in told["why"]


def test_a_pod_is_ready_only_once_its_readiness_gate_is_true(world: World, busy: str) -> None:
    body = pod_body("gated", busy, "sleep", "600")
    gate = "target-health.elbv2.k8s.aws/gated"
    body["spec"]["readinessGates"] = [{"conditionType": gate}]
    world.api.post(PODS, body)

    def containers_ready() -> bool:
        found = world.pod("gated")
        return found is not None and is_true(found, "ContainersReady")

    until(containers_ready, "the containers are ready")
    assert world.ready_pod("gated") is None
    condition = {"type": gate, "status": "True"}
    world.api.strategic(f"{PODS}/gated/status", {"status": {"conditions": [condition]}})
    until(lambda: world.ready_pod("gated"), "the pod is ready")


def test_a_pod_waits_for_a_config_map_and_then_sees_it(
    world: World, busy: str, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    body = pod_body("waiting", busy, "/bin/sh", "-c", f"echo $(GREETING) > {seen}; sleep 600")
    reference = {"name": "greetings", "key": "first"}
    body["spec"]["containers"][0]["env"] = [
        {"name": "GREETING", "valueFrom": {"configMapKeyRef": reference}}
    ]
    world.api.post(PODS, body)

    def reason() -> str:
        statuses = (world.pod("waiting") or {})["status"].get("containerStatuses") or [{}]
        return str(statuses[0].get("state", {}).get("waiting", {}).get("reason", ""))

    until(lambda: reason() == "CreateContainerConfigError", "the kubelet names the problem")
    world.api.post(
        f"{SPACE}/configmaps", {"metadata": {"name": "greetings"}, "data": {"first": "hello"}}
    )
    until(lambda: seen.exists() and seen.read_text() == "hello\n", "the container read it")


def test_an_image_the_twin_does_not_know_sleeps_and_the_journal_says_so(
    world: World, busy: str
) -> None:
    probe = {"httpGet": {"path": "/", "port": 1}, "periodSeconds": 1}
    body = pod_body("stranger", busy, readinessProbe=probe)
    body["spec"]["containers"][0]["image"] = "registry.example/side-car:v1"
    world.api.post(PODS, body)
    until(lambda: world.ready_pod("stranger"), "the pod is ready")
    assert "side-car:v1" in world.facts("image_stands_in", "stranger")[0]["note"]


def test_the_hosts_file_names_a_pod_before_it_is_ready_and_forgets_it_after(
    world: World, busy: str
) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1}
    body = pod_body("named", busy, "sleep", "600", readinessProbe=probe)
    body["spec"] |= {"hostname": "named", "subdomain": "demo-kafka-brokers"}
    world.api.post(PODS, body)
    name = f"named.demo-kafka-brokers.{NAMESPACE}.svc.cluster.local"
    hosts = world.place.path("hosts")
    line = until(
        lambda: next((x for x in hosts.read_text().splitlines() if x.endswith(" " + name)), ""),
        "the name is there",
    )
    pod = world.api.get(f"{PODS}/named")
    assert line == f"{world.place.socket_address(pod['status']['podIP'])} {name}"
    world.api.delete(f"{PODS}/named")
    until(lambda: name not in hosts.read_text(), "the name is gone")


def test_a_volume_that_ec2_has_attached_elsewhere_is_refused_until_it_is_free(world: World) -> None:
    instance = world.launch("refuse")
    until(lambda: world.ready_node(instance), "the node is ready")
    stranger = world.launch("stranger")
    world.api.post(CLAIMS, claim_body("data-late"))
    world.api.post(PODS, keeper("late", "refuse"))
    first = until(lambda: world.ready_pod("late"), "the pod is ready")
    bound = world.api.get(f"{CLAIMS}/data-late")["spec"]["volumeName"]
    handle = world.api.get(f"/api/v1/persistentvolumes/{bound}")["spec"]["csi"]["volumeHandle"]
    world.api.delete(f"{PODS}/late")
    attachments = "/apis/storage.k8s.io/v1/volumeattachments"

    def attachment() -> dict[str, Any] | None:
        found = world.api.get(attachments)["items"]
        return next(
            (a for a in found if a["spec"]["source"]["persistentVolumeName"] == bound), None
        )

    until(lambda: attachment() is None, "the volume is detached")
    ec2 = world.aws("ec2")
    ec2.attach_volume(VolumeId=handle, InstanceId=stranger, Device="/dev/xvdz")
    world.api.post(PODS, keeper("late", "refuse"))
    error = until(
        lambda: ((attachment() or {}).get("status") or {}).get("attachError"), "a refusal"
    )
    assert "VolumeInUse" in error["message"]
    ec2.detach_volume(VolumeId=handle, InstanceId=stranger)
    again = until(lambda: world.ready_pod("late"), "the pod is ready once the volume is free")
    assert again["metadata"]["uid"] != first["metadata"]["uid"]


def test_an_instance_that_is_terminated_takes_its_processes_and_its_node_with_it(
    world: World, tmp_path: Path
) -> None:
    instance = world.launch("doomed")
    name = until(lambda: world.ready_node(instance), "the node is ready")
    starts = tmp_path / "starts"
    body = pod_body("doomed", "doomed", *python(STUBBORN), str(starts))
    world.api.post(PODS, body)
    (pid,) = until(lambda: pids_in(starts), "the process runs")
    assert start_time_ticks(pid)
    world.aws("ec2").terminate_instances(InstanceIds=[instance])
    until(lambda: start_time_ticks(pid) is None, "the process is dead")
    until(lambda: world.find(f"/api/v1/nodes/{name}") is None, "the node is gone")


def test_an_instance_that_shuts_down_with_a_grace_lets_its_processes_finish(
    world: World, tmp_path: Path
) -> None:
    instance = world.launch("polite", shutdown_grace_seconds=20)
    until(lambda: world.ready_node(instance), "the node is ready")
    running, finished = tmp_path / "running", tmp_path / "finished"
    script = f"trap 'echo bye > {finished}; exit 0' TERM; touch {running}; sleep 600 & wait"
    world.api.post(PODS, pod_body("polite", "polite", "/bin/sh", "-c", script))
    until(running.exists, "the process runs")
    world.aws("ec2").terminate_instances(InstanceIds=[instance])
    until(finished.exists, "it had its say")


def helm_objects(world: World, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the NTH chart's objects as the real helm renders them."""
    file = world.place.path("nth-values.yaml")
    file.write_text(yaml.safe_dump(values))
    chart = chart_path("aws-node-termination-handler")
    rendered = subprocess.run(
        [
            *(str(tool_path("helm")), "template", NAMESPACE, str(chart)),
            *("--namespace", "kube-system", "--kube-version", "1.35.0", "--values", str(file)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return [item for item in yaml.safe_load_all(rendered.stdout) if item]


API_PATHS = {
    "ServiceAccount": "/api/v1/namespaces/kube-system/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Deployment": "/apis/apps/v1/namespaces/kube-system/deployments",
}


def warning_of(instance: str) -> dict[str, Any]:
    """Return EC2's two-minute warning as EventBridge delivers it."""
    return {
        "version": "0",
        "id": "1e5527d7-bb36-4607-3370-4164db56a40e",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": "aws.ec2",
        "account": environment.ACCOUNT,
        "time": "2026-11-20T00:00:00Z",
        "region": environment.REGION,
        "resources": [],
        "detail": {"instance-id": instance, "instance-action": "terminate"},
    }


@pytest.fixture
def nths_account(world: World) -> Iterator[str]:
    """The service account of its chart, whose pods may do what NTH does."""
    account = f"{NAMESPACE}-aws-node-termination-handler"
    actions = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "ec2:DescribeInstances")
    with role_for(world.twin, CLUSTER, "kube-system", account, *actions):
        yield account


@pytest.mark.long
def test_the_real_nth_runs_from_its_charts_pod_and_drains_a_node(
    world: World, busy: str, nths_account: str
) -> None:
    instance = world.launch("victim")
    victim = until(lambda: world.ready_node(instance), "the node is ready")
    sqs = world.aws("sqs")
    queue = sqs.create_queue(QueueName=NAMESPACE)["QueueUrl"]
    values = {
        "enableSqsTerminationDraining": True,
        "queueURL": queue,
        "awsRegion": environment.REGION,
        "checkTagBeforeDraining": False,
        "serviceAccount": {"name": nths_account},
        "nodeSelector": {"stillwater.dev/pool": busy},
        "tolerations": [{"operator": "Exists"}],
    }
    objects = helm_objects(world, values)
    for item in objects:
        world.api.post(API_PATHS[item["kind"]], item)
    pods = "/api/v1/namespaces/kube-system/pods"

    def nths_pods() -> list[dict[str, Any]]:
        found = world.api.get(pods, labelSelector=f"app.kubernetes.io/instance={NAMESPACE}")
        return list(found["items"])

    def nth() -> dict[str, Any] | None:
        return next((p for p in nths_pods() if is_true(p, "Ready")), None)

    try:
        name = until(nth, "NTH is ready")["metadata"]["name"]
        world.api.post(PODS, pod_body("tenant", "victim", "sleep", "600"))
        until(lambda: world.ready_pod("tenant"), "the tenant is ready")
        sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(warning_of(instance)))
        until(lambda: world.pod("tenant") is None, "NTH has evicted the tenant")
        assert world.api.get(f"/api/v1/nodes/{victim}")["spec"]["unschedulable"]
        # The chart's liveness probe asks a port that was moved, every five seconds.
        first = world.api.get(f"{pods}/{name}")["status"]["containerStatuses"][0]
        assert first["restartCount"] == 0
        file = f"kube-system_{name}_aws-node-termination-handler.log"
        assert "Starting to serve handler /healthz" in (
            world.place.path("logs", "pods", file).read_text()
        )
    finally:
        for item in objects:
            world.api.delete(f"{API_PATHS[item['kind']]}/{item['metadata']['name']}")
        # Its role outlives it, or it would be refused to the end of its grace.
        until(lambda: not nths_pods(), "NTH has stopped")
        sqs.delete_queue(QueueUrl=queue)
