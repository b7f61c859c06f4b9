"""infra.charts: Karpenter and the autoscaler add nodes and take none of Kafka's."""

import email
import json
from typing import Any

import pytest

from core.cluster import parse
from core.settings.functions import TickSettings
from infra.nodes.karpenter import budgets
from tests.unit.infra.programs import ZONES, description, run_layer, spec
from tests.unit.infra.recording import Recorded
from tests.unit.infra.test_adopted import run as run_adopted
from tests.unit.infra.told import told

GATE = {"image": "registry.example/stillwater-gate:1.4"}
RELEASE, POOL = "helm.sh/v3:Release", "karpenter.sh/v1:NodePool"
NODE_CLASS = "karpenter.k8s.aws/v1:EC2NodeClass"
WITH_KARPENTER = description(node_provisioner="karpenter")


@pytest.fixture(scope="module")
def references(layers: dict[str, Recorded]) -> dict[str, dict[str, Any]]:
    return {f"test-{name}": run.outputs for name, run in layers.items()}


@pytest.fixture(scope="module")
def platform(references: dict[str, dict[str, Any]]) -> Recorded:
    return run_layer("platform", WITH_KARPENTER, references)


@pytest.fixture(scope="module")
def kafka(references: dict[str, dict[str, Any]]) -> Recorded:
    return run_layer("kafka", WITH_KARPENTER, references)


def pools(kafka: Recorded) -> dict[str, dict[str, Any]]:
    return {p.inputs["metadata"]["name"]: p.inputs["spec"] for p in kafka.of(POOL)}


def requirements(pool: dict[str, Any]) -> dict[str, list[str]]:
    return {r["key"]: r["values"] for r in pool["template"]["spec"]["requirements"]}


def test_every_pool_has_a_node_pool_in_every_zone_and_no_group(kafka: Recorded) -> None:
    assert set(pools(kafka)) == {
        f"{pool}-{zone[-1]}" for pool in ("controller", "broker") for zone in ZONES
    }
    for zone in ZONES:
        broker = requirements(pools(kafka)[f"broker-{zone[-1]}"])
        assert broker["topology.kubernetes.io/zone"] == [zone]
        assert broker["node.kubernetes.io/instance-type"] == ["r7g.4xlarge"]
    assert not kafka.of("autoscaling/group:Group")
    assert kafka.outputs["auto_scaling_groups"] == {}


def test_a_node_is_kafkas_alone_never_expires_and_ends_when_it_is_empty(kafka: Recorded) -> None:
    for name, pool in pools(kafka).items():
        template, role = pool["template"], name.rpartition("-")[0]
        assert requirements(pool)["karpenter.sh/capacity-type"] == ["on-demand"]
        assert template["metadata"]["labels"] == {"stillwater.dev/pool": role}
        # Without a terminationGracePeriod.
        assert {k: v for k, v in template["spec"].items() if k != "requirements"} == {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": role},
            "taints": [{"key": "dedicated", "value": "kafka", "effect": "NoSchedule"}],
            "expireAfter": "Never",
        }
        disruption = pool["disruption"]
        assert disruption["consolidationPolicy"] == "WhenEmpty"
        assert disruption["budgets"] == [
            {"reasons": ["Empty"], "nodes": "1"},
            {"reasons": ["Drifted", "Underutilized"], "nodes": "0"},
        ]


