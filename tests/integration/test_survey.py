"""A cluster that nobody of ours made, on a real API server: healthy, then with fifteen faults.

Nodes are objects without machines, which a survey cannot tell from others.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cli.main import app
from local import environment, twin
from local.kubernetes import crds
from local.kubernetes.client import Api, ApiError
from local.twin import Twin
from tests.integration.nodes import make_subnets, make_target_group, make_volumes
from tests.integration.waiting import until
from tests.unit.cli.survey import machines, worlds
from tests.unit.cli.survey.around import TARGET_GROUP, Around
from tests.unit.cli.survey.changes import handler
from tests.unit.cli.survey.manifests import meta
from tests.unit.cli.survey.worlds import World

pytestmark = pytest.mark.integration
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Kind -> where it is posted; what is not listed is Strimzi's.
PREFIXES = {
    "namespaces": "/api/v1",
    "nodes": "/api/v1",
    "csinodes": "/apis/storage.k8s.io/v1",
    "persistentvolumes": "/api/v1",
    "storageclasses": "/apis/storage.k8s.io/v1",
    "validatingwebhookconfigurations": "/apis/admissionregistration.k8s.io/v1",
    "nodepools": "/apis/karpenter.sh/v1",
    "services": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "deployments": "/apis/apps/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "targetgroupbindings": "/apis/elbv2.k8s.aws/v1beta1",
    "kafkas": "/apis/kafka.strimzi.io/v1",
    "kafkanodepools": "/apis/kafka.strimzi.io/v1",
    "pods": "/api/v1",
}
# group, kind, plural, scope
OTHERS = (
    ("karpenter.sh", "v1", "NodePool", "nodepools", "Cluster"),
    ("elbv2.k8s.aws", "v1beta1", "TargetGroupBinding", "targetgroupbindings", "Namespaced"),
)
# The API server wants the kind of custom resources written out.
CUSTOM = {
    "nodepools": "NodePool",
    "targetgroupbindings": "TargetGroupBinding",
    "kafkas": "Kafka",
    "kafkanodepools": "KafkaNodePool",
}
# Services that the twin's AWS has not, or in part.
NOT_SERVED = {
    *("machine quotas", "disk quota", "control plane", "upgrade insights"),
    *("zonal shifts", "aws health", "fargate profiles", "disk checks"),
}
GATE = {"conditionType": "target-health.elbv2.k8s.aws/boot"}
PLANTED = {
    "hook-default",
    "group-zones",
    "group-maximum",
    "group-suspended",
    "budget-missing",
    "grace",
    "nth-timeout",
    "cleaner-denies",
    "karpenter-expiry",
    "karpenter-consolidation",
    "reclaim",
    "zones",
    "min-insync",
    "listener",
    "gate-missing",
}


def theirs() -> World:
    """Return two Kafkas: orders on groups of its own, ledger on Karpenter's nodes."""
    world = machines.own_groups(worlds.bare())
    world.add("namespaces", {"metadata": meta("finance")})
    world.add("namespaces", {"metadata": meta("ops")})
    ledger = World()
    ledger.add("kafkas", worlds.kafka("ledger", "finance"))
    for name, role in (("data", "broker"), ("raft", "controller")):
        worlds.pool(ledger, "ledger", "finance", name, roles=(role,))
    worlds.budget(ledger, "ledger", "finance", minAvailable=6)
    machines.provisioned(ledger)
    for kind, items in ledger.kinds.items():
        world.kinds.setdefault(kind, []).extend(items)
    world.instances |= ledger.instances
    # The twin's EC2 gives machines other names than these nodes have.
    handler(USE_PROVIDER_ID="true")(world)
    worlds.bind(world, "aws-load-balancer-controller:v3.5.0", "shop-kafka", "orders")
    for each in world.kinds["pods"]:
        if each["metadata"]["name"].startswith("orders-mains"):
            each["spec"]["readinessGates"] = [GATE]
    return world


