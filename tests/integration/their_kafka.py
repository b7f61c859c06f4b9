"""A real Kafka that nobody of ours made, by plain API calls: other names, groups, labels, ways in.

Three combined nodes of one KafkaNodePool, an Auto Scaling group per zone, a load balancer whose
targets follow the pods, certificates for everybody, and a shop's pods on the same machines.
"""

import contextlib
import json
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from core.availability.wholeness import MOVING_LEADERS, READING, THROTTLING, rights_for
from core.ground.naming import EBS_CSI_DRIVER
from local import environment
from local.demo import clients
from local.kubernetes.client import ApiError, find, has_condition
from local.kubernetes.identity import DRIVER_ACCOUNT, DRIVER_NAMESPACE
from local.kubernetes.strimzi_objects import STRIMZI
from local.store import ResourceStore
from local.twin import Twin
from tests.integration.nodes import make_subnets
from tests.integration.waiting import until

EKS, NAMESPACE, KAFKA, POOL = "acme-prod", "streams", "ledger", "mains"
NODE_LABEL = "acme.io/nodes"
GROUPS = {letter: f"acme-kafka-{letter}" for letter in "abc"}
CLASS = "acme-ssd"
USER = "toolkit"
FIRST_PORT, BOOTSTRAP_PORT, POD_PORT = 19_100, 19_099, 9095
NODES = (0, 1, 2)
START_SECONDS = 240
NODE_CONFIG = f"""\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {{name: {EKS}}}
  kubelet:
    config: {{shutdownGracePeriod: 30s}}
    flags: [--node-labels={NODE_LABEL}=kafka]
"""
SPACE = f"/api/v1/namespaces/{NAMESPACE}"


