"""Nodes, pods and volumes that a test makes for itself on a running twin, and takes away again."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.ground.naming import EBS_CSI_DRIVER
from local import environment
from local.journal import read as read_journal
from local.kubernetes.client import Api, find, has_condition
from local.kubernetes.images import PROCESS_IMAGE
from local.place import Place
from local.twin import Twin
from tests.integration.administrator import namespace
from tests.integration.waiting import until

CLUSTER = "kubelet-test"
NAMESPACE = "kubelet-test"
SPACE = f"/api/v1/namespaces/{NAMESPACE}"
PODS = f"{SPACE}/pods"
STORAGE_CLASS = "gp3-kubelet-test"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
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
# Notes each start in the file it is given, and answers no SIGTERM.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "a").write(str(os.getpid()) + "\\n")
time.sleep(600)
"""


@dataclass
class World:
    """A running twin, and on it a namespace, a storage class and instances of these tests' own."""

    twin: Twin
    subnet: str
    image: str
    launched: list[str] = field(default_factory=list)

    @property
    def place(self) -> Place:
        return self.twin.place

    @property
    def api(self) -> Api:
        return self.twin.api

    def aws(self, service: str) -> Any:
        return self.twin.aws(service)

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
        self.launched.append(str(answer["Instances"][0]["InstanceId"]))
        return self.launched[-1]

    def node_of(self, instance_id: str) -> dict[str, Any] | None:
        nodes = self.api.get("/api/v1/nodes")["items"]
        ours = (n for n in nodes if n["spec"].get("providerID", "").endswith(instance_id))
        return next(ours, None)

    def ready_node(self, instance_id: str) -> str | None:
        """Return the name of an instance's node once it is ready and takes volumes."""
        node = self.node_of(instance_id)
        if node is None or not has_condition(node):
            return None
        name = str(node["metadata"]["name"])
        return name if find(self.api, f"/apis/storage.k8s.io/v1/csinodes/{name}") else None

    def pod(self, name: str) -> dict[str, Any] | None:
        return find(self.api, f"{PODS}/{name}")

    def ready_pod(self, name: str) -> dict[str, Any] | None:
        found = self.pod(name)
        return found if found and has_condition(found) else None

    def facts(self, event: str, pod: str) -> list[dict[str, Any]]:
        return [f for f in read_journal(self.place) if f["event"] == event and f.get("pod") == pod]

    def stop_seconds(self, pod: str) -> float:
        """Wait until a pod has gone, and return how long it took to stop.

        Its object goes first, and the journal is written a moment later.
        """
        until(lambda: self.pod(pod) is None, "the pod has gone")
        until(lambda: self.facts("pod_gone", pod), "the journal knows it")
        return float(self.facts("pod_gone", pod)[0]["stop_seconds"])


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


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def make_subnets(twin: Twin) -> Mapping[str, str]:
    """Make a subnet per zone letter, in the half of a twin's addresses the stacks do not use."""
    ec2, number = twin.aws("ec2"), twin.place.number
    vpc = ec2.create_vpc(CidrBlock=f"10.{number}.128.0/17")["Vpc"]["VpcId"]
    # With a way out, as nodes need one.
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    mine = [{"Name": "vpc-id", "Values": [vpc]}]
    table = ec2.describe_route_tables(Filters=mine)["RouteTables"][0]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    return {
        letter: ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=f"10.{number}.{128 + 16 * place}.0/20",
            AvailabilityZone=f"{environment.REGION}{letter}",
        )["Subnet"]["SubnetId"]
        for place, letter in enumerate("abc")
    }


def make_volumes(twin: Twin, names: Iterable[str]) -> dict[str, str]:
    """Make a volume for each of some names; return what EC2 calls them."""
    ec2, zone = twin.aws("ec2"), f"{environment.REGION}a"
    made = {"AvailabilityZone": zone, "Size": 500, "VolumeType": "gp3"}
    return {name: str(ec2.create_volume(**made)["VolumeId"]) for name in names}


def make_target_group(twin: Twin, subnet: str, attributes: Mapping[str, str]) -> str:
    """Make a target group of brokers in a subnet's VPC, behind a balancer; return its ARN."""
    (found,) = twin.aws("ec2").describe_subnets(SubnetIds=[subnet])["Subnets"]
    balancing = twin.aws("elbv2")
    made = balancing.create_target_group(
        Name="boot", Protocol="TCP", Port=9094, VpcId=found["VpcId"], TargetType="ip"
    )
    arn = str(made["TargetGroups"][0]["TargetGroupArn"])
    said = [{"Key": key, "Value": value} for key, value in attributes.items()]
    balancing.modify_target_group_attributes(TargetGroupArn=arn, Attributes=said)
    balancer = balancing.create_load_balancer(Name="boot", Type="network", Subnets=[subnet])
    balancing.create_listener(
        LoadBalancerArn=balancer["LoadBalancers"][0]["LoadBalancerArn"],
        Protocol="TCP",
        Port=9094,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": arn}],
    )
    return arn


@contextlib.contextmanager
def world_on(twin: Twin, subnet: str) -> Iterator[World]:
    """Make room for a test's own nodes and pods on a twin; clear it when the block ends."""
    image = twin.aws("ec2").describe_images()["Images"][0]["ImageId"]
    world = World(twin, subnet, image)
    storage = {
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": EBS_CSI_DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Retain",
        "parameters": {"type": "gp3"},
    }
    world.api.post(STORAGE_CLASSES, storage)
    try:
        with namespace(twin.api, NAMESPACE):
            yield world
    finally:
        _clear(world)


def _clear(world: World) -> None:
    if world.launched:
        world.aws("ec2").terminate_instances(InstanceIds=world.launched)
    volumes = "/api/v1/persistentvolumes"
    for volume in world.api.get(volumes)["items"]:
        if volume["spec"].get("storageClassName") == STORAGE_CLASS:
            world.api.delete(f"{volumes}/{volume['metadata']['name']}")
    world.api.delete(f"{STORAGE_CLASSES}/{STORAGE_CLASS}")
    until(lambda: not any(map(world.node_of, world.launched)), "the nodes are gone")
