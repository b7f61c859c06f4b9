"""One broken fact of a healthy cluster is one finding, whichever command finds it."""

from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

import pytest

from cli.survey.kafka import kafkas, topics
from core.availability.operator import Condition
from core.checks import table
from core.checks.facts import ClusterFacts
from core.checks.finding import CLEAR, FOUND, NOT_READ, Finding, Weight, exit_code
from core.checks.table import description_findings, findings
from core.cluster import ClusterSpec, parse
from core.ground.fields import Unknown
from core.ground.placement import Requirement, Taint
from core.model.kafka import Topic
from core.model.nodes import Instance, ManagedNodeGroup, NodeBudget, NodePool
from core.model.workloads import Autoscaler, Balanced, DrainCleaner, Evictor
from infra.kafka.cluster import kafka_spec
from tests.every_case import every_case
from tests.tables import cases, changed
from tests.unit.core.checks.clusters import (
    BUDGET,
    GOOD,
    HANDLER,
    INSTANCE,
    OPERATOR,
    ZONES,
    node,
    pod,
)
from tests.unit.core.checks.clusters import group as group_at
from tests.unit.infra.programs import description

ONE = NodeBudget(written="1")
POOL = NodePool(
    name="kafka", expire_after=None, grace=None, consolidation="WhenEmpty", budgets=(ONE,)
)
MANAGED = ManagedNodeGroup(name="workers", at_once=1, percent_at_once=None, strategy="DEFAULT")
TAGS = {"drain-me": ""}
GOOD_INSTANCES = {f"i-{index}": replace(INSTANCE, tags=TAGS) for index in range(4)}
GOOD_NODES = {f"ip-10-0-0-{index}": node(index) for index in range(3)}
GOOD_GROUPS = {f"kafka-{index}": group_at(index) for index in range(3)}
GOOD_GROUP_OF = {f"i-{index}": f"kafka-{index}" for index in range(3)}
GOOD_PODS = tuple(map(pod, range(3)))
GOOD_BALANCED = Balanced(
    namespace="streaming", name="brokers", selector=pod(0).labels, target_group="brokers"
)
CLEANER = DrainCleaner(title="kafka/cleaner", denies=True, drains_kafka=True)


def karpenter(*, auto_mode: bool = False, **changes: Any) -> ClusterFacts:
    nodes = {
        f"ip-10-0-0-{index}": replace(node(index), node_pool="kafka", auto_mode=auto_mode)
        for index in range(3)
    }
    pools = {"kafka": replace(POOL, **changes)}
    return replace(GOOD, nodes=nodes, node_pools=pools, group_of={}, groups={})


def in_zones(*zones: str) -> ClusterFacts:
    nodes = {f"ip-10-0-0-{i}": replace(node(i), zone=zone) for i, zone in enumerate(zones)}
    named = dict(zip(GOOD_GROUPS, zones, strict=True))
    groups = {n: replace(GOOD_GROUPS[n], zones=frozenset({z})) for n, z in named.items()}
    return replace(GOOD, nodes=nodes, groups=groups)


def topic(**changes: int) -> ClusterFacts:
    given = {"replicas": None, "min_in_sync": None, **changes}
    named = Topic(namespace="streaming", name="orders", kafka="payments", **given)
    return replace(GOOD, topics=(named,))


def voters(count: int, *, same_node: bool = False) -> ClusterFacts:
    """Give the cluster controllers beside its brokers."""
    alone = (
        replace(
            pod(index),
            name=f"payments-controllers-{index}",
            broker=False,
            controller=True,
            node="ip-10-0-0-0" if same_node else f"ip-10-0-0-{index}",
            labels={**pod(index).labels, "role": "controller"},
        )
        for index in range(count)
    )
    fourth = replace(GOOD_NODES["ip-10-0-0-0"], name="ip-10-0-0-3", zone="d", instance_id="i-3")
    fourth_group = replace(GOOD_GROUPS["kafka-0"], name="kafka-3", zones=frozenset({"d"}))
    nodes = {**GOOD_NODES, fourth.name: fourth}
    balanced = (replace(GOOD_BALANCED, selector={**GOOD_BALANCED.selector, "role": "broker"}),)
    return replace(
        GOOD,
        pods=(*GOOD_PODS, *alone),
        nodes=nodes,
        instances=GOOD_INSTANCES,
        group_of={**GOOD_GROUP_OF, "i-3": "kafka-3"},
        groups={**GOOD_GROUPS, "kafka-3": fourth_group},
        balanced=balanced,
    )


