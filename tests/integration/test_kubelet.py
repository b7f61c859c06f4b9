"""Nodes, pods and volumes on the real control plane: the twin's kubelet and CSI controller."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import boto3
import pytest
import yaml

from core.naming import EBS_CSI_DRIVER, ZONE_LABEL
from local import environment
from local.journal import read as read_journal
from local.kubernetes import control_plane
from local.kubernetes.client import Api, ApiError
from local.kubernetes.images import PROCESS_IMAGE
from local.place import Place, claimed
from local.processes import Child, Processes, start_time_ticks
from local.tools import build, chart_path, tool_path

T = TypeVar("T")
pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).resolve().parents[2]
CLUSTER = "kubelet-test"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
ZONE = "us-east-1a"
USER_DATA = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: kubelet-test}
  kubelet:
    config:
      shutdownGracePeriod: GRACEs
    flags:
      - --node-labels=stillwater.dev/pool=POOL
      - --register-with-taints=dedicated=POOL:NoSchedule
"""
# Writes its address and every SIGTERM into the volume, and takes half a second to stop.
KEEPER = """
import json, os, signal, socket, sys, time
data = json.loads(os.environ["STILLWATER_MOUNTS"])["/data"]
def stop(*_):
    time.sleep(0.5)
    open(data + "/stops", "a").write(os.environ["NODE"] + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
open(data + "/starts", "a").write(os.environ["NODE"] + " " + os.environ["POD_IP"] + "\\n")
signal.pause()
"""

KEEPER_IS_READY = """
import json, os
data = json.loads(os.environ["STILLWATER_MOUNTS"])["/data"]
assert os.environ["POD_IP"] in open(data + "/starts").read()
"""
# Notes each start in the file it is given, and answers no SIGTERM.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "a").write(str(os.getpid()) + "\\n")
time.sleep(600)
"""


@dataclass(frozen=True)
class World:
    """A control plane, an EC2 with one subnet, the kubelet and the CSI controller."""

    place: Place
    processes: Processes
    api: Api
    subnet: str
    image: str

    def aws(self, service: str) -> Any:
        variables = environment.with_credentials(self.place)
        return boto3.client(
            service,  # type: ignore[call-overload]  # chosen at run time, so no stub fits
            endpoint_url=self.place.url("moto"),
            region_name=environment.REGION,
            aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        )

    def program(self, name: str) -> Child:
        """Start one of the programs under test."""
        return self.processes.start(
            name,
            [sys.executable, "-m", f"local.kubernetes.{name}"],
            environment=environment.with_credentials(self.place),
            directory=REPOSITORY,
        )

    def launch(self, pool: str, *, shutdown_grace_seconds: int = 0) -> str:
        """Launch one instance of the cluster and return its id; its pool is label and taint."""
        user_data = USER_DATA.replace("POOL", pool).replace("GRACE", str(shutdown_grace_seconds))
        answer = self.aws("ec2").run_instances(
            ImageId=self.image,
            MinCount=1,
            MaxCount=1,
            InstanceType="m7g.large",
            SubnetId=self.subnet,
            UserData=user_data,
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [{"Key": f"kubernetes.io/cluster/{CLUSTER}", "Value": "owned"}],
                }
            ],
        )
        return str(answer["Instances"][0]["InstanceId"])

    def node_of(self, instance_id: str) -> dict[str, Any] | None:
        nodes = self.api.get("/api/v1/nodes")["items"]
        return next((n for n in nodes if n["spec"]["providerID"].endswith(instance_id)), None)

    def ready_node(self, instance_id: str) -> str | None:
        """Return the name of an instance's node once it is ready and takes volumes."""
        node = self.node_of(instance_id)
        if node is None or not is_true(node, "Ready"):
            return None
        name = str(node["metadata"]["name"])
        return name if self.find(f"/apis/storage.k8s.io/v1/csinodes/{name}") else None

    def find(self, path: str) -> dict[str, Any] | None:
        try:
            return self.api.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def pod(self, name: str) -> dict[str, Any] | None:
        return self.find(f"{PODS}/{name}")

    def ready_pod(self, name: str) -> dict[str, Any] | None:
        found = self.pod(name)
        return found if found and is_true(found, "Ready") else None

    def evict(self, name: str) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": "default"},
        }
        self.api.post(f"{PODS}/{name}/eviction", body)

    def facts(self, event: str, pod: str) -> list[dict[str, Any]]:
        return [f for f in read_journal(self.place) if f["event"] == event and f.get("pod") == pod]


