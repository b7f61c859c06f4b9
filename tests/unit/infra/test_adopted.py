"""What is made beside a cluster that exists: names of its own, and no right to change theirs."""

import functools
import json
from typing import Any

import pytest

from core.ground.constants import HOOKS
from core.ground.errors import InvalidInput
from core.settings.functions import (
    HealthSettings,
    InterruptionSettings,
    SweepSettings,
    TickSettings,
)
from stacks.program import main
from tests.every_case import every_case
from tests.unit.infra.recording import ACCOUNT, Recorded, run_program
from tests.unit.infra.told import told

KAFKA = {
    "namespace": "shop-kafka",
    "name": "orders",
    "bootstrap": "orders.example.com:9093",
    "credentials_secret": "eyes",
    "authentication": "tls",
}
ADOPTED: dict[str, Any] = {
    "level": "watch",
    "eks_cluster": "shop",
    "region": "us-east-1",
    "kafkas": [KAFKA, {**KAFKA, "namespace": "lab", "name": "trial"}],
    "scaling_groups": ["kafka-a", "kafka-b"],
    "managed_node_groups": ["quorum"],
    "node_pools": ["spare"],
    "pool_label": "kafka-pool",
    "subnets": ["subnet-0123456789abcdef0"],
    "security_groups": ["sg-0123456789abcdef0"],
    "slack": {"channel": "C0HARBOUR1", "secret_name": "shop/slack"},
}
# Calls that change nothing, by how they begin.
READING = ("Describe", "Get", "List", "Query", "Receive")
# What Lambda does for a function in a VPC: interfaces of the function's own, in subnets of theirs.
INTERFACES = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
}
KINDS_OF_OURS = {
    *("accessEntry", "bucket", "bucketLifecycleConfiguration", "bucketOwnershipControls"),
    *("bucketPolicy", "bucketPublicAccessBlock", "bucketServerSideEncryptionConfiguration"),
    *("bucketVersioning", "eventRule", "eventSourceMapping", "eventTarget", "function"),
    *("logGroup", "permission", "queue", "queuePolicy", "role", "rolePolicy", "table"),
    "tableItem",
}


def run(layer: str = "operations", **changes: Any) -> Recorded:
    """Record a program beside the cluster with settings changed; read only."""
    return _recorded(f"shop-{layer}", json.dumps({"adopt": ADOPTED | changes}, sort_keys=True))


@functools.cache
def _recorded(stack: str, cluster: str) -> Recorded:
    return run_program(main, stack_name=stack, config={"cluster": cluster})


def watched() -> Recorded:
    return run()


def statements() -> list[tuple[str, dict[str, Any]]]:
    found = watched().of("iam/rolePolicy:RolePolicy")
    assert len(found) == 10  # interruption, tick, sweep, health and slack of two Kafkas
    return [(policy.name, each) for policy in found for each in policy.policy["Statement"]]


def test_every_right_at_watch_reads_or_is_about_what_is_ours() -> None:
    ours = (f"{ACCOUNT}:shop-", "table/shop-", ":::shop-", "function:shop-", "/aws/lambda/shop-")
    for name, each in statements():
        writing = {a for a in each["Action"] if not a.split(":")[1].startswith(READING)}
        if writing <= INTERFACES:
            continue
        assert all(any(mark in arn for mark in ours) for arn in each["Resource"]), (name, each)
        assert not {a for a in writing if a.startswith(("autoscaling:", "ec2:", "eks:"))}


def test_in_the_cluster_watching_only_reads() -> None:
    rules = [
        rule
        for kind in ("ClusterRole", "Role")
        for role in watched().of(f"rbac.authorization.k8s.io/v1:{kind}")
        for rule in role.inputs["rules"]
    ]
    assert rules
    assert {verb for rule in rules for verb in rule["verbs"]} <= {"get", "list"}
    secrets = [rule for rule in rules if "secrets" in rule["resources"]]
    assert all(rule["resourceNames"] for rule in secrets)


def test_nothing_but_what_is_ours_is_made() -> None:
    """Of what stands in their account and cluster, no resource is managed, and none is imported."""
    made = [r for r in watched().resources if r.type.startswith("aws:")]
    assert {r.type.rpartition("/")[2].split(":")[0] for r in made} <= KINDS_OF_OURS
    kinds = {r.type for r in watched().resources if r.type.startswith("kubernetes:")}
    assert {kind.rpartition(":")[2] for kind in kinds} == {
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    }