BROKEN = """
kafkas.0.config: {default.replication.factor: "3", min.insync.replicas: "3"} => no-spare-replica
kafkas.0.config: {default.replication.factor: "3", min.insync.replicas: "2",
    offsets.topic.replication.factor: "1"} => replication
kafkas.0.config: {default.replication.factor: "3", min.insync.replicas: "1"} => min-insync
{kafkas.0.listeners.0.name: plain, kafkas.0.listeners.0.authentication: null} => listener
kafkas.0.rack_aware: false => rack
{nodes.ip-10-0-0-0.zone: a, nodes.ip-10-0-0-1.zone: a, nodes.ip-10-0-0-2.zone: a,
    groups.kafka-0.zones: [a], groups.kafka-1.zones: [a], groups.kafka-2.zones: [a]} => zones
{nodes.ip-10-0-0-0.zone: a, nodes.ip-10-0-0-1.zone: a, nodes.ip-10-0-0-2.zone: b,
    groups.kafka-0.zones: [a], groups.kafka-1.zones: [a], groups.kafka-2.zones: [b]} => zones
pods.0.grace_seconds: 30 => grace
pods.0.grace_seconds: 300 => grace
pods.0.node: null => not-running
pods.0.ready: false => not-running
kafkas.0.not_ready: a certificate has expired => not-running
kafkas.0.paused: true => paused
operators: [] => operator-missing
kafkas.0.config: {default.replication.factor: "3", min.insync.replicas: "2",
    unclean.leader.election.enable: "true"} => unclean-election
kafkas.0.config: {default.replication.factor: "3", min.insync.replicas: "2",
    controlled.shutdown.enable: "false"} => controlled-shutdown
pods.0.alone_on_its_node: false => anti-affinity
pods.0.claims: [] => ephemeral
volumes.0.reclaim: Delete => reclaim
volumes.0.binding: Immediate => binding
volumes.0.expandable: false => expansion
volumes.0.on_node: true => local-volume
volumes.0.shared_by: NFS => network-file-system
{volumes.0.ebs_type: gp2, volumes.0.gib: 500.0} => gp2
groups.kafka-0.lifetime_seconds: 1209600 => group-lifetime
groups.kafka-0.asks: [ELB] => group-health
groups.kafka-0.zones: [b, eu-north-1a] => group-zones
groups.kafka-0.maximum: 1 => group-maximum
groups.kafka-0.suspended: [Launch] => group-suspended
groups.kafka-0.hooks: [] => hook-missing
groups.kafka-0.hooks.0.default_result: CONTINUE => hook-default
groups.kafka-0.on_abandon: null => hook-default
groups.kafka-0.hooks.0.heartbeat_seconds: 300 => hook-heartbeat
groups.kafka-0.hooks.0.heartbeat_seconds: 500 => hook-heartbeat
{groups.kafka-0.hooks.0.heartbeat_seconds: 300, handlers.0.beat_seconds: 300} => hook-heartbeat
{budgets.0.least_available: null, budgets.0.most_unavailable: "1"} => budget-blocks
{budgets.0.least_available: "3", budgets.0.desired_healthy: 3} => budget-blocks
budgets.0.desired_healthy: 1 => budget-loose
handlers: [] => nth-missing
handlers.0.queue_mode: false => nth-mode
handlers.0.pod_grace_seconds: 30 => nth-pod-grace
handlers.0.drain_timeout_seconds: 120 => nth-timeout
handlers.0.drains: false => nth-idle
handlers.0.asks_for_tag: x/managed => nth-tag
queues.https://sqs/theirs.patterns: [] => nth-deaf
queues.https://sqs/theirs.kept_seconds: 300 => nth-queue
handlers.0.taints_out_of_service: true => nth-out-of-service
{eviction_webhooks.0.name: gate, eviction_webhooks.0.unanswered: "Service tools/gate, which does not
    exist"} => webhook-dead
eviction_webhooks: [] => eviction-unasked
group_of: {i-0: kafka-0, i-1: kafka-1} => node-alone
gated_namespaces: {} => gate-label
pods.0.readiness_gates: [] => gate-missing
balancer_controllers: [] => lbc-missing
"""
AN_IDLE_NODE = "idle_nodes.ip-10-0-0-9"
AGENT_NOT_READY = Taint(key="ebs.csi.aws.com/agent-not-ready", effect="NoSchedule")
AUTOSCALER = Autoscaler(title="ca", scales_down=True, takes_custom=True)
TEN_PERCENT = (NodeBudget(written="10%"),)
OF_OTHERS = [
    ({"pods": (pod(0), pod(1))}, "not-running"),
    ({"kafkas.0.ignored": (Condition("KafkaStorage", "No."),)}, "ignored"),
    ({"operators.0.namespaces": frozenset({"x"})}, "operator-missing"),
    ({"operators": (OPERATOR, OPERATOR)}, "operator-several"),
    ({"instances": {**GOOD_INSTANCES, "i-1": Instance(lifecycle="spot", tags=TAGS)}}, "spot"),
    ({"pools.0.replicas": 4, "pods": (*GOOD.pods, replace(pod(0), name="payments-main-3"))},
        "shared-node"),
    ({AN_IDLE_NODE: replace(node(0), taints=(AGENT_NOT_READY,))}, "node-takes-none"),
    ({AN_IDLE_NODE: replace(node(0), ready=False)}, "node-takes-none"),
    (
        {"pods": tuple(replace(p, requests={"memory": Decimal(8)}) for p in GOOD.pods),
            AN_IDLE_NODE: replace(node(0), allocatable={"memory": Decimal(7)})}, "node-takes-none"),
    ({"handlers": (HANDLER, HANDLER)}, "nth-several"),
    ({"cleaners": (replace(CLEANER, denies=False, namespaces=frozenset({"x"})),)},
        "cleaner-elsewhere"),
    ({"cleaners": (replace(CLEANER, denies=False),)}, "cleaner-passed"),
    ({"cleaners": (replace(CLEANER, drains_kafka=False),)}, "cleaner-off"),
    ({"cleaners": (CLEANER,)}, "cleaner-denies"),
    ({"autoscalers": (AUTOSCALER,)}, "autoscaler"),
]  # fmt: skip
BUILT = [
    (topic(replicas=1), "topic-replicas"),
    (topic(min_in_sync=3), "topic-no-spare-replica"),
    (voters(2), "quorum"),
    (voters(3, same_node=True), "quorum-node"),
    (karpenter(expire_after="720h"), "karpenter-expiry"),
    (karpenter(grace="5m"), "karpenter-grace"),
    (
        karpenter(consolidation="WhenEmptyOrUnderutilized", budgets=TEN_PERCENT),
        "karpenter-consolidation",
    ),
    (changed(karpenter(), {"pods.0.ignores_disruption": True}), "karpenter-toleration"),
    (karpenter(auto_mode=True), "auto-mode"),
]