def is_true(item: dict[str, Any], condition: str) -> bool:
    return any(
        c["type"] == condition and c["status"] == "True"
        for c in item["status"].get("conditions") or []
    )


def until(look: Callable[[], T | None], what: str, seconds: float = 30.0) -> T:
    """Return the first truthy thing seen; fail with what was awaited after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s, saw {seen!r}"
        time.sleep(0.05)


def pod_body(name: str, pool: str, *command: str, **container: Any) -> dict[str, Any]:
    """Return a pod of the pool's nodes whose one container runs a command of this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "nodeSelector": {"stillwater.dev/pool": pool},
            "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 20,
            "containers": [
                {"name": "main", "image": PROCESS_IMAGE, "command": list(command), **container}
            ],
        },
    }


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def ready_once(path: str) -> dict[str, Any]:
    """Return a readiness probe that waits for a file of the container's own making."""
    return {"exec": {"command": ["test", "-e", path]}, "periodSeconds": 1, "timeoutSeconds": 5}


def keeper(name: str, pool: str) -> dict[str, Any]:
    """Return a pod that keeps a file on a claimed volume."""
    body = pod_body(
        name,
        pool,
        *python(KEEPER),
        env=[
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
        readinessProbe={
            "exec": {"command": list(python(KEEPER_IS_READY))},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
        },
    )
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
    body["spec"]["volumes"] = [claim]
    return body


def claim_body(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gp3-test",
            "resources": {"requests": {"storage": "3Gi"}},
        },
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    build.build_all()
    programs = {name: tool_path(name) for name in build.BINARIES}
    with claimed() as claim:
        place = Place(claim.number, tmp_path_factory.mktemp("kubelet"))
        place.save()
        place.path("bin").mkdir()
        for name, path in programs.items():
            place.path("bin", name).symlink_to(path)
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            yield _started(place, processes, programs)
        finally:
            processes.close()


def _started(place: Place, processes: Processes, programs: dict[str, Path]) -> World:
    aws = processes.start(
        "aws",
        [sys.executable, "-m", "local.aws.server"],
        environment=environment.base(place),
        directory=REPOSITORY,
    )
    running = control_plane.start(processes, place, programs)
    processes.wait_until(
        aws, environment.credentials_file(place).exists, within_seconds=30, what="it has a user"
    )
    world = World(place, processes, running.api, subnet="", image="")
    ec2 = world.aws("ec2")
    vpc = ec2.create_vpc(CidrBlock=place.vpc_cidr)["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(
        VpcId=vpc, CidrBlock=f"10.{place.number}.64.0/18", AvailabilityZone=ZONE
    )["Subnet"]["SubnetId"]
    image = ec2.describe_images()["Images"][0]["ImageId"]
    world.api.post(
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "metadata": {"name": "gp3-test"},
            "provisioner": EBS_CSI_DRIVER,
            "volumeBindingMode": "WaitForFirstConsumer",
            "reclaimPolicy": "Retain",
            "parameters": {"type": "gp3", "iops": "4000", "encrypted": "true"},
        },
    )
    world = World(place, processes, running.api, subnet, image)
    world.program("kubelet")
    world.program("csi")
    return world