class TheirKafka:
    """Their cluster on a twin."""

    def __init__(self, twin: Twin) -> None:
        self.twin, self.api, self.scaling = twin, twin.api, twin.aws("autoscaling")
        self.subnets = make_subnets(twin)
        found = twin.aws("ec2").describe_subnets(SubnetIds=[self.subnets["a"]])
        self.vpc = str(found["Subnets"][0]["VpcId"])
        self.security_group = str(
            twin.aws("ec2").create_security_group(
                GroupName="acme", Description="theirs", VpcId=self.vpc
            )["GroupId"]
        )
        self._machines()
        self._driver()
        self._balancer()
        self._objects()

    @property
    def bootstrap(self) -> str:
        return f"{self.twin.place.nlb_host}:{BOOTSTRAP_PORT}"

    def _machines(self) -> None:
        role = f"arn:aws:iam::{environment.ACCOUNT}:role/acme"
        subnets = {"subnetIds": list(self.subnets.values())}
        self.twin.aws("eks").create_cluster(name=EKS, roleArn=role, resourcesVpcConfig=subnets)
        ec2 = self.twin.aws("ec2")
        data = {
            "ImageId": ec2.describe_images()["Images"][0]["ImageId"],
            "InstanceType": "m7g.large",
            "UserData": b64encode(NODE_CONFIG.encode()).decode(),
        }
        ec2.create_launch_template(LaunchTemplateName="acme", LaunchTemplateData=data)
        owned = {"Key": f"kubernetes.io/cluster/{EKS}", "Value": "owned", "PropagateAtLaunch": True}
        for letter, name in GROUPS.items():
            self.scaling.create_auto_scaling_group(
                AutoScalingGroupName=name,
                LaunchTemplate={"LaunchTemplateName": "acme"},
                MinSize=1,
                MaxSize=2,
                DesiredCapacity=1,
                VPCZoneIdentifier=self.subnets[letter],
                InstanceLifecyclePolicy={"RetentionTriggers": {"TerminateHookAbandon": "retain"}},
                Tags=[owned],
            )

    def _driver(self) -> None:
        """Give EBS's driver a role, as its add-on has one."""
        iam, name = self.twin.aws("iam"), "acme-ebs"
        trusted = {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
        trust = json.dumps({"Version": "2012-10-17", "Statement": [trusted]})
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        policy = "arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicyV2"
        iam.attach_role_policy(RoleName=name, PolicyArn=policy)
        association = {
            "clusterName": EKS,
            "namespace": DRIVER_NAMESPACE,
            "serviceAccount": DRIVER_ACCOUNT,
            "roleArn": role,
        }
        # moto's EKS has no associations; the twin keeps them beside it.
        kind = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
        ResourceStore(self.twin.place.path("store")).put(kind, "a-acme", association)

    def _balancer(self) -> None:
        """Make a load balancer with a way to each broker, and one to any of them."""
        elb = self.twin.aws("elbv2")
        balancer = elb.create_load_balancer(
            Name="acme", Type="network", Scheme="internal", Subnets=list(self.subnets.values())
        )["LoadBalancers"][0]["LoadBalancerArn"]
        ports = {None: BOOTSTRAP_PORT, **{node: FIRST_PORT + node for node in NODES}}
        self._targets: dict[int | None, str] = {}
        for node, port in ports.items():
            group = elb.create_target_group(
                Name=f"acme-{port}",
                Protocol="TCP",
                Port=POD_PORT,
                VpcId=self.vpc,
                TargetType="ip",
                HealthCheckProtocol="TCP",
                HealthCheckIntervalSeconds=5,
                HealthCheckTimeoutSeconds=2,
                HealthyThresholdCount=2,
                UnhealthyThresholdCount=2,
            )["TargetGroups"][0]["TargetGroupArn"]
            elb.create_listener(
                LoadBalancerArn=balancer,
                Protocol="TCP",
                Port=port,
                DefaultActions=[{"Type": "forward", "TargetGroupArn": group}],
            )
            self._targets[node] = str(group)

    def _objects(self) -> None:
        api = self.api
        api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        until(lambda: find(api, f"{SPACE}/serviceaccounts/default"), "the namespace is complete")
        until(lambda: find(api, f"{STRIMZI}/kafkausers"), "Strimzi's kinds are served")
        storage = {
            "metadata": {"name": CLASS},
            "provisioner": EBS_CSI_DRIVER,
            "volumeBindingMode": "WaitForFirstConsumer",
            "reclaimPolicy": "Retain",
            "allowVolumeExpansion": True,
            "parameters": {"type": "gp3", "encrypted": "true"},
        }
        api.post("/apis/storage.k8s.io/v1/storageclasses", storage)
        api.post(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", shop())
        self._make("KafkaNodePool", POOL, pool())
        self._make("Kafka", KAFKA, kafka(self.twin.place.nlb_host))
        for user in users():
            self._make("KafkaUser", str(user["name"]), user["spec"])

    def _make(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        marked = {} if kind == "Kafka" else {"strimzi.io/cluster": KAFKA}
        path = f"{STRIMZI}/namespaces/{NAMESPACE}/{kind.lower()}s"
        body = {
            "apiVersion": STRIMZI.removeprefix("/apis/"),
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": marked},
            "spec": spec,
        }
        self.api.post(path, body)

    # What is read of it

    def pods(self) -> dict[int, dict[str, Any]]:
        """Return Kafka's pods by node id."""
        listed = self.api.get(f"{SPACE}/pods", labelSelector=f"strimzi.io/cluster={KAFKA}")
        return {int(p["metadata"]["name"].rpartition("-")[2]): p for p in listed["items"]}

    def instance_of(self, node_id: int) -> str:
        node = self.api.get(f"/api/v1/nodes/{self.pods()[node_id]['spec']['nodeName']}")
        return str(node["spec"]["providerID"]).rpartition("/")[2]

    def beside(self, node_id: int) -> list[str]:
        """Return the shop's pods on a Kafka pod's node."""
        listed = self.api.get(f"{SPACE}/pods", labelSelector="app=shop")["items"]
        node = self.pods()[node_id]["spec"]["nodeName"]
        return [str(p["metadata"]["name"]) for p in listed if p["spec"].get("nodeName") == node]

    def ready(self) -> bool:
        """Say whether every pod of Kafka is Ready, and every user has its Secret."""
        pods = self.pods()
        return (
            set(pods) == set(NODES)
            and all(has_condition(pod) for pod in pods.values())
            and all(find(self.api, f"{SPACE}/secrets/{user['name']}") for user in users())
        )

    def group(self, name: str) -> dict[str, Any]:
        found = self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        return dict(found["AutoScalingGroups"][0])

    # What follows the pods

    @contextlib.contextmanager
    def balanced(self) -> Iterator[None]:
        """Register each pod's address with the load balancer for the block, as theirs does."""
        stop = threading.Event()
        thread = threading.Thread(target=self._follow, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(10)

    def _follow(self, stop: threading.Event) -> None:
        registered: dict[int, str] = {}
        elb = self.twin.aws("elbv2")
        while not stop.wait(0.3):
            with contextlib.suppress(ApiError):
                now = {
                    node: str(pod["status"]["podIP"])
                    for node, pod in self.pods().items()
                    if pod["status"].get("podIP") and "deletionTimestamp" not in pod["metadata"]
                }
                for node in registered.keys() - now.keys():
                    self._register(elb.deregister_targets, node, registered.pop(node))
                for node, address in now.items():
                    if registered.get(node) not in {None, address}:
                        self._register(elb.deregister_targets, node, registered.pop(node))
                    if node not in registered:
                        self._register(elb.register_targets, node, address)
                        registered[node] = address

    def _register(self, call: Any, node: int, address: str) -> None:
        for group in (self._targets[node], self._targets[None]):
            call(TargetGroupArn=group, Targets=[{"Id": address, "Port": POD_PORT}])


def shop() -> dict[str, Any]:
    """Return a web shop's Deployment: pods that run where Kafka's do."""
    marked = {"app": "shop"}
    return {
        "metadata": {"name": "shop"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": marked},
            "template": {
                "metadata": {"labels": marked},
                "spec": {
                    "containers": [{"name": "web", "image": "nginx:1.27"}],
                    "topologySpreadConstraints": [
                        {
                            "maxSkew": 1,
                            "topologyKey": "topology.kubernetes.io/zone",
                            "whenUnsatisfiable": "DoNotSchedule",
                            "labelSelector": {"matchLabels": marked},
                        }
                    ],
                },
            },
        },
    }


def pool() -> dict[str, Any]:
    """Return the spec of three combined nodes, each in a zone of its own."""
    apart = [
        {
            "labelSelector": {"matchLabels": {"strimzi.io/cluster": KAFKA}},
            "topologyKey": "topology.kubernetes.io/zone",
        }
    ]
    terms = [{"matchExpressions": [{"key": NODE_LABEL, "operator": "In", "values": ["kafka"]}]}]
    return {
        "replicas": len(NODES),
        "roles": ["controller", "broker"],
        "storage": {
            "type": "jbod",
            "volumes": [{"id": 0, "type": "persistent-claim", "size": "20Gi", "class": CLASS}],
        },
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
        "template": {
            "pod": {
                "terminationGracePeriodSeconds": 330,
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart},
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": terms
                        }
                    },
                },
            }
        },
    }