class Cluster:
    """The same on a twin of AWS and Kubernetes, by plain API calls."""

    def __init__(self, running: Twin, world: World) -> None:
        self.twin, self.api, self.world = running, running.api, world
        self.scaling = running.aws("autoscaling")
        self.subnets = make_subnets(running)
        self.real = self._machines()
        disks = (disk["spec"]["csi"]["volumeHandle"] for disk in world.kinds["persistentvolumes"])
        self.real |= make_volumes(running, disks)
        self.real[worlds.QUEUE_URL] = self._queue()
        self.real[TARGET_GROUP] = make_target_group(running, self.subnets["a"], Around().said)
        self.real["eu-north-1"] = environment.REGION
        self._definitions()
        for kind in PREFIXES:
            for item in world.kinds[kind]:
                self.post(kind, item)
        for item in world.kinds["deployments"]:
            self._serve(item)

    def _serve(self, deployment: dict[str, Any]) -> None:
        """Say of a workload's pods what a kubelet would, so that they count as available."""
        name, pods = deployment["metadata"]["name"], path_of("pods", deployment)

        def made() -> list[dict[str, Any]]:
            found = self.api.get(pods, labelSelector=f"app={name}")["items"]
            return [pod for pod in found if "ownerReferences" in pod["metadata"]]

        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        for pod in until(made, f"pods of {name}"):
            self.api.merge(f"{pods}/{pod['metadata']['name']}/status", {"status": ready})
        path = f"{path_of('deployments', deployment)}/{name}"
        until(lambda: self.api.get(path)["status"].get("availableReplicas"), f"{name} serves")

    def _machines(self) -> dict[str, str]:
        """Launch what the world's instances stand for; return their real names."""
        ec2, real = self.twin.aws("ec2"), {}
        image = ec2.describe_images()["Images"][0]["ImageId"]
        template = {"ImageId": image, "InstanceType": "m7g.large"}
        ec2.create_launch_template(LaunchTemplateName="theirs", LaunchTemplateData=template)
        for instance in self.world.instances:
            if instance not in self.world.member_of:
                made = ec2.run_instances(
                    MinCount=1, MaxCount=1, SubnetId=self.subnets["a"], **template
                )
                real[instance] = str(made["Instances"][0]["InstanceId"])
        for instance, name in self.world.member_of.items():
            group = self.world.groups[name]
            self.scaling.create_auto_scaling_group(
                AutoScalingGroupName=name,
                LaunchTemplate={"LaunchTemplateName": "theirs"},
                MinSize=1,
                MaxSize=group["MaxSize"],
                DesiredCapacity=group["DesiredCapacity"],
                VPCZoneIdentifier=self.subnets[group["AvailabilityZones"][0][-1]],
                InstanceLifecyclePolicy=group["InstanceLifecyclePolicy"],
            )
            for hook in self.world.hooks[name]:
                self.scaling.put_lifecycle_hook(AutoScalingGroupName=name, **hook)
            real[instance] = until(lambda name=name: self._member(name), f"a member of {name}")
        return real

    def _member(self, group: str) -> str | None:
        found = self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])
        members = found["AutoScalingGroups"][0]["Instances"]
        return str(members[0]["InstanceId"]) if members else None

    def _queue(self) -> str:
        sqs, events = self.twin.aws("sqs"), self.twin.aws("events")
        said = {"MessageRetentionPeriod": "3600", "Policy": json.dumps(worlds.QUEUE_POLICY)}
        url = str(sqs.create_queue(QueueName="Drains", Attributes=said)["QueueUrl"])
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
        events.put_rule(Name="their-drains", EventPattern=json.dumps(worlds.RULE))
        events.put_targets(Rule="their-drains", Targets=[{"Id": "q", "Arn": arn["QueueArn"]}])
        return url

    def _definitions(self) -> None:
        made = crds.strimzi_definitions()
        for group, version, kind, plural, scope in OTHERS:
            definition = json.loads(json.dumps(made[0]))
            definition["metadata"]["name"] = f"{plural}.{group}"
            names = {"kind": kind, "plural": plural, "singular": kind.lower()}
            definition["spec"] |= {"group": group, "scope": scope, "names": names}
            definition["spec"]["versions"][0]["name"] = version
            made.append(definition)
        for definition in made:
            self.api.post(DEFINITIONS, definition)
        for definition in made:
            spec = definition["spec"]
            version = spec["versions"][0]["name"]
            path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
            until(lambda path=path: served(self.api, path), path)

    def post(self, kind: str, item: dict[str, Any]) -> None:
        """Create an object, a pod with its account, its owner and its status."""
        text = json.dumps(item)
        for ours, real in self.real.items():
            text = text.replace(f'"{ours}"', f'"{real}"').replace(f'/{ours}"', f'/{real}"')
            text = text.replace(f"{ours}", real) if ours == "eu-north-1" else text
        body = json.loads(text)
        status = body.pop("status", None)
        if kind == "pods":
            self._adopt(body)
        if kind in CUSTOM:
            api_version = PREFIXES[kind].removeprefix("/apis/")
            body |= {"apiVersion": api_version, "kind": CUSTOM[kind]}
        made = self.api.post(path_of(kind, body), body)
        if kind == "namespaces":
            account = f"/api/v1/namespaces/{body['metadata']['name']}/serviceaccounts/default"
            until(lambda: served(self.api, account), account)
        if status is not None:
            path = f"{path_of(kind, body)}/{made['metadata']['name']}/status"
            self.api.merge(path, {"status": status})

    def _adopt(self, pod: dict[str, Any]) -> None:
        (owner,) = pod["metadata"]["ownerReferences"]
        space = f"/apis/core.strimzi.io/v1/namespaces/{pod['metadata']['namespace']}"
        path = f"{space}/strimzipodsets"
        if not served(self.api, f"{path}/{owner['name']}"):
            self.api.post(
                path,
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "metadata": {"name": owner["name"]},
                },
            )
        owner["uid"] = self.api.get(f"{path}/{owner['name']}")["metadata"]["uid"]

    def merge(self, kind: str, item: dict[str, Any], body: dict[str, Any]) -> None:
        self.api.merge(f"{path_of(kind, item)}/{item['metadata']['name']}", body)

    def environment(self, deployment: str, **values: str) -> None:
        (item,) = (
            each
            for each in self.world.kinds["deployments"]
            if each["metadata"]["name"] == deployment
        )
        env = [{"name": key, "value": value} for key, value in values.items()]
        containers = [{"name": deployment, "env": env}]
        path = f"{path_of('deployments', item)}/{deployment}"
        body = {"spec": {"template": {"spec": {"containers": containers}}}}
        self.api.strategic(path, body)


