"""A cluster that exists, through the real engine: watched, gated, and left again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.engine.layers import Layers
from core.ground.naming import OPERATIONS
from core.incidents.actions import WATCHED
from handlers.store.ledger import Ledger
from local import environment
from local import twin as twins
from local.aws.lambdas import TENDING
from local.journal import read as read_journal
from local.kubernetes.client import ApiError, find
from local.pulumi import aws_eks
from local.pulumi.bin import twin_project
from local.twin import Twin
from tests.integration.conftest import LOGS
from tests.integration.nodes import make_subnets
from tests.integration.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]
EKS, GROUP, KAFKA, NAMESPACE = "theirs", "their-kafka-a", "orders", "their-kafka"
PREFIX = f"{EKS}-{KAFKA}"
GATE = f"{PREFIX}-gate"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
BROKER = f"{KAFKA}-broker-0"
HOOK = {
    "LifecycleHookName": "their-drain",
    "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
    "DefaultResult": "CONTINUE",
    "HeartbeatTimeout": 300,
}
READING = ("Describe", "Get", "List", "Query", "Receive")
# Of these the functions may write what is their own; tests/unit/infra/test_adopted.py says so.
OWN_SERVICES = {"dynamodb", "sqs", "logs", "s3"}


class Theirs:
    """An EKS cluster, a group with a hook of its own, a node and a broker's pod."""

    def __init__(self, twin: Twin) -> None:
        self.twin, self.scaling = twin, twin.aws("autoscaling")
        self.subnets = make_subnets(twin)
        ec2 = twin.aws("ec2")
        vpc = ec2.describe_subnets(SubnetIds=[self.subnets["a"]])["Subnets"][0]["VpcId"]
        self.security_group = ec2.create_security_group(
            GroupName="theirs", Description="theirs", VpcId=vpc
        )["GroupId"]
        twin.aws("eks").create_cluster(
            name=EKS,
            roleArn=f"arn:aws:iam::{environment.ACCOUNT}:role/theirs",
            resourcesVpcConfig={"subnetIds": list(self.subnets.values())},
        )
        image = ec2.describe_images()["Images"][0]["ImageId"]
        data = {"ImageId": image, "InstanceType": "m7g.large"}
        ec2.create_launch_template(LaunchTemplateName="their-kafka", LaunchTemplateData=data)
        self.scaling.create_auto_scaling_group(
            AutoScalingGroupName=GROUP,
            LaunchTemplate={"LaunchTemplateName": "their-kafka"},
            MinSize=1,
            MaxSize=2,
            DesiredCapacity=1,
            VPCZoneIdentifier=self.subnets["a"],
        )
        self.scaling.put_lifecycle_hook(AutoScalingGroupName=GROUP, **HOOK)
        self.instance = until(self._member, f"a member of {GROUP}")
        twin.api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.join(self.instance)
        # Where whatever is not Kafka runs.
        twin.aws("eks").create_nodegroup(
            clusterName=EKS,
            nodegroupName="their-workers",
            subnets=[self.subnets["b"]],
            nodeRole=f"arn:aws:iam::{environment.ACCOUNT}:role/theirs",
            scalingConfig={"minSize": 1, "maxSize": 1, "desiredSize": 1},
        )

    def _member(self) -> str | None:
        members = self.group()["Instances"]
        return str(members[0]["InstanceId"]) if members else None

    def stays(self) -> str | None:
        """Return the machine of the group that is not about to leave."""
        members = self.group()["Instances"]
        serving = [m["InstanceId"] for m in members if m["LifecycleState"] == "InService"]
        return next((str(each) for each in serving if each != self.instance), None)

    def group(self) -> dict[str, Any]:
        found = self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
        return dict(found["AutoScalingGroups"][0])

    def join(self, instance: str) -> str:
        """Make the node of one of the group's machines, which has no kubelet, and return it."""
        api, zone = self.twin.api, f"{environment.REGION}a"
        name = f"{instance}.ec2.internal"
        labels = {"topology.kubernetes.io/zone": zone, "kafka-pool": "broker"}
        node = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"providerID": f"aws:///{zone}/{instance}"},
        }
        api.post("/api/v1/nodes", node)
        return name

    def broker_on(self, node: str) -> None:
        """Make a broker's pod there, as Strimzi labels it."""
        labels = {
            "strimzi.io/cluster": KAFKA,
            "strimzi.io/pool-name": "broker",
            "strimzi.io/broker-role": "true",
        }
        spec = {"nodeName": node, "containers": [{"name": "kafka", "image": "kafka"}]}
        self.twin.api.post(PODS, {"metadata": {"name": BROKER, "labels": labels}, "spec": spec})

    def evict(self) -> None:
        meta = {"name": BROKER, "namespace": NAMESPACE}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        self.twin.api.post(f"{PODS}/{BROKER}/eviction", body)

    def refused(self) -> ApiError:
        with pytest.raises(ApiError) as refusal:
            self.evict()
        return refusal.value

    def describe(self, **changes: Any) -> Path:
        """Write their description, at level watch unless told otherwise."""
        described = {
            "level": "watch",
            "eks_cluster": EKS,
            "region": environment.REGION,
            "kafkas": [
                {"namespace": NAMESPACE, "name": KAFKA, "bootstrap": "127.1.0.9:9", "tls": False}
            ],
            "scaling_groups": [GROUP],
            "pool_label": "kafka-pool",
            "subnets": [self.subnets["a"]],
            "security_groups": [self.security_group],
            "queue_url": f"https://sqs.{environment.REGION}.amazonaws.com/"
            f"{environment.ACCOUNT}/their-drains",
            "timings": {"tick_interval_seconds": 1},
        }
        path = Path(self.twin.place.path("adopted.yaml"))
        path.write_text(yaml.safe_dump({"adopt": described | changes}))
        return path

    def standing(self) -> dict[str, Any]:
        """Return what of theirs may be changed, as it is now."""
        hooks = self.scaling.describe_lifecycle_hooks(AutoScalingGroupName=GROUP)
        group = self.group()
        api = self.twin.api
        kinds = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
        ours = [
            item["metadata"]["name"]
            for kind in kinds
            for item in api.get(f"/apis/rbac.authorization.k8s.io/v1/{kind}")["items"]
        ]
        return {
            "hooks": hooks["LifecycleHooks"],
            "tags": group["Tags"],
            "sizes": [group[key] for key in ("MinSize", "MaxSize", "DesiredCapacity")],
            "entries": self._entries(),
            "webhooks": self._names(WEBHOOKS),
            "in kube-system": [
                self._names(f"/{kind}")
                for kind in (
                    "apis/apps/v1/namespaces/kube-system/deployments",
                    "apis/policy/v1/namespaces/kube-system/poddisruptionbudgets",
                    "api/v1/namespaces/kube-system/services",
                    "api/v1/namespaces/kube-system/secrets",
                )
            ],
            "roles": sorted(ours),
            "rules": sorted(r["Name"] for r in self.twin.aws("events").list_rules()["Rules"]),
            "tables": sorted(self.twin.aws("dynamodb").list_tables()["TableNames"]),
            "queues": sorted(self.twin.aws("sqs").list_queues().get("QueueUrls", [])),
            "groups": [
                g["GroupId"]
                for g in self.twin.aws("ec2").describe_security_groups()["SecurityGroups"]
            ],
        }

    def _names(self, path: str) -> list[str]:
        return sorted(item["metadata"]["name"] for item in self.twin.api.get(path)["items"])

    def _entries(self) -> list[Any]:
        """Return the access entries: the twin keeps them as EKS once did."""
        found = find(self.twin.api, f"{aws_eks.PATH}/{aws_eks.NAME}")
        return list(yaml.safe_load((found or {"data": {}})["data"].get("mapRoles") or "[]") or [])