def test_each_kafka_of_one_eks_cluster_has_names_of_its_own() -> None:
    for kind in ("dynamodb/table:Table", "lambda/function:Function", "sqs/queue:Queue"):
        names = [r.inputs["name"] for r in watched().of(kind)]
        assert len(names) == len(set(names))
        assert {name.split("-")[1] for name in names} == {"orders", "trial"}
    roles = watched().of("rbac.authorization.k8s.io/v1:ClusterRole")
    assert sorted(r.inputs["metadata"]["name"] for r in roles) == [
        *("stillwater-shop-orders-handlers", "stillwater-shop-orders-sweep"),
        *("stillwater-shop-trial-handlers", "stillwater-shop-trial-sweep"),
    ]


def test_the_functions_are_told_whose_machines_are_meant() -> None:
    tick: Any = told(watched(), "shop-orders-handlers-tick-function", TickSettings)
    sweep: Any = told(watched(), "shop-orders-handlers-sweep-function", SweepSettings)
    heard: Any = told(watched(), "shop-orders-handlers-interruption-function", InterruptionSettings)
    assert tick.level == "watch"
    assert tick.nth_queue_url is None
    assert tick.kafka_bootstrap == (KAFKA["bootstrap"],)
    assert (tick.kafka.secret, tick.kafka.authority_secret) == ("eyes", "orders-cluster-ca-cert")
    assert sweep.whose == heard.whose == tick.whose
    assert tick.whose.owns({"aws:autoscaling:groupName": "kafka-b"})
    assert tick.whose.owns({"eks:cluster-name": "shop", "eks:nodegroup-name": "quorum"})
    assert tick.whose.owns(
        {"kubernetes.io/cluster/shop": "owned", "karpenter.sh/nodepool": "spare"}
    )
    assert not tick.whose.owns({"eks:cluster-name": "other", "eks:nodegroup-name": "quorum"})
    assert sweep.pool_labels["eks.amazonaws.com/nodegroup"] == ("quorum",)
    assert heard.eks_cluster == "shop"


def test_a_termination_is_heard_in_whosever_hook_the_machine_waits() -> None:
    (rule,) = [
        r
        for r in watched().of("cloudwatch/eventRule:EventRule")
        if r.inputs["name"] == "shop-orders-terminate"
    ]
    assert json.loads(rule.inputs["eventPattern"])["detail"] == {
        "AutoScalingGroupName": ["kafka-a", "kafka-b", {"prefix": "eks-quorum-"}]
    }


IMAGE = {
    "image": "registry.example/stillwater-gate:1.4",
    "operators": ["system:serviceaccount:ops:roller"],
}


def alarmed() -> Recorded:
    return run(alerts={"email": ["kafka@shop.example"]})


def test_every_alarm_is_about_something_that_was_made_of_its_own_kafka() -> None:
    made = {
        r.inputs["name"]
        for kind in ("sqs/queue:Queue", "lambda/function:Function", "dynamodb/table:Table")
        for r in alarmed().of(kind)
    } | {"shop-orders", "shop-trial"}
    watched_by = {
        (alarm.inputs["name"], value)
        for alarm in alarmed().of("cloudwatch/metricAlarm:MetricAlarm")
        for query in alarm.inputs["metricQueries"]
        for key, value in query.get("metric", {}).get("dimensions", {}).items()
        if key != "Operation"
    }
    assert {value for _, value in watched_by} <= made
    names = {name for name, _ in watched_by}
    for kafka in ("orders", "trial"):
        assert {f"shop-{kafka}-{k}" for k in ("pages-sent", "cluster-unhealthy")} <= names
    assert not any("retained" in name or "nth" in name or "volumes" in name for name in names)
    topics = alarmed().of("sns/topic:Topic")
    assert {t.inputs["name"] for t in topics} == {"shop-orders-alerts", "shop-trial-alerts"}
    tick = alarmed().one("iam/rolePolicy:RolePolicy", "shop-orders-handlers-tick-policy").policy
    assert "CallAPerson" in {each["Sid"] for each in tick["Statement"]}
    dashboards = alarmed().of("cloudwatch/dashboard:Dashboard")
    assert {d.inputs["dashboardName"] for d in dashboards} == {"shop-orders", "shop-trial"}