def test_a_healthy_cluster_yields_nothing() -> None:
    assert findings(GOOD) == []
    assert exit_code([]) == CLEAR


@every_case(("given", "check"), [*cases(BROKEN), *OF_OTHERS, *BUILT], ids=lambda x: str(x)[:80])
def test_one_broken_fact_is_that_finding_and_no_other(given: Any, check: str) -> None:
    found = findings(changed(GOOD, given) if isinstance(given, dict) else given)
    assert {each.check for each in found} == {check}
    assert exit_code(found) == FOUND
    assert all(each.subject and each.evidence and each.remedy for each in found)


MANAGED_GROUP = {"groups.kafka-0.managed_node_group": "workers", "groups.kafka-0.hooks": []}
ADVISED = [
    (changed(GOOD, MANAGED_GROUP), "managed-node-group"),
    (voters(4), "quorum-even"),
    (changed(GOOD, {"kafkas.0.zookeeper": True}), "zookeeper"),
    (replace(GOOD, evictors=(Evictor(title="kube-system/d", tool="the descheduler"),)), "evictor"),
]


@every_case(("seen", "check"), ADVISED, ids=lambda value: str(value)[:80])
def test_what_is_worth_knowing_is_said_and_breaks_nothing(seen: ClusterFacts, check: str) -> None:
    found = findings(seen)
    assert [(each.check, each.weight) for each in found] == [(check, Weight.ADVICE)]
    assert exit_code(found) == CLEAR


def test_how_eks_updates_its_own_group_is_judged() -> None:
    large = {"groups.kafka-0.desired": 6, "groups.kafka-0.maximum": 6}
    eks = changed(GOOD, MANAGED_GROUP | large)

    def checks(**changes: Any) -> set[str]:
        managed = {"kafka-0": replace(MANAGED, **changes)}
        return {each.check for each in findings(replace(eks, managed_node_groups=managed))}

    assert checks() == {"managed-node-group"}
    assert checks(at_once=2) == {"managed-node-group", "managed-update"}
    assert checks(at_once=None, percent_at_once=33) == {"managed-node-group", "managed-update"}
    assert checks(strategy="MINIMAL") == {"managed-node-group", "managed-minimal"}


def test_a_combined_pod_is_a_vote_that_leaves_with_its_broker() -> None:
    both = tuple(replace(each, controller=True) for each in GOOD_PODS)
    (found,) = findings(replace(GOOD, pods=both))
    assert (found.check, found.weight) == ("combined", Weight.ADVICE)
    (first, *_) = findings(replace(in_zones("a", "a", "b"), pods=both))
    assert {each.check for each in findings(replace(in_zones("a", "a", "b"), pods=both))} == {
        "zones",
        "quorum-zone",
        "combined",
    }
    assert first.weight is Weight.PRODUCER