@pytest.fixture(scope="module")
def twin(tools: None, machines: None) -> Iterator[Twin]:
    """A twin of these tests' own, whose IAM refuses what no policy allows."""
    with twins.running(lambda _sentence: None, keep_logs=LOGS / "adopted") as running:
        yield running


@pytest.fixture(scope="module")
def theirs(twin: Twin) -> Theirs:
    return Theirs(twin)


@pytest.fixture(scope="module")
def watched(twin: Twin, theirs: Theirs) -> Iterator[Layers]:
    """The operations stack of their cluster; what was before it must be what is after it."""
    before = theirs.standing()
    path = theirs.describe()
    layers = Layers(
        EKS,
        twin.environment(),
        twin_project(twin.place, EKS, path, layers=(OPERATIONS,)),
        layers=(OPERATIONS,),
    )
    layers.up()
    yield layers
    layers.destroy()
    assert theirs.standing() == before


def incident(twin: Twin, instance: str) -> dict[str, Any] | None:
    found = twin.aws("dynamodb").get_item(
        TableName=f"{PREFIX}-incidents", Key={"pk": {"S": f"incident#{instance}"}}
    )
    return found.get("Item")


def changes(action: str) -> bool:
    service, operation = action.split(":")
    return service not in OWN_SERVICES and not operation.startswith(READING)