def test_health_finds_the_nodes_of_a_kafka_that_exists_by_itself() -> None:
    health: Any = told(watched(), "shop-orders-health-function-function", HealthSettings)
    assert health.nodes == ()
    assert (health.cluster, health.namespace) == ("orders", "shop-kafka")
    (role,) = [
        r
        for r in watched().of("rbac.authorization.k8s.io/v1:Role")
        if r.inputs["metadata"]["name"] == "stillwater-shop-orders-health"
    ]
    may = {r: rule["verbs"] for rule in role.inputs["rules"] for r in rule["resources"]}
    assert may == {
        "pods": ["list"],
        "strimzipodsets": ["list"],
        "secrets": ["get"],
        "kafkas": ["get"],
        "kafkarebalances": ["list"],
    }


QUEUE = "https://sqs.us-east-1.amazonaws.com/111122223333/their-drains"

ONE: dict[str, Any] = {"level": "act", "kafkas": [KAFKA]}


def acting() -> Recorded:
    return run(**ONE, queue_url=QUEUE)


def test_acting_puts_hooks_and_a_tag_on_the_named_groups_alone() -> None:
    hooks = acting().of("autoscaling/lifecycleHook:LifecycleHook")
    tags = acting().of("autoscaling/tag:Tag")
    found = {(h.inputs["autoscalingGroupName"], h.inputs["name"]) for h in hooks}
    assert found == {(group, hook) for group in ADOPTED["scaling_groups"] for hook in HOOKS}
    assert {t.inputs["autoscalingGroupName"] for t in tags} == {"kafka-a", "kafka-b"}
    # A hook without its functions holds every termination and releases none.
    assert all(any("tick" in name for name in h.depends_on) for h in hooks)


def test_acting_may_change_the_named_groups_and_send_to_the_named_queue_alone() -> None:
    policy = acting().one("iam/rolePolicy:RolePolicy", "shop-orders-handlers-tick-policy").policy
    by = {each["Sid"]: each["Resource"] for each in policy["Statement"]}
    assert by["ForwardToTheTerminationHandler"] == [
        "arn:aws:sqs:us-east-1:111122223333:their-drains"
    ]
    groups = {arn.rpartition("/")[2] for arn in by["HoldAndReleaseNodes"]}
    assert groups == {"kafka-a", "kafka-b"}
    tick: Any = told(acting(), "shop-orders-handlers-tick-function", TickSettings)
    assert (tick.level, tick.nth_queue_url) == ("act", QUEUE)


def draining() -> Recorded:
    return run(**ONE, drainer="none")


