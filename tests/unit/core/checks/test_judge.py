"""One broken fact of a healthy cluster is one finding, whichever command finds it."""

from __future__ import annotations

from collections.abc import Iterator
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
from core.model.kafka import KafkaListener, Topic
from core.model.nodes import Instance, ManagedNodeGroup, NodeBudget, NodePool
from core.model.workloads import Autoscaler, Balanced, DrainCleaner, EvictionWebhook, Evictor
from infra.kafka.cluster import kafka_spec
from tests.every_case import every_case
from tests.unit.core.checks.clusters import (
    BUDGET,
    GOOD,
    HANDLER,
    HOOK,
    INSTANCE,
    KAFKA,
    OPERATOR,
    QUEUE,
    VOLUME,
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


def kafka(**changes: Any) -> ClusterFacts:
    return replace(GOOD, kafkas=(replace(KAFKA, **changes),))


def rows(table: dict[str, ClusterFacts]) -> Iterator[tuple[ClusterFacts, str]]:
    """Yield of each row `NAME => CHECK` the facts that it is about, and the check."""
    return ((seen, row.rpartition(" => ")[2]) for row, seen in table.items())


def config(**changes: str) -> ClusterFacts:
    given = {key.replace("_", "."): value for key, value in changes.items()}
    return kafka(config={**KAFKA.config, **given})


def first_pod(**changes: Any) -> ClusterFacts:
    return replace(GOOD, pods=(replace(pod(0), **changes), pod(1), pod(2)))


def group(**changes: Any) -> ClusterFacts:
    first = replace(group_at(0), **changes)
    return replace(GOOD, groups={"kafka-0": first, "kafka-1": group_at(1), "kafka-2": group_at(2)})


def handler(**changes: Any) -> ClusterFacts:
    return replace(GOOD, handlers=(replace(HANDLER, **changes),))


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


BROKEN = {
    "replicas as many as must be in sync => no-spare-replica": config(min_insync_replicas="3"),
    "two replicas => replication": config(offsets_topic_replication_factor="1"),
    "one replica suffices => min-insync": config(min_insync_replicas="1"),
    "a listener for everybody => listener": kafka(listeners=(KafkaListener("plain", None),)),
    "no rack => rack": kafka(rack_aware=False),
    "one zone => zones": in_zones("a", "a", "a"),
    "two zones => zones": in_zones("a", "a", "b"),
    "the usual 30 s => grace": first_pod(grace_seconds=30),
    "as long as Kafka waits => grace": first_pod(grace_seconds=300),
    "a pod without a node => not-running": first_pod(node=None),
    "a pod that is not ready => not-running": first_pod(ready=False),
    "a pod too few => not-running": replace(GOOD, pods=(pod(0), pod(1))),
    "what Strimzi complains of => not-running": kafka(not_ready="a certificate has expired"),
    "nobody reconciles => paused": kafka(paused=True),
    "a change that is ignored => ignored": kafka(ignored=(Condition("KafkaStorage", "No."),)),
    "no operator => operator-missing": replace(GOOD, operators=()),
    "an operator of others => operator-missing": replace(
        GOOD, operators=(replace(OPERATOR, namespaces=frozenset({"x"})),)
    ),
    "two operators => operator-several": replace(GOOD, operators=(OPERATOR, OPERATOR)),
    "an unclean election => unclean-election": config(unclean_leader_election_enable="true"),
    "no controlled shutdown => controlled-shutdown": config(controlled_shutdown_enable="false"),
    "a topic of one replica => topic-replicas": topic(replicas=1),
    "a topic that wants all => topic-no-spare-replica": topic(min_in_sync=3),
    "two controllers => quorum": voters(2),
    "controllers on one node => quorum-node": voters(3, same_node=True),
    "spot => spot": replace(
        GOOD, instances={**GOOD_INSTANCES, "i-1": Instance(lifecycle="spot", tags=TAGS)}
    ),
    "two on a node => shared-node": replace(
        GOOD,
        pools=tuple(replace(pool, replicas=4) for pool in GOOD.pools),
        pods=(*GOOD.pods, replace(pod(0), name="payments-main-3")),
    ),
    "free to share => anti-affinity": first_pod(alone_on_its_node=False),
    "an idle node with a leftover taint => node-takes-none": replace(
        GOOD,
        idle_nodes={
            "ip-10-0-0-9": replace(
                node(0),
                taints=(Taint(key="ebs.csi.aws.com/agent-not-ready", effect="NoSchedule"),),
            )
        },
    ),
    "an idle node that is not Ready => node-takes-none": replace(
        GOOD, idle_nodes={"ip-10-0-0-9": replace(node(0), ready=False)}
    ),
    "an idle node that is too small => node-takes-none": replace(
        GOOD,
        pods=tuple(replace(p, requests={"memory": Decimal(8)}) for p in GOOD.pods),
        idle_nodes={"ip-10-0-0-9": replace(node(0), allocatable={"memory": Decimal(7)})},
    ),
    "no disk => ephemeral": first_pod(claims=()),
    "deleted with its claim => reclaim": replace(
        GOOD, volumes=(replace(VOLUME, reclaim="Delete"),)
    ),
    "bound too early => binding": replace(GOOD, volumes=(replace(VOLUME, binding="Immediate"),)),
    "cannot grow => expansion": replace(GOOD, volumes=(replace(VOLUME, expandable=False),)),
    "a node's own disk => local-volume": replace(GOOD, volumes=(replace(VOLUME, on_node=True),)),
    "a network's disk => network-file-system": replace(
        GOOD, volumes=(replace(VOLUME, shared_by="NFS"),)
    ),
    "a disk on credit => gp2": replace(GOOD, volumes=(replace(VOLUME, ebs_type="gp2", gib=500.0),)),
    "an age limit => group-lifetime": group(lifetime_seconds=1_209_600),
    "a load balancer's opinion => group-health": group(asks=frozenset({"ELB"})),
    "two zones in a group => group-zones": group(zones=frozenset({ZONES[0], "b"})),
    "no room => group-maximum": group(maximum=1),
    "nothing launches => group-suspended": group(suspended=frozenset({"Launch"})),
    "no hook => hook-missing": group(hooks=()),
    "a hook that continues => hook-default": group(
        hooks=(replace(HOOK, default_result="CONTINUE"),)
    ),
    "abandoned and not kept => hook-default": group(on_abandon=None),
    "a short hook => hook-heartbeat": group(hooks=(replace(HOOK, heartbeat_seconds=300),)),
    "a hook shorter than a drain => hook-heartbeat": group(
        hooks=(replace(HOOK, heartbeat_seconds=500),)
    ),
    "beaten too rarely => hook-heartbeat": replace(
        group(hooks=(replace(HOOK, heartbeat_seconds=300),)),
        handlers=(replace(HANDLER, beat_seconds=300),),
    ),
    "a share nobody can count => budget-blocks": replace(
        GOOD, budgets=(replace(BUDGET, least_available=None, most_unavailable="1"),)
    ),
    "a budget that lets nobody go => budget-blocks": replace(
        GOOD, budgets=(replace(BUDGET, least_available="3", desired_healthy=3),)
    ),
    "two may leave => budget-loose": replace(GOOD, budgets=(replace(BUDGET, desired_healthy=1),)),
    "no handler => nth-missing": replace(GOOD, handlers=()),
    "two handlers => nth-several": replace(GOOD, handlers=(HANDLER, HANDLER)),
    "metadata only => nth-mode": handler(queue_mode=False),
    "too little for pods => nth-pod-grace": handler(pod_grace_seconds=30),
    "too little for nodes => nth-timeout": handler(drain_timeout_seconds=120),
    "only cordons => nth-idle": handler(drains=False),
    "a tag that is missing => nth-tag": handler(asks_for_tag="x/managed"),
    "not told of terminations => nth-deaf": replace(
        GOOD, queues={"https://sqs/theirs": replace(QUEUE, patterns=())}
    ),
    "forgets too early => nth-queue": replace(
        GOOD, queues={"https://sqs/theirs": replace(QUEUE, kept_seconds=300)}
    ),
    "volumes taken from a living node => nth-out-of-service": handler(taints_out_of_service=True),
    "a gate that is gone => webhook-dead": replace(
        GOOD,
        eviction_webhooks=(
            EvictionWebhook(name="gate", unanswered="Service tools/gate, which does not exist"),
        ),
    ),
    "a cleaner elsewhere => cleaner-elsewhere": replace(
        GOOD, cleaners=(replace(CLEANER, denies=False, namespaces=frozenset({"x"})),)
    ),
    "a cleaner that lets pass => cleaner-passed": replace(
        GOOD, cleaners=(replace(CLEANER, denies=False),)
    ),
    "an autoscaler that takes Strimzi's pods => autoscaler": replace(
        GOOD, autoscalers=(Autoscaler(title="ca", scales_down=True, takes_custom=True),)
    ),
    "nobody asked => eviction-unasked": replace(GOOD, eviction_webhooks=()),
    "a cleaner of others => cleaner-off": replace(
        GOOD, cleaners=(replace(CLEANER, drains_kafka=False),)
    ),
    "a cleaner that denies => cleaner-denies": replace(GOOD, cleaners=(CLEANER,)),
    "Karpenter's expiry => karpenter-expiry": karpenter(expire_after="720h"),
    "Karpenter's patience => karpenter-grace": karpenter(grace="5m"),
    "Karpenter's consolidation => karpenter-consolidation": karpenter(
        consolidation="WhenEmptyOrUnderutilized", budgets=(NodeBudget(written="10%"),)
    ),
    "Karpenter's taint => karpenter-toleration": replace(
        karpenter(), pods=(replace(pod(0), ignores_disruption=True), pod(1), pod(2))
    ),
    "Auto Mode => auto-mode": karpenter(auto_mode=True),
    "an instance alone => node-alone": replace(GOOD, group_of={"i-0": "kafka-0", "i-1": "kafka-1"}),
    "no label => gate-label": replace(GOOD, gated_namespaces={}),
    "no gate => gate-missing": first_pod(readiness_gates=frozenset()),
    "no controller => lbc-missing": replace(GOOD, balancer_controllers=()),
}


def test_a_healthy_cluster_yields_nothing() -> None:
    assert findings(GOOD) == []
    assert exit_code([]) == CLEAR


@every_case(("seen", "check"), rows(BROKEN), ids=BROKEN)
def test_one_broken_fact_is_that_finding_and_no_other(seen: ClusterFacts, check: str) -> None:
    found = findings(seen)
    assert {each.check for each in found} == {check}
    assert exit_code(found) == FOUND
    assert all(each.subject and each.evidence and each.remedy for each in found)


ADVISED = {
    "EKS's own group => managed-node-group": group(managed_node_group="workers", hooks=()),
    "an even quorum => quorum-even": voters(4),
    "ZooKeeper => zookeeper": kafka(zookeeper=True),
    "a descheduler => evictor": replace(
        GOOD, evictors=(Evictor(title="kube-system/d", tool="the descheduler"),)
    ),
}


@every_case(("seen", "check"), rows(ADVISED), ids=ADVISED)
def test_what_is_worth_knowing_is_said_and_breaks_nothing(seen: ClusterFacts, check: str) -> None:
    found = findings(seen)
    assert [(each.check, each.weight) for each in found] == [(check, Weight.ADVICE)]
    assert exit_code(found) == CLEAR


def test_how_eks_updates_its_own_group_is_judged() -> None:
    eks = group(managed_node_group="workers", hooks=(), desired=6, maximum=6)

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
    zones = frozenset({ZONES[0], "b"})
    (moving,) = findings(group(zones=zones))
    (still,) = findings(group(zones=zones, suspended=frozenset({"AZRebalance"})))
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
        "kafka": {"default_replication_factor": 2, "min_insync_replicas": 1}
    },
    "all in sync": {"kafka": {"min_insync_replicas": 3}},
    "a tier's metadata all in sync": {"kafka": {"config": {f"{RLMM}.replication.factor": 2}}},
    "unclean leaders": {"kafka": {"config": {"unclean.leader.election.enable": True}}},
    "an open listener": {
        "kafka": {
            "listener": {"authentication": "none", "anonymous_clients": True},
            "authorization": "none",
        }
    },
}


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