def test_a_budget_without_a_status_is_counted_as_the_controller_would() -> None:
    def found(**written: str | None) -> list[str]:
        budget = replace(
            BUDGET,
            **{"least_available": None, "desired_healthy": None, "expected_pods": None, **written},
        )
        pods = tuple(replace(each, owner="StatefulSet") for each in GOOD_PODS)
        return [each.check for each in findings(replace(GOOD, budgets=(budget,), pods=pods))]

    assert found(most_unavailable="1") == found(least_available="2") == []
    assert found(most_unavailable="34%") == found(least_available="0") == ["budget-loose"]
    assert found(least_available="66%") == []
    assert found(most_unavailable="0") == found(least_available="90%") == ["budget-blocks"]


def test_pods_without_a_budget_are_one_finding_that_names_them() -> None:
    (found,) = findings(replace(GOOD, budgets=()))
    assert found.check == "budget-missing"
    assert "payments-main-0, payments-main-1, payments-main-2" in found.evidence


def test_two_budgets_over_a_pod_make_every_eviction_an_error() -> None:
    expression = Requirement(key="strimzi.io/cluster", operator="Exists")
    second = replace(BUDGET, name="ours", match_labels={}, expressions=(expression,))
    found = findings(replace(GOOD, budgets=(BUDGET, second)))
    assert {each.check for each in found} == {"budget-several"}
    assert "ours, payments-kafka" in found[0].evidence


def test_a_group_of_several_zones_that_does_not_rebalance_weighs_less() -> None:
    wide = changed(GOOD, {"groups.kafka-0.zones": [ZONES[0], "b"]})
    (moving,) = findings(wide)
    (still,) = findings(changed(wide, {"groups.kafka-0.suspended": ["AZRebalance"]}))
    assert (moving.weight, still.weight) == (Weight.BROKER, Weight.PRODUCER)


def test_a_budget_of_one_node_or_an_annotation_is_enough_for_consolidation() -> None:
    limited = karpenter(consolidation="Balanced", budgets=(ONE,))
    assert findings(limited) == []
    kept = tuple(
        replace(pod(i), annotations={"karpenter.sh/do-not-disrupt": "true"}) for i in range(3)
    )
    annotated = replace(karpenter(consolidation="Balanced", budgets=()), pods=kept)
    assert findings(annotated) == []


@every_case("part", [field.name for field in fields(ClusterFacts)])
def test_a_part_that_could_not_be_read_is_unknown_and_never_good(part: str) -> None:
    found = findings(replace(GOOD, **{part: Unknown("you may not list it")}))
    assert any(each.weight is Weight.UNKNOWN and "you may not" in each.evidence for each in found)
    assert exit_code(found) == NOT_READ


RLMM = "rlmm.config.remote.log.metadata.topic"
BROKEN_SPECS = {
    "one in sync": {"kafka": {"min_insync_replicas": 1}},
    "two replicas, one in sync": {
        "kafka": {"default_replication_factor": 2, "min_insync_replicas": 1}},
    "all in sync": {"kafka": {"min_insync_replicas": 3}},
    "a tier's metadata all in sync": {"kafka": {"config": {f"{RLMM}.replication.factor": 2}}},
    "unclean leaders": {"kafka": {"config": {"unclean.leader.election.enable": True}}},
    "an open listener": {
        "kafka": {"listener": {"authentication": "none", "anonymous_clients": True},
            "authorization": "none"}},
}  # fmt: skip


class OneKafka:
    """An API server that holds what the stacks write of a description's Kafka."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.item = {
            "metadata": {"name": spec.name, "namespace": spec.kubernetes.namespace},
            "spec": kafka_spec(spec),
        }

    def get(self, path: str, **_query: object) -> dict[str, Any]:
        if path.endswith("/kafkas"):
            return {"items": [self.item]}
        if path.endswith("kafka.strimzi.io"):
            version = {"groupVersion": "kafka.strimzi.io/v1", "version": "v1"}
            return {"preferredVersion": version, "versions": [version]}
        return {"items": []}


def live_findings(spec: ClusterSpec) -> set[Finding]:
    """Return what `survey` and `doctor` say of the Kafka that the stacks write."""
    api: Any = OneKafka(spec)
    facts = ClusterFacts(kafkas=kafkas(api, None), topics=topics(api, None), read_at=0)
    return set(table.findings(facts))


@pytest.mark.parametrize("said", BROKEN_SPECS.values(), ids=BROKEN_SPECS)
def test_a_fault_is_the_same_of_a_description_and_of_what_it_becomes(said: dict[str, Any]) -> None:
    spec = parse(description(**said))
    of_kafka = {each for each in description_findings(spec)[0] if each.subject.startswith("Kafka ")}
    assert of_kafka
    assert live_findings(spec) == of_kafka


def test_a_whole_cluster_has_no_fault_anywhere() -> None:
    assert live_findings(parse(description())) == set()
