"""cli.doctor.account: what AWS and Kubernetes say, in core's words."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError

from cli.doctor.account import KubernetesCluster, LiveAccount
from cli.target import Target
from core.checks import facts
from core.checks.balancing import name_in
from core.checks.drift import COMPARED
from core.checks.expected import expectation_of
from core.checks.facts import Alarm, Queue, hook_of
from core.model.nodes import LifecycleHook
from infra.eks.api import Api
from infra.kafka.cluster import kafka_spec
from tests.unit.cli.survey.manifests import workload
from tests.unit.infra.programs import spec

REGION = "us-east-1"
SPEC = spec()
EXPECTED_ALARMS = expectation_of(SPEC, ["test-orders-sweep-silent", "test-orders-mute"])
GROUP = "test-orders-broker-a"


@pytest.fixture
def session(aws: None) -> boto3.Session:
    return boto3.Session("key", "secret", region_name=REGION)


def read_account(session: boto3.Session) -> dict[str, Mapping[str, Any]]:
    account = LiveAccount(Target(SPEC, session), EXPECTED_ALARMS)
    return {part: found for _, reader in account.readers() for part, found in reader()}


def subnet(session: boto3.Session) -> str:
    ec2 = session.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20", AvailabilityZone="us-east-1b")
    return str(made["Subnet"]["SubnetId"])


def test_an_empty_account_is_read_whole_and_holds_nothing(session: boto3.Session) -> None:
    found = read_account(session)
    expected = {"groups", "hooks", "balancers", "listeners", "target_groups", "queues", "alarms"}
    assert set(found) == expected
    assert all(members == {} for members in found.values()), found


def test_a_group_stands_in_its_subnets_zones_whatever_its_tag_says(session: boto3.Session) -> None:
    scaling = session.client("autoscaling")
    scaling.create_launch_configuration(
        LaunchConfigurationName="l", ImageId="ami-12c6146b", InstanceType="m7g.large"
    )
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=GROUP,
        LaunchConfigurationName="l",
        MinSize=0,
        MaxSize=2,
        VPCZoneIdentifier=subnet(session),
        Tags=[
            {
                "Key": "k8s.io/cluster-autoscaler/node-template/label/topology.kubernetes.io/zone",
                "Value": "us-east-1a",
            }
        ],
    )
    scaling.put_lifecycle_hook(
        AutoScalingGroupName=GROUP,
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=300,
        DefaultResult="CONTINUE",
    )
    scaling.put_lifecycle_hook(
        AutoScalingGroupName=GROUP,
        LifecycleHookName="somebody-elses",
        LifecycleTransition="autoscaling:EC2_INSTANCE_LAUNCHING",
    )
    found = read_account(session)
    group = found["groups"][GROUP]
    assert (group.zones, group.zone_tag) == (frozenset({"us-east-1b"}), "us-east-1a")
    assert (group.on_abandon, group.healthy_percent) == (None, None)
    # moto answers every hook with a target.
    hooks = {name: replace(hook, target=None) for name, hook in found["hooks"].items()}
    assert hooks == {
        hook_of("drain", GROUP): LifecycleHook(
            name="drain",
            transition="autoscaling:EC2_INSTANCE_TERMINATING",
            default_result="CONTINUE",
            heartbeat_seconds=300,
        )
    }


def test_a_listener_leads_to_a_target_group_by_name(session: boto3.Session) -> None:
    balancing, where = session.client("elbv2"), subnet(session)
    balancer = balancing.create_load_balancer(
        Name="test-orders-nlb", Type="network", Scheme="internal", Subnets=[where]
    )["LoadBalancers"][0]
    group = balancing.create_target_group(
        Name="test-orders-10",
        Protocol="TCP",
        Port=9094,
        VpcId=balancer["VpcId"],
        TargetType="ip",
        HealthCheckIntervalSeconds=30,
    )["TargetGroups"][0]
    balancing.create_listener(
        LoadBalancerArn=balancer["LoadBalancerArn"],
        Protocol="TCP",
        Port=10010,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": group["TargetGroupArn"]}],
    )
    balancing.create_target_group(
        Name="somebody-elses", Protocol="TCP", Port=1, VpcId=balancer["VpcId"]
    )
    found = read_account(session)
    assert found["balancers"]["test-orders-nlb"].zones == frozenset({"us-east-1b"})
    assert found["listeners"]["10010"].target_group == "test-orders-10"
    assert set(found["target_groups"]) == {"test-orders-10"}
    assert found["target_groups"]["test-orders-10"].interval_seconds == 30


def test_a_queue_without_dead_letters_says_so(session: boto3.Session) -> None:
    sqs = session.client("sqs")
    sqs.create_queue(QueueName="test-orders-nth", Attributes={"VisibilityTimeout": "11"})
    sqs.create_queue(QueueName="test-orders-nth-dlq")
    queues = read_account(session)["queues"]
    assert queues["test-orders-nth"] == Queue(
        retention_seconds=345_600, visibility_seconds=11, dead_letters=None, max_receive_count=None
    )
    # Nobody but a person receives there.
    assert queues["test-orders-nth-dlq"].visibility_seconds is None


def test_an_alarm_that_tells_nobody_does_not_act(session: boto3.Session) -> None:
    cloudwatch = session.client("cloudwatch")
    topic = "arn:aws:sns:us-east-1:123456789012:alerts"
    for name, actions in (("sweep-silent", [topic]), ("mute", [])):
        cloudwatch.put_metric_alarm(
            AlarmName=f"test-orders-{name}",
            Namespace="n",
            MetricName="m",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=0,
            ComparisonOperator="GreaterThanThreshold",
            AlarmActions=actions,
        )
    expected = {"test-orders-sweep-silent": Alarm(acts=True), "test-orders-mute": Alarm(acts=False)}
    assert read_account(session)["alarms"] == expected


def test_a_refusal_is_no_absence(session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    account = LiveAccount(Target(SPEC, session), EXPECTED_ALARMS)

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetQueueUrl")

    monkeypatch.setattr(account._sqs, "get_queue_url", refuse)
    with pytest.raises(ClientError):
        account._queues()


def test_a_target_groups_name_is_in_its_arn() -> None:
    arn = "arn:aws:elasticloadbalancing:us-east-1:1:targetgroup/test-orders-10/0123"
    assert name_in(arn) == "test-orders-10"


GUIDE = Path(__file__).resolve().parents[4] / "docs" / "how-to" / "doctor.md"
EXPECTED = expectation_of(SPEC, [])
ARN = "arn:aws:elasticloadbalancing:us-east-1:1:targetgroup/test-orders-10/0123"


class Lists:
    """An API server that only lists."""

    def __init__(self, items: Mapping[str, list[dict[str, Any]]]) -> None:
        self._items = items
        self.asked: dict[str, dict[str, str]] = {}

    def get(self, path: str, limit: int = 0, **query: str) -> dict[str, Any]:
        if path == "/apis/kafka.strimzi.io":
            return {"preferredVersion": {"groupVersion": "kafka.strimzi.io/v1"}}
        self.asked[path] = query
        return {"items": self._items.get(path.rpartition("/")[2], [])}


def cluster() -> KubernetesCluster:
    return KubernetesCluster(EXPECTED, lambda: cast("Api", None))


def read(**items: list[dict[str, Any]]) -> tuple[dict[str, Any], Lists]:
    api = Lists(items)
    found = {
        part: members
        for _, reader in cluster().readers()
        for part, members in reader(cast("Api", api))
    }
    return found, api


def item(name: str, **rest: Any) -> dict[str, Any]:
    labels = rest.pop("labels", {})
    return {"metadata": {"name": name, "labels": labels, **rest.pop("metadata", {})}, **rest}


def test_an_empty_cluster_is_read_in_ten_lists() -> None:
    found, api = read()
    assert (len(api.asked), len(found)) == (10, 11)
    assert all(members == {} for members in found.values())
    assert api.asked["/api/v1/namespaces"] == {"fieldSelector": "metadata.name=kafka"}


def granted() -> set[tuple[str, str, str]]:
    """Return (namespace, API group, resource) of all that the guide's roles let anybody list."""
    (manifests,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return {
        (role["metadata"].get("namespace", ""), group, resource)
        for role in yaml.safe_load(manifests)["items"]
        for rule in role.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if rule["verbs"] == ["list"]
    }


def test_the_guides_roles_allow_what_is_listed_and_nothing_else() -> None:
    _, api = read()
    parsed = (
        re.fullmatch(r"/apis?/(?:([a-z0-9.]+)/)?v\w+/(?:namespaces/([^/]+)/)?(\w+)", path)
        for path in api.asked
    )
    asked = {(m[2] or "", m[1] or "", m[3]) for m in parsed if m is not None}
    assert len(asked) == len(api.asked)
    # By the survey's reader.
    pools = ("kafka", "kafka.strimzi.io", "kafkanodepools")
    assert {*asked, pools} == granted()


def test_a_namespace_is_known_by_its_gate_label() -> None:
    label = {"elbv2.k8s.aws/pod-readiness-gate-inject": "enabled"}
    assert read(namespaces=[item("kafka", labels=label)])[0]["namespaces"] == {
        "kafka": facts.Namespace(gate_label="enabled")
    }
    assert read(namespaces=[item("kafka")])[0]["namespaces"]["kafka"].gate_label is None


def test_a_binding_names_its_target_group_by_arn_or_by_name() -> None:
    service = {"name": "orders-broker-a-nlb-10", "port": "tcp-nlb"}
    by_arn = {"serviceRef": service, "targetGroupARN": ARN, "targetType": "ip"}
    by_name = {"serviceRef": service, "targetGroupName": "test-orders-10", "targetType": "ip"}
    found, _ = read(targetgroupbindings=[item("a", spec=by_arn), item("b", spec=by_name)])
    assert {binding.target_group for binding in found["bindings"].values()} == {"test-orders-10"}


def pod(name: str, phase: str = "Running", **rest: Any) -> dict[str, Any]:
    labels = {"strimzi.io/pool-name": "broker-a", "strimzi.io/broker-role": "true"}
    gates = [{"conditionType": "target-health.elbv2.k8s.aws/orders-broker-10"}]
    return item(
        name,
        labels=rest.pop("labels", labels),
        metadata={"namespace": "kafka", **rest.pop("metadata", {})},
        spec={"readinessGates": gates, "containers": []},
        status={"phase": phase},
    )


def test_only_running_pods_of_kafkas_pools_are_asked_for_their_gates() -> None:
    found, api = read(
        pods=[
            pod("orders-broker-a-10"),
            pod("orders-broker-b-20", phase="Pending"),
            pod("orders-broker-c-30", metadata={"deletionTimestamp": "2026-11-20T00:00:00Z"}),
            pod("orders-entity-operator-7f9", labels={}),
        ]
    )
    (name, seen), *others = found["pods"].items()
    assert (name, seen.broker, others) == ("orders-broker-a-10", True, [])
    assert seen.readiness_gates == {"target-health.elbv2.k8s.aws/orders-broker-10"}
    path = "/api/v1/namespaces/kafka/pods"
    assert api.asked[path] == {"labelSelector": "strimzi.io/cluster=orders"}


def volume(namespace: str, claim: str) -> dict[str, Any]:
    spec = {
        "claimRef": {"namespace": namespace, "name": claim},
        "persistentVolumeReclaimPolicy": "Delete",
    }
    return item(f"pv-{namespace}-{claim}", spec=spec)


def test_only_volumes_of_this_kafka_are_looked_at() -> None:
    found, _ = read(
        persistentvolumes=[
            volume("kafka", "data-0-orders-broker-a-10"),
            volume("kafka", "data-0-payments-broker-a-10"),
            volume("kafka", "data-orders-connect-0"),
            volume("other", "data-0-orders-broker-a-10"),
            item("unclaimed", spec={}),
        ]
    )
    (seen,) = found["volumes"].values()
    assert (seen.title, seen.reclaim) == ("kafka/data-0-orders-broker-a-10", "Delete")


def test_a_budget_is_what_is_written() -> None:
    found, _ = read(
        poddisruptionbudgets=[
            budget("orders-kafka", minAvailable=5),
            budget("loose", maxUnavailable="50%"),
        ]
    )
    said = {
        name: (each.least_available, each.most_unavailable)
        for name, each in found["budgets"].items()
    }
    assert said == {"orders-kafka": ("5", None), "loose": (None, "50%")}


def budget(name: str, **said: Any) -> dict[str, Any]:
    return item(name, metadata={"namespace": "kafka"}, spec={"selector": {}, **said})


def deployment(**env: Any) -> dict[str, Any]:
    name = "aws-node-termination-handler"
    made = workload(name, "kube-system", f"{name}:v1.25.6", **env)
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 450
    return made


def test_the_drain_timeout_is_in_the_handlers_environment() -> None:
    other = {"NODE_NAME": {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}}
    told = deployment(**other, NODE_TERMINATION_GRACE_PERIOD="420")
    (handler,) = read(deployments=[told])[0]["termination_handlers"].values()
    said = (handler.drain_timeout_seconds, handler.grace_seconds, handler.runs)
    assert said == (420, 450, True)
    (handler,) = read(deployments=[deployment(**other)])[0]["termination_handlers"].values()
    # Its own default.
    assert handler.drain_timeout_seconds == 120


def test_a_drain_cleaner_is_read_where_it_answers_for_kafkas_namespace() -> None:
    image = "quay.io/strimzi/drain-cleaner:1.6.0"
    found, _ = read(
        deployments=[
            workload("cleaner", "ops", image),
            workload("off", "ops", image, STRIMZI_DRAIN_KAFKA="false"),
            workload("elsewhere", "ops", image, STRIMZI_DRAIN_NAMESPACES="payments"),
        ]
    )
    said = {title: each.drains_kafka for title, each in found["drain_cleaners"].items()}
    assert said == {"ops/cleaner": True, "ops/off": False}


def test_a_kafka_says_whom_its_listeners_let_in_and_what_they_may_do() -> None:
    door = {"name": "nlb", "tls": False}
    asks = {"name": "internal", "tls": True, "authentication": {"type": "scram-sha-512"}}
    rules = {"type": "simple", "superUsers": ["CN=ops"]}
    config = {"allow.everyone.if.no.acl.found": "true"}
    kafka = {"listeners": [door, asks], "authorization": rules, "config": config}
    made = item("orders", metadata={"namespace": "kafka"}, spec={"kafka": kafka})
    assert read_kafka(made) == {
        "doors": {
            "nlb asks for no credentials, without TLS",
            "internal asks for scram-sha-512, over TLS",
        },
        "authorization": "simple",
        "super_users": {"CN=ops"},
        "everyone_may": True,
    }


def read_kafka(made: dict[str, Any]) -> dict[str, Any]:
    return compared(read(kafkas=[made])[0]["kafkas"]["orders"])


def compared(kafka: Any) -> dict[str, Any]:
    return {field: getattr(kafka, field) for field in COMPARED["kafkas"].labels}


def test_a_kafka_is_made_as_the_doctor_expects_it() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "observedGeneration": 0}
    made = item("orders", metadata={"namespace": "kafka"}, spec=kafka_spec(SPEC), status=ready)
    (expected,) = (EXPECTED.snapshot.kafkas or {}).values()
    assert read_kafka(made) == compared(expected)