def tick_rules(made: Recorded) -> set[tuple[str, str]]:
    """Return what the tick may do in the whole cluster, as resource and verb."""
    (role,) = [
        r
        for r in made.of("rbac.authorization.k8s.io/v1:ClusterRole")
        if r.inputs["metadata"]["name"] == "stillwater-shop-orders-handlers"
    ]
    return {
        (resource, verb)
        for rule in role.inputs["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_without_a_termination_handler_the_tick_may_evict_and_sends_nothing_to_a_queue() -> None:
    added = tick_rules(draining()) - tick_rules(acting())
    assert added == {("pods/eviction", "create")}
    assert not tick_rules(acting()) - tick_rules(draining())
    policy = draining().one("iam/rolePolicy:RolePolicy", "shop-orders-handlers-tick-policy").policy
    assert "ForwardToTheTerminationHandler" not in {each["Sid"] for each in policy["Statement"]}
    tick: Any = told(draining(), "shop-orders-handlers-tick-function", TickSettings)
    assert (tick.nth_queue_url, tick.drains) == (None, True)
    assert tick.policy.drain_life_seconds < tick.policy.hold_limit_seconds


def installing() -> Recorded:
    return run(**ONE, drainer="ours")


def test_a_termination_handler_of_ours_stands_beside_theirs_and_hears_the_tick_alone() -> None:
    release = installing().one("helm.sh/v3:Release", "shop-orders-nth-release")
    values = release.inputs["values"]
    assert release.inputs["name"] == "shop-orders-nth"
    assert values["fullnameOverride"] == values["serviceAccount"]["name"] == "shop-orders-nth"
    assert values["queueURL"].endswith("/shop-orders-nth")
    # Their machines carry no tag of ours, and no function of ours is public for it.
    assert values["checkTagBeforeDraining"] is False
    assert not {"webhookURL", "extraEnv", "managedTag"} & set(values)
    assert "preferredDuringSchedulingIgnoredDuringExecution" in str(values["affinity"])
    # No rule of AWS's feeds its queue.
    fed = {
        each.inputs["targetId"] for each in installing().of("cloudwatch/eventTarget:EventTarget")
    }
    assert "nth" not in fed
    tick: Any = told(installing(), "shop-orders-handlers-tick-function", TickSettings)
    assert (tick.nth_queue_url, tick.drains) == (values["queueURL"], False)


def test_it_reads_its_queue_and_ends_lifecycle_actions_of_the_named_groups_alone() -> None:
    policy = installing().one("iam/rolePolicy:RolePolicy", "shop-orders-nth-policy").policy
    by = {each["Sid"]: each["Resource"] for each in policy["Statement"]}
    assert {arn.rpartition("/")[2] for arn in by["FinishItsHook"]} == {"kafka-a", "kafka-b"}
    assert [arn.rpartition(":")[2] for arn in by["ReadItsQueue"]] == ["shop-orders-nth"]
    ticks = installing().one("iam/rolePolicy:RolePolicy", "shop-orders-handlers-tick-policy").policy
    sent = {each["Sid"]: each["Resource"] for each in ticks["Statement"]}
    assert sent["ForwardToTheTerminationHandler"] == [
        f"arn:aws:sqs:us-east-1:{ACCOUNT}:shop-orders-nth"
    ]
    assert tick_rules(installing()) == tick_rules(acting())


def test_hooks_come_after_the_termination_handler_that_completes_them() -> None:
    hooks = installing().of("autoscaling/lifecycleHook:LifecycleHook")
    assert all(any("nth" in name for name in hook.depends_on) for hook in hooks)


@pytest.mark.parametrize("made", [watched, acting, draining])
def test_nobody_else_gets_a_termination_handler(made: Any) -> None:
    assert made().of("helm.sh/v3:Release") == []


@pytest.mark.parametrize("level", ["watch", "gate"])
def test_below_act_nobody_may_evict_whatever_the_drainer(level: str) -> None:
    made = run(level=level, drainer="none", **({"eviction_gate": IMAGE} if level == "gate" else {}))
    assert ("pods/eviction", "create") not in tick_rules(made)
    tick: Any = told(made, "shop-orders-handlers-tick-function", TickSettings)
    assert not tick.drains


@every_case(
    ("layer", "changes", "sentence"),
    [
        ("kafka", {}, "A cluster that exists has one layer, operations, and this stack is kafka"),
        ("operations", {"level": "survey"}, "adopt.level is survey, for which nothing is made"),
        ("operations", {"kafkas": [KAFKA, {**KAFKA, "namespace": "lab"}]},
            "shop-kafka/orders and lab/orders would both have the name shop-orders"),
        ("operations", {"subnets": []}, "adopt.level is watch and adopt.subnets is empty"),
        ("operations", ONE, "adopt.level is act and adopt.queue_url is not set"),
        ("operations", ONE | {"drainer": "ours", "queue_url": QUEUE},
            "adopt.queue_url is the queue of their termination handler, and adopt.drainer is ours"),
        ("operations", ONE | {"drainer": "none", "queue_url": QUEUE},
            "adopt.queue_url is the queue of their termination handler, and adopt.drainer is none"),
        ("operations", {"level": "act", "queue_url": QUEUE},
            "adopt.level is act and 2 Kafkas share the description; give each Kafka its own"),
        ("operations", ONE | {"queue_url": QUEUE, "scaling_groups": []},
            "EKS and Karpenter, which take no hooks of others"),
        ("operations", ONE | {"queue_url": QUEUE, "scaling_groups": ["taken"]},
            "Auto Scaling group taken has the tag stillwater:cluster=lab: another Stillwater"),
        ("operations", {"level": "gate"}, "adopt.level is gate and adopt.eviction_gate is not set"),
        ("operations", {"level": "gate", "eviction_gate": {}},
            "eviction_gate.image: it is required; add it."),
        ("operations", {"level": "gate", "eviction_gate": {"image": "stillwater-gate"}},
            "stillwater-gate names no version"),
        ("operations", {"level": "gate", "eviction_gate": IMAGE, "scaling_groups": ["taken"]},
            "Auto Scaling group taken has the tag stillwater:cluster=lab: another Stillwater"),
        ("operations", {"pool_label": None}, "adopt.scaling_groups needs pool_label"),
    ],
)  # fmt: skip
def test_what_cannot_be_operated_is_refused_in_a_sentence(
    layer: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        run(layer, **changes)
    (problem,) = refused.value.problems
    assert sentence in problem


def gating() -> Recorded:
    return run(level="gate", eviction_gate=IMAGE)


def test_at_gate_each_kafka_has_a_gate_of_its_own_and_nothing_of_theirs_is_managed() -> None:
    webhooks = gating().of("admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration")
    found = {w.inputs["metadata"]["name"]: w.inputs["webhooks"] for w in webhooks}
    assert sorted(found) == ["shop-orders-gate", "shop-trial-gate"]
    spaces = {
        name: asked[0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for name, asked in found.items()
    }
    assert spaces == {"shop-orders-gate": "shop-kafka", "shop-trial-gate": "lab"}
    for name, asked in found.items():
        assert {a["clientConfig"]["service"]["name"] for a in asked} == {name}
    for kind in ("apps/v1:Deployment", "core/v1:Service", "core/v1:Secret", "v1:ServiceAccount"):
        made = [r.inputs["metadata"]["name"] for r in gating().resources if r.type.endswith(kind)]
        assert sorted(made) == ["shop-orders-gate", "shop-trial-gate"], kind
    made_in_aws = [r for r in gating().resources if r.type.startswith("aws:")]
    kinds = {r.type.rpartition("/")[2].split(":")[0] for r in made_in_aws}
    assert kinds - KINDS_OF_OURS == {"podIdentityAssociation"}
    assert not gating().of("autoscaling/lifecycleHook:LifecycleHook")


def test_the_gate_runs_off_kafkas_machines_and_knows_its_own_pods_by_name() -> None:
    deployment = gating().one("apps/v1:Deployment", "shop-orders-gate-deployment").inputs
    (preferred,) = deployment["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert preferred["preference"]["matchExpressions"] == [
        {"key": "eks.amazonaws.com/nodegroup", "operator": "NotIn", "values": ["quorum"]},
        {"key": "kafka-pool", "operator": "DoesNotExist"},
        {"key": "karpenter.sh/nodepool", "operator": "NotIn", "values": ["spare"]},
    ]
    webhook = gating().one(
        "admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration",
        "shop-orders-gate-webhooks",
    )
    asked = {each["name"]: each for each in webhook.inputs["webhooks"]}
    (evicted,) = asked["evictions.stillwater.dev"]["matchConditions"]
    assert evicted["expression"] == "request.name.matches('^orders-(.+)-[0-9]+$')"
    left_out = asked["pods.stillwater.dev"]["matchConditions"][0]["expression"]
    assert "system:serviceaccount:shop-kafka:strimzi-cluster-operator" in left_out
    assert '"system:serviceaccount:ops:roller"' in left_out


def written(kind: str) -> list[dict[str, Any]]:
    return [
        rule
        for role in gating().of(f"rbac.authorization.k8s.io/v1:{kind}")
        for rule in role.inputs["rules"]
        if not set(rule["verbs"]) <= {"get", "list"}
    ]


def test_the_gate_writes_its_own_secret_and_webhook_alone() -> None:
    rules = [*written("ClusterRole"), *written("Role")]
    named = {(r["resources"][0], *r["resourceNames"]) for r in rules if "resourceNames" in r}
    assert named == {
        (resource, f"shop-{kafka}-gate")
        for resource in ("secrets", "validatingwebhookconfigurations")
        for kafka in ("orders", "trial")
    }
    assert all("resourceNames" in rule for rule in rules)


def test_who_decides_is_told_that_evictions_ask() -> None:
    tick: Any = told(gating(), "shop-orders-handlers-tick-function", TickSettings)
    assert (tick.level, tick.gated) == ("gate", True)
    assert tick.reach.policy("kafka-a", tick.policy).drain_route == "asked"
    beside: Any = told(
        run(**ONE, queue_url=QUEUE, eviction_gate=IMAGE),
        "shop-orders-handlers-tick-function",
        TickSettings,
    )
    expected = ("act", "gate")
    assert (beside.reach.level_of("kafka-a"), beside.reach.level_of("eks-quorum-0a")) == expected