def kafka(host: str) -> dict[str, Any]:
    """Return the spec of a Kafka with one way in, which asks for a certificate."""
    listener = {
        "name": "outside",
        "port": POD_PORT,
        "type": "cluster-ip",
        "tls": True,
        "authentication": {"type": "tls"},
        "configuration": {
            "bootstrap": {"alternativeNames": [host]},
            "advertisedHostTemplate": host,
            "advertisedPortTemplate": f"{FIRST_PORT} + {{nodeId}}",
        },
    }
    config = {
        "default.replication.factor": 3,
        "min.insync.replicas": 2,
        "offsets.topic.replication.factor": 3,
        "transaction.state.log.replication.factor": 3,
        "transaction.state.log.min.isr": 2,
    }
    return {
        "kafka": {
            "version": "4.2.0",
            "listeners": [listener],
            "authorization": {"type": "simple"},
            "rack": {"topologyKey": "topology.kubernetes.io/zone"},
            "config": config,
        },
        "entityOperator": {"topicOperator": {}, "userOperator": {}},
    }


def users() -> list[dict[str, Any]]:
    """Return the load's users, and the functions' own with the rights that are documented."""
    named = {
        each["name"]: [
            (acl["resource"], acl.get("name"), acl["operations"]) for acl in each["acls"]
        ]
        for each in clients.users()
    }
    named[USER] = [
        (right.resource.value, right.name, [right.operation.value])
        for right in rights_for(READING | MOVING_LEADERS | THROTTLING)
    ]
    return [
        {
            "name": name,
            "spec": {
                "authentication": {"type": "tls"},
                "authorization": {"type": "simple", "acls": [_acl(*each) for each in acls]},
            },
        }
        for name, acls in named.items()
    ]


def _acl(kind: str, name: str | None, operations: list[str]) -> dict[str, Any]:
    resource: dict[str, Any] = {"type": kind}
    if kind != "cluster":
        resource |= {"name": name, "patternType": "literal"}
    return {"resource": resource, "operations": operations}
