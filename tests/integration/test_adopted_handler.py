"""A termination handler of ours beside a cluster that exists: it drains what is sent, and leaves.

Their cluster has no Kafka that could consent, so the test sends what λ tick sends once it has.
"""

import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from cli.engine.layers import Layers
from core.ground.naming import OPERATIONS
from handlers.store.ledger import Ledger
from local import environment
from local import twin as twins
from local.journal import read as read_journal
from local.kubernetes.client import has_condition
from local.kubernetes.images import PROCESS_IMAGE
from local.pulumi.bin import twin_project
from local.twin import Twin
from tests.integration.conftest import LOGS
from tests.integration.test_adopted import BROKER, EKS, KAFKA, PODS, PREFIX, Theirs
from tests.integration.waiting import until
from tests.unit.handlers.announced import hook_event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]
GROUP = "their-kafka-real"
NODE_CONFIG = f"""\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {{name: {EKS}}}
  kubelet:
    flags: [--node-labels=kafka-pool=broker]
"""
HANDLER = f"{PREFIX}-nth"
DEPLOYMENT = f"/apis/apps/v1/namespaces/kube-system/deployments/{HANDLER}"


@pytest.fixture(scope="module")
def twin(tools: None, machines: None) -> Iterator[Twin]:
    """A twin of this test's own, whose IAM refuses what no policy allows."""
    with twins.running(lambda _sentence: None, keep_logs=LOGS / "handler") as running:
        yield running


@pytest.fixture(scope="module")
def theirs(twin: Twin) -> Theirs:
    """Their cluster, and in it a group whose machines run kubelets."""
    made = Theirs(twin)
    image = twin.aws("ec2").describe_images()["Images"][0]["ImageId"]
    data = {
        "ImageId": image,
        "InstanceType": "m7g.large",
        "UserData": b64encode(NODE_CONFIG.encode()).decode(),
    }
    twin.aws("ec2").create_launch_template(LaunchTemplateName=GROUP, LaunchTemplateData=data)
    owned = {"Key": f"kubernetes.io/cluster/{EKS}", "Value": "owned", "PropagateAtLaunch": True}
    made.scaling.create_auto_scaling_group(
        AutoScalingGroupName=GROUP,
        LaunchTemplate={"LaunchTemplateName": GROUP},
        MinSize=1,
        MaxSize=2,
        DesiredCapacity=1,
        VPCZoneIdentifier=made.subnets["a"],
        Tags=[owned],
    )
    return made


def hooks(theirs: Theirs) -> set[str]:
    found = theirs.scaling.describe_lifecycle_hooks(AutoScalingGroupName=GROUP)["LifecycleHooks"]
    return {each["LifecycleHookName"] for each in found}


def member(twin: Twin) -> tuple[str, str] | None:
    """Return the group's machine and its node, once that is Ready."""
    found = twin.aws("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
    for instance in (each["InstanceId"] for each in found["AutoScalingGroups"][0]["Instances"]):
        for node in twin.api.get("/api/v1/nodes")["items"]:
            if node["spec"].get("providerID", "").endswith(instance) and has_condition(node):
                return str(instance), str(node["metadata"]["name"])
    return None


def broker_on(twin: Twin, node: str) -> None:
    """Make a broker's pod there that runs until it is asked to stop."""
    labels = {"strimzi.io/cluster": KAFKA, "strimzi.io/broker-role": "true"}
    forever = [sys.executable, "-c", "import time; time.sleep(600)"]
    container = {"name": "kafka", "image": PROCESS_IMAGE, "command": forever}
    spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 5}
    twin.api.post(PODS, {"metadata": {"name": BROKER, "labels": labels}, "spec": spec})


@pytest.fixture
def installed(twin: Twin, theirs: Theirs) -> Iterator[Layers]:
    """The operations stack with a handler of ours; what was before it must be what is after it."""
    before = theirs.standing()
    path = theirs.describe(level="act", drainer="ours", queue_url=None, scaling_groups=[GROUP])
    project = twin_project(twin.place, EKS, path, layers=(OPERATIONS,))
    layers = Layers(EKS, twin.environment(), project, layers=(OPERATIONS,))
    layers.up()
    yield layers
    layers.destroy()
    assert theirs.standing() == before
    assert hooks(theirs) == set()


def drain_of(twin: Twin, instance: str) -> str | None:
    """Return the announcement of `drain`, once the incident knows it: what is forwarded."""
    table, region = f"{PREFIX}-incidents", environment.REGION
    incident = Ledger(table, KAFKA, region, client=twin.aws("dynamodb")).get(instance)
    token = None if incident is None else incident.hooks.get("drain")
    if token is None:
        return None
    event: dict[str, Any] = json.loads(hook_event("drain", instance_id=instance, token=token))
    event["detail"]["AutoScalingGroupName"] = GROUP
    return json.dumps(event)


@pytest.mark.long
def test_what_the_tick_forwards_is_drained_and_its_hook_completed(
    twin: Twin, theirs: Theirs, installed: Layers
) -> None:
    (again,) = installed.up()
    assert again.changed == 0

    def runs() -> bool:
        status = twin.api.get(DEPLOYMENT).get("status", {})
        return int(status.get("availableReplicas", 0)) == 1

    until(runs, "the termination handler runs", seconds=180)
    assert hooks(theirs) == {"drain", "gate"}
    instance, node = until(lambda: member(twin), "a machine of the group has a node")
    broker_on(twin, node)
    theirs.scaling.terminate_instance_in_auto_scaling_group(
        InstanceId=instance, ShouldDecrementDesiredCapacity=False
    )
    message = until(lambda: drain_of(twin, instance), "the incident knows its hook")
    sqs = twin.aws("sqs")
    url = sqs.get_queue_url(QueueName=HANDLER)["QueueUrl"]
    waiting = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert int(waiting["ApproximateNumberOfMessages"]) == 0, "nothing came by itself"
    sqs.send_message(QueueUrl=url, MessageBody=message)

    def evicted() -> bool:
        return BROKER not in {each["metadata"]["name"] for each in twin.api.get(PODS)["items"]}

    until(evicted, "the broker's pod is evicted")

    def completed() -> bool:
        return any(
            (fact["event"], fact.get("hook"), fact.get("instance"))
            == ("hook_completed", "drain", instance)
            for fact in read_journal(twin.place)
        )

    until(completed, "the handler completes its hook")

    def told() -> bool:
        events = twin.api.get("/api/v1/events")["items"]
        about = {e["reason"] for e in events if e["involvedObject"].get("name") == node}
        return {"CordonAndDrain", "PostDrain"} <= about

    # It writes them after the fact, as events of the node.
    until(told, "the handler says that it cordoned, drained and was done")
    calls = [f for f in read_journal(twin.place) if str(f.get("principal")) == HANDLER]
    assert [fact for fact in calls if not fact.get("allowed", True)] == []