def test_a_termination_of_theirs_is_told_and_nothing_of_theirs_is_written(
    twin: Twin, theirs: Theirs, watched: Layers
) -> None:
    before = theirs.standing()
    theirs.scaling.terminate_instance_in_auto_scaling_group(
        InstanceId=theirs.instance, ShouldDecrementDesiredCapacity=False
    )

    def told() -> str | None:
        item = incident(twin, theirs.instance)
        text = "" if item is None else json.dumps(item)
        return text if WATCHED in text else None

    until(told, "the incident says what would be done")
    assert theirs.standing() == before
    calls = [
        fact
        for fact in read_journal(twin.place)
        if fact["event"] == "iam_judged" and str(fact["principal"]).startswith(f"{PREFIX}-")
    ]
    asked = {str(fact["action"]) for fact in calls}
    assert {"autoscaling:DescribeAutoScalingGroups", "ec2:DescribeInstances"} <= asked
    # What Lambda itself does, in the functions' names, with interfaces of theirs.
    of_lambda = {f"ec2:{each}" for each in ("CreateNetworkInterface", *TENDING)}
    assert not {action for action in asked - of_lambda if changes(action)}
    assert [fact for fact in calls if not fact["allowed"]] == []


def available(twin: Twin) -> bool:
    found = twin.api.get(f"/apis/apps/v1/namespaces/kube-system/deployments/{GATE}")
    return int(found.get("status", {}).get("availableReplicas", 0)) == 2


def test_at_gate_an_eviction_is_answered_and_recorded(
    twin: Twin, theirs: Theirs, watched: Layers
) -> None:
    image = {"image": "registry.example/stillwater-gate:1"}
    theirs.describe(level="gate", eviction_gate=image)
    watched.up()
    until(lambda: available(twin), "both replicas of the gate are ready", seconds=240)
    instance = until(theirs.stays, "the machine that came for the one that left")
    theirs.broker_on(theirs.join(instance))

    until(lambda: "No other node of" in str(theirs.refused()), "the gate is trusted and answers")
    refusal = theirs.refused()
    assert refusal.status == 429
    assert f"ready to take {BROKER}: its drainer brings one" in str(refusal)
    ledger = Ledger(f"{PREFIX}-incidents", KAFKA, environment.REGION, client=twin.aws("dynamodb"))
    asked = until(lambda: ledger.get(instance), "the refusal is recorded")
    assert asked.drainer is not None
    assert (asked.kind.value, asked.drainer.name) == ("eviction", "stillwater-admin")

    gates = [f for f in read_journal(twin.place) if f.get("principal") == f"{PREFIX}-gate"]
    assert [fact for fact in gates if not fact.get("allowed", True)] == []