def test_a_running_instance_becomes_a_ready_node_with_what_its_user_data_asks(world: World) -> None:
    instance = world.launch("join")
    began = time.monotonic()
    name = until(lambda: world.ready_node(instance), "the node is ready")
    took_seconds = time.monotonic() - began
    node = world.api.get(f"/api/v1/nodes/{name}")
    assert node["metadata"]["labels"]["stillwater.dev/pool"] == "join"
    assert node["metadata"]["labels"][ZONE_LABEL] == ZONE
    assert node["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    assert {"key": "dedicated", "value": "join", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["status"]["allocatable"]["cpu"] == "1930m"
    lease = world.api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")
    assert lease["spec"]["holderIdentity"] == name
    # Two seconds of it are EC2's; a busy machine gets as many again.
    assert took_seconds < 15


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
    until(lambda: world.pod("keeper") is None, "the pod has gone")
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
    assert world.facts("pod_gone", "keeper")[0]["stop_seconds"] >= 0.5


@pytest.fixture(scope="module")
def busy(world: World) -> str:
    """Return the pool of one ready node for tests that need no more."""
    instance = world.launch("busy")
    until(lambda: world.ready_node(instance), "the node is ready")
    return "busy"


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


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
    until(lambda: world.pod("stubborn") is None, "the pod has gone")
    assert start_time_ticks(pids_in(starts)[0]) is None
    assert 2.0 <= world.facts("pod_gone", "stubborn")[0]["stop_seconds"] < 10.0


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
    assert "livenessProbe" in world.facts("container_restarted", "sick")[0]["why"]


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
        "/api/v1/namespaces/default/configmaps",
        {"metadata": {"name": "greetings"}, "data": {"first": "hello"}},
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
    name = "named.demo-kafka-brokers.default.svc.cluster.local"
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
    until(lambda: start_time_ticks(pid) is None, "the process is dead", seconds=5)
    until(lambda: world.find(f"/api/v1/nodes/{name}") is None, "the node is gone", seconds=8)


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
    until(finished.exists, "it had its say", seconds=5)


def test_a_kubelet_that_comes_back_starts_its_pods_again_on_the_same_address(
    world: World, busy: str, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    body = pod_body("phoenix", busy, *python(STUBBORN), str(starts))
    body["spec"]["containers"][0]["readinessProbe"] = ready_once(str(starts))
    world.api.post(PODS, body)
    before = until(lambda: world.ready_pod("phoenix"), "the pod is ready")
    (kubelet,) = [c for c in world.processes.children if c.name == "kubelet" and c.alive]

    began = time.monotonic()
    world.processes.stop(kubelet, grace_seconds=20)
    assert time.monotonic() - began < 8
    assert start_time_ticks(pids_in(starts)[0]) is None
    crashed = world.program("kubelet")
    until(lambda: len(pids_in(starts)) == 2, "it runs again")
    os.killpg(crashed.popen.pid, signal.SIGKILL)
    crashed.popen.wait()
    assert start_time_ticks(pids_in(starts)[1]), "a crash leaves the process to the next kubelet"
    world.program("kubelet")
    until(lambda: len(pids_in(starts)) == 3, "it runs a third time")
    assert start_time_ticks(pids_in(starts)[1]) is None

    def restarted() -> dict[str, Any] | None:
        found = world.ready_pod("phoenix")
        return found if found and found["status"]["containerStatuses"][0]["restartCount"] else None

    after = until(restarted, "the pod is ready")
    assert after["status"]["podIP"] == before["status"]["podIP"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def helm_objects(world: World, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the NTH chart's objects as the real helm renders them."""
    file = world.place.path("nth-values.yaml")
    file.write_text(yaml.safe_dump(values))
    chart = chart_path("aws-node-termination-handler")
    rendered = subprocess.run(
        [
            *(str(tool_path("helm")), "template", "nth", str(chart), "--namespace", "kube-system"),
            *("--kube-version", "1.35.0", "--values", str(file)),
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


def test_the_real_nth_runs_from_its_charts_pod_and_drains_a_node(world: World, busy: str) -> None:
    instance = world.launch("victim")
    victim = until(lambda: world.ready_node(instance), "the node is ready")
    sqs = world.aws("sqs")
    queue = sqs.create_queue(QueueName="nth")["QueueUrl"]
    values = {
        "enableSqsTerminationDraining": True,
        "queueURL": queue,
        "awsRegion": environment.REGION,
        "checkTagBeforeDraining": False,
        "nodeSelector": {"stillwater.dev/pool": busy},
        "tolerations": [{"operator": "Exists"}],
    }
    for item in helm_objects(world, values):
        world.api.post(API_PATHS[item["kind"]], item)
    pods = "/api/v1/namespaces/kube-system/pods"

    def nth() -> dict[str, Any] | None:
        found = world.api.get(pods, labelSelector="k8s-app=aws-node-termination-handler")["items"]
        return next((p for p in found if is_true(p, "Ready")), None)

    name = until(nth, "NTH is ready")["metadata"]["name"]
    world.api.post(PODS, pod_body("tenant", "victim", "sleep", "600"))
    until(lambda: world.ready_pod("tenant"), "the tenant is ready")
    warning = {
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
    sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(warning))
    until(lambda: world.pod("tenant") is None, "NTH has evicted the tenant", seconds=40)
    assert world.api.get(f"/api/v1/nodes/{victim}")["spec"]["unschedulable"]
    # The chart's liveness probe asks a port that was moved, every five seconds.
    first = world.api.get(f"{pods}/{name}")["status"]["containerStatuses"][0]
    assert first["restartCount"] == 0
    log = world.place.path("logs", "pods", f"kube-system_{name}_aws-node-termination-handler.log")
    assert "Starting to serve handler /healthz" in log.read_text()
    world.api.delete(
        "/apis/apps/v1/namespaces/kube-system/deployments/nth-aws-node-termination-handler"
    )