def served(api: Api, path: str) -> dict[str, Any] | None:
    try:
        return api.get(path)
    except ApiError as error:
        if error.status in (404, 503):
            return None
        raise


def path_of(kind: str, item: dict[str, Any]) -> str:
    namespace = item["metadata"].get("namespace")
    return (
        f"{PREFIXES[kind]}/namespaces/{namespace}/{kind}"
        if namespace
        else f"{PREFIXES[kind]}/{kind}"
    )


def named(cluster: Cluster, kind: str, name: str) -> dict[str, Any]:
    (item,) = (each for each in cluster.world.kinds[kind] if each["metadata"]["name"] == name)
    return item


def plant(cluster: Cluster) -> None:
    """Make fifteen things wrong, each as somebody in a hurry does."""
    groups = sorted(cluster.world.groups)
    scaling = cluster.scaling
    scaling.put_lifecycle_hook(
        AutoScalingGroupName=groups[0], **machines.hook(DefaultResult="CONTINUE")
    )
    scaling.update_auto_scaling_group(
        AutoScalingGroupName=groups[1],
        VPCZoneIdentifier=f"{cluster.subnets['a']},{cluster.subnets['b']}",
    )
    scaling.update_auto_scaling_group(AutoScalingGroupName=groups[2], MaxSize=1)
    scaling.suspend_processes(AutoScalingGroupName=groups[3], ScalingProcesses=["Launch"])
    budget = named(cluster, "poddisruptionbudgets", "ledger-kafka")
    cluster.api.delete(f"{path_of('poddisruptionbudgets', budget)}/ledger-kafka")
    cluster.environment("nth", NODE_TERMINATION_GRACE_PERIOD="120")
    cluster.environment("strimzi-drain-cleaner", STRIMZI_DENY_EVICTION="true")
    cluster.merge(
        "nodepools",
        named(cluster, "nodepools", "kafka"),
        {
            "spec": {
                "template": {"spec": {"expireAfter": "720h"}},
                "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized"},
            }
        },
    )
    volume = named(cluster, "persistentvolumes", "pv-data-ledger-data-0")
    cluster.merge(
        "persistentvolumes", volume, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}
    )
    zone = {"topology.kubernetes.io/zone": f"{environment.REGION}b"}
    node = named(cluster, "nodes", "node-of-ledger-data-0")
    cluster.merge("nodes", node, {"metadata": {"labels": zone}})
    kafka = {"config": {"min.insync.replicas": 1}, "listeners": [{"name": "plain", "port": 9092}]}
    cluster.merge("kafkas", named(cluster, "kafkas", "ledger"), {"spec": {"kafka": kafka}})
    pod = named(cluster, "pods", "orders-mains-0")
    cluster.api.delete(f"{path_of('pods', pod)}/orders-mains-0", {"gracePeriodSeconds": 0})
    changed = {"terminationGracePeriodSeconds": 30, "readinessGates": []}
    cluster.post("pods", pod | {"spec": pod["spec"] | changed})