def test_what_has_drifted_goes_behind_the_gate_and_in_the_window_alone() -> None:
    spec = parse(
        description(
            node_provisioner="karpenter",
            eviction_gate=GATE,
            maintenance={"days": ["sun", "wed"], "start_utc": "23:30", "duration_minutes": 90},
        )
    )
    drifted = [each for each in budgets(spec) if "Drifted" in each["reasons"]]
    assert drifted == [
        {"nodes": "1", "reasons": ["Drifted"]},
        # Thursday 01:00 to Sunday 23:30, and Monday 01:00 to Wednesday 23:30.
        {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 1 * * 4", "duration": "94h30m"},
        {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 1 * * 1", "duration": "70h30m"},
    ]


@pytest.mark.parametrize("lacking", ["eviction_gate", "maintenance"])
def test_without_gate_or_window_nothing_that_has_drifted_goes(lacking: str) -> None:
    given: dict[str, Any] = {"eviction_gate": GATE, "maintenance": {"start_utc": "03:00"}}
    del given[lacking]
    spec = parse(description(node_provisioner="karpenter", **given))
    (drifted,) = [each for each in budgets(spec) if "Drifted" in each["reasons"]]
    assert drifted == {"nodes": "0", "reasons": ["Drifted", "Underutilized"]}


def test_its_kubelet_outlasts_the_pods_grace_as_in_a_group(kafka: Recorded) -> None:
    for each in kafka.of(NODE_CLASS):
        message = email.message_from_string(each.inputs["spec"]["userData"])
        (part,) = (part for part in message.walk() if not part.is_multipart())
        config = json.loads(str(part.get_payload()))["spec"]["kubelet"]["config"]
        shutdown = int(config["shutdownGracePeriod"].removesuffix("s"))
        critical = int(config["shutdownGracePeriodCriticalPods"].removesuffix("s"))
        assert shutdown - critical > spec().timings.pod_grace_seconds


def test_its_nodes_demand_imdsv2_encrypt_their_root_and_have_no_tag_of_handlers(
    kafka: Recorded,
) -> None:
    for each in kafka.of(NODE_CLASS):
        told = each.inputs["spec"]
        options = told["metadataOptions"]
        assert (options["httpTokens"], options["httpPutResponseHopLimit"]) == ("required", 1)
        (root,) = told["blockDeviceMappings"]
        assert root["ebs"]["encrypted"] is True
        # Karpenter refuses the first.
        others = ("kubernetes.io/cluster", "aws-node-termination-handler")
        assert not [key for key in told["tags"] if key.startswith(others)]


def test_it_hears_interruptions_but_not_health_events_weeks_ahead(platform: Recorded) -> None:
    rules = {
        rule.name: json.loads(rule.inputs["eventPattern"])["detail-type"][0]
        for rule in platform.of("cloudwatch/eventRule:EventRule")
        if rule.name.startswith("karpenter")
    }
    assert set(rules.values()) == {
        "EC2 Instance State-change Notification",
        "EC2 Capacity Reservation Instance Interruption Warning",
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
    }
    values = platform.one(RELEASE, "karpenter-release").inputs["values"]
    assert values["settings"]["interruptionQueue"] == "test-orders-karpenter"


def test_its_definitions_come_from_the_chart_that_upgrades_them(platform: Recorded) -> None:
    controller = platform.one(RELEASE, "karpenter-release")
    assert controller.inputs["skipCrds"] is True
    assert "karpenter-definitions" in controller.depends_on


def test_it_ends_only_what_it_launched_for_this_cluster(platform: Recorded) -> None:
    policy = platform.one("iam/rolePolicy:RolePolicy", "karpenter-policy")
    (ending,) = (s for s in policy.policy_statements if "ec2:TerminateInstances" in s["Action"])
    assert ending["Condition"]["StringEquals"] == {
        "aws:ResourceTag/kubernetes.io/cluster/test-orders": "owned"
    }
    (passing,) = (s for s in policy.policy_statements if "iam:PassRole" in s["Action"])
    assert passing["Resource"] == ["arn:aws:iam::123456789012:role/test-orders-nodes"]


def on_claims(layer: Recorded) -> dict[str, set[str]]:
    """Return who may do what with NodeClaims, by the name of the role."""
    found: dict[str, set[str]] = {}
    for role in layer.of("rbac.authorization.k8s.io/v1:ClusterRole"):
        for rule in role.inputs["rules"]:
            if "nodeclaims" in rule["resources"]:
                name = role.inputs["metadata"]["name"].rpartition("-")[2]
                found[name] = found.get(name, set()) | set(rule["verbs"])
    return found


def test_who_decides_about_nodes_lists_claims_and_a_rotation_behind_a_gate_deletes_them(
    references: dict[str, dict[str, Any]], layers: dict[str, Recorded]
) -> None:
    readers = {"handlers": {"list"}, "sweep": {"list"}, "rotate": {"list"}}
    assert on_claims(run_layer("operations", WITH_KARPENTER, references)) == readers
    gated = WITH_KARPENTER | {"eviction_gate": {"image": "registry.example/gate:1.4"}}
    asked = readers | {"handlers": {"list", "delete"}, "gate": {"list"}}
    assert on_claims(run_layer("operations", gated, references)) == asked
    assert on_claims(layers["operations"]) == {}


@pytest.mark.parametrize("pools", [[], ["brokers"]], ids=["none", "one"])
def test_an_adopted_cluster_with_node_pools_is_read_and_never_written(pools: list[str]) -> None:
    watched = run_adopted(node_pools=pools)
    verbs = on_claims(watched).values()
    assert {verb for each in verbs for verb in each} == ({"list"} if pools else set())
    tick: Any = told(watched, "shop-orders-handlers-tick-function", TickSettings)
    assert tick.node_claims is bool(pools)


AUTOSCALER = "helm.sh/v3:Release"
KAFKA_GROUPS = {
    f"autoScalingGroup:*:autoScalingGroupName/test-orders-{pool}-?"
    for pool in ("controller", "broker")
}


@pytest.fixture
def autoscaled(layers: dict[str, Recorded]) -> Recorded:
    return layers["platform"]


@pytest.fixture
def values(autoscaled: Recorded) -> dict[str, Any]:
    return dict(autoscaled.one(AUTOSCALER, "autoscaler-release").inputs["values"])


def groups_of(autoscaled: Recorded, action: str) -> set[str]:
    """Return the groups an action is allowed on, without partition, region and account."""
    return {
        resource.split(":", 5)[5]
        for statement in autoscaled.one(
            "iam/rolePolicy:RolePolicy", "autoscaler-policy"
        ).policy_statements
        if action in statement["Action"]
        for resource in statement["Resource"]
    }


def test_it_may_add_nodes_to_every_group_of_this_cluster(autoscaled: Recorded) -> None:
    system = "autoScalingGroup:*:autoScalingGroupName/eks-test-orders-system-*"
    assert groups_of(autoscaled, "autoscaling:SetDesiredCapacity") == {system, *KAFKA_GROUPS}


def test_it_may_not_end_a_node_of_kafka(autoscaled: Recorded) -> None:
    ended = groups_of(autoscaled, "autoscaling:TerminateInstanceInAutoScalingGroup")
    assert not ended & KAFKA_GROUPS
    assert len(ended) == 1


def test_it_never_moves_nodes_between_zones(values: dict[str, Any]) -> None:
    assert values["extraArgs"]["balance-similar-node-groups"] is False
    assert values["autoDiscovery"] == {"clusterName": "test-orders"}


def test_a_pod_it_evicts_has_its_own_grace(values: dict[str, Any]) -> None:
    assert values["extraArgs"]["max-graceful-termination-sec"] == 330


@pytest.mark.parametrize("chart", ["autoscaler", "lbc", "nth"])
def test_pods_have_credentials_before_they_start(autoscaled: Recorded, chart: str) -> None:
    release = autoscaled.one(AUTOSCALER, f"{chart}-release")
    association = autoscaled.one(
        "eks/podIdentityAssociation:PodIdentityAssociation", f"{chart}-role-association"
    )
    assert {association.name, f"{chart}-policy"} <= release.depends_on
    assert association.inputs["namespace"] == release.inputs["namespace"]
    values = release.inputs["values"]
    account = values.get("rbac", values)["serviceAccount"]["name"]
    assert association.inputs["serviceAccount"] == account


@pytest.mark.parametrize(
    "changed", [{"cluster_autoscaler": False}, {"node_provisioner": "karpenter"}]
)
def test_a_cluster_may_have_none(layers: dict[str, Recorded], changed: dict[str, Any]) -> None:
    references = {"test-foundation": layers["foundation"].outputs}
    recorded = run_layer("platform", description(**changed), references)
    assert not [r.name for r in recorded.resources if r.name.startswith("autoscaler")]