@pytest.fixture(scope="module")
def cluster(tools: None, machines: None) -> Iterator[Cluster]:
    """A twin of AWS and a control plane alone: no kubelet, no operator, nothing of ours."""
    with twin.running(lambda _: None, machines=False) as running:
        yield Cluster(running, theirs())


def surveyed(cluster: Cluster, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for key, value in environment.with_credentials(cluster.twin.place).items():
        if key.startswith("AWS_"):
            monkeypatch.setenv(key, value)
    done = CliRunner().invoke(app, ["survey", "--kubeconfig", str(kubeconfig), "--json"])
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["exit_code"] == done.exit_code
    return found


def told_of_it(found: dict[str, Any]) -> list[str]:
    """Return the checks that found something, without what the twin's AWS does not serve."""
    return [
        str(each["check"])
        for each in found["findings"]
        # The twin's EC2 starts every machine with IMDSv1.
        if each["check"] != "metadata-open"
        and (each["check"] != "unread" or not set(each["subject"].split(", ")) <= NOT_SERVED)
    ]


def test_a_healthy_cluster_of_others_is_left_in_peace_and_each_fault_is_found(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = cluster.twin.place.path("kubeconfig")
    healthy = surveyed(cluster, kubeconfig, monkeypatch)
    assert healthy["kafkas"] == ["Kafka finance/ledger", "Kafka shop-kafka/orders"]
    assert told_of_it(healthy) == []
    plant(cluster)
    found = surveyed(cluster, kubeconfig, monkeypatch)
    assert sorted(told_of_it(found)) == sorted(PLANTED)
    assert len(PLANTED) == 15


def test_what_an_auditor_may_not_list_is_said_and_nothing_is_made_of_it(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = surveyed(cluster, auditor(cluster, tmp_path), monkeypatch)
    assert found["exit_code"] == 2
    (unread,) = (
        each for each in found["findings"] if 'cannot list resource "nodes"' in each["evidence"]
    )
    assert unread["subject"] == (
        "nodes, idle nodes, slots, instances, statuses, group of, groups, templates, node roles, "
        "scale ins, refreshes, managed node groups, subnets, ways out, vpc endpoints, "
        "machine quotas"
    )
    of_nodes = ("zones", "spot", "group-", "hook-", "nth-missing", "karpenter-", "node-alone")
    assert not [each for each in found["findings"] if each["check"].startswith(of_nodes)]


def auditor(cluster: Cluster, folder: Path) -> Path:
    """Return a kubeconfig of somebody who may list everything but nodes."""
    api, rbac = cluster.api, "/apis/rbac.authorization.k8s.io/v1"
    groups = ["apps", "batch", "policy", "storage.k8s.io", "admissionregistration.k8s.io"]
    groups.append("rbac.authorization.k8s.io")
    core = ["pods", "services", "namespaces", "persistentvolumes", "persistentvolumeclaims"]
    core += ["resourcequotas", "limitranges"]
    verbs = ["get", "list"]
    rules = [
        {"apiGroups": [""], "resources": core, "verbs": verbs},
        {"apiGroups": [*groups, *(each[0] for each in OTHERS)], "resources": ["*"], "verbs": verbs},
        {"apiGroups": ["kafka.strimzi.io", "core.strimzi.io"], "resources": ["*"], "verbs": verbs},
    ]
    named = {"metadata": {"name": "auditor"}}
    accounts = "/api/v1/namespaces/ops/serviceaccounts"
    api.post(accounts, named)
    api.post(f"{rbac}/clusterroles", named | {"rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "auditor"}
    subject = {"kind": "ServiceAccount", "name": "auditor", "namespace": "ops"}
    api.post(f"{rbac}/clusterrolebindings", named | {"roleRef": role, "subjects": [subject]})
    token = api.post(f"{accounts}/auditor/token", {"spec": {}})["status"]["token"]
    config = yaml.safe_load(cluster.twin.place.path("kubeconfig").read_text())
    config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path
