"""One broken fact of a healthy cluster is one finding, and it is the right one."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from core.survey.facts import (
    DrainCleaner,
    KafkaListener,
    NodePool,
    Requirement,
    Surveyed,
    Unread,
)
from core.survey.finding import CLEAR, FOUND, NOT_READ, Weight, exit_code
from core.survey.judge import findings
from tests.unit.core.survey.clusters import BUDGET, GOOD, HANDLER, HOOK, KAFKA, VOLUME, node, pod
from tests.unit.core.survey.clusters import group as group_at

POOL = NodePool(name="kafka", expire_after=None, grace=None, consolidation="WhenEmpty", budgets=())
CLEANER = DrainCleaner(title="kafka/cleaner", denies=True, drains_kafka=True)


def kafka(**changes: Any) -> Surveyed:
    return replace(GOOD, kafkas=(replace(KAFKA, **changes),))


def config(**changes: str) -> Surveyed:
    given = {key.replace("_", "."): value for key, value in changes.items()}
    return kafka(config={**KAFKA.config, **given})


def first_pod(**changes: Any) -> Surveyed:
    return replace(GOOD, pods=(replace(pod(0), **changes), pod(1), pod(2)))


def group(**changes: Any) -> Surveyed:
    first = replace(group_at(0), **changes)
    return replace(GOOD, groups={"kafka-0": first, "kafka-1": group_at(1), "kafka-2": group_at(2)})


def handler(**changes: Any) -> Surveyed:
    return replace(GOOD, handlers=(replace(HANDLER, **changes),))


def karpenter(*, auto_mode: bool = False, **changes: Any) -> Surveyed:
    nodes = {
        f"ip-10-0-0-{index}": replace(node(index), node_pool="kafka", auto_mode=auto_mode)
        for index in range(3)
    }
    pools = {"kafka": replace(POOL, **changes)}
    return replace(GOOD, nodes=nodes, node_pools=pools, group_of={}, groups={})


def in_zones(*zones: str) -> Surveyed:
    nodes = {f"ip-10-0-0-{i}": replace(node(i), zone=zone) for i, zone in enumerate(zones)}
    return replace(GOOD, nodes=nodes)


BROKEN = {
    "replicas as many as must be in sync": (config(min_insync_replicas="3"), "replication"),
    "two replicas": (config(offsets_topic_replication_factor="1"), "replication"),
    "one replica suffices": (config(min_insync_replicas="1"), "min-insync"),
    "a listener for everybody": (kafka(listeners=(KafkaListener("plain", None),)), "listener"),
    "no rack": (kafka(rack_aware=False), "rack"),
    "one zone": (in_zones("a", "a", "a"), "zones"),
    "two zones": (in_zones("a", "a", "b"), "zones"),
    "the usual 30 s": (first_pod(grace_seconds=30), "grace"),
    "as long as Kafka waits": (first_pod(grace_seconds=300), "grace"),
    "a pod without a node": (first_pod(node=None), "not-running"),
    "two on a node": (
        replace(GOOD, pods=(*GOOD.pods, replace(pod(0), name="payments-main-3"))),
        "shared-node",
    ),
    "free to share": (first_pod(alone_on_its_node=False), "anti-affinity"),
    "no disk": (first_pod(claims=()), "ephemeral"),
    "deleted with its claim": (
        replace(GOOD, volumes=(replace(VOLUME, reclaim="Delete"),)),
        "reclaim",
    ),
    "bound too early": (replace(GOOD, volumes=(replace(VOLUME, binding="Immediate"),)), "binding"),
    "cannot grow": (replace(GOOD, volumes=(replace(VOLUME, expandable=False),)), "expansion"),
    "two zones in a group": (group(zones=frozenset({"a", "b"})), "group-zones"),
    "no room": (group(maximum=1), "group-maximum"),
    "nothing launches": (group(suspended=frozenset({"Launch"})), "group-suspended"),
    "EKS's own group": (group(managed_node_group="workers", hooks=()), "managed-node-group"),
    "no hook": (group(hooks=()), "hook-missing"),
    "a hook that continues": (
        group(hooks=(replace(HOOK, default_result="CONTINUE"),)),
        "hook-default",
    ),
    "abandoned and not kept": (group(retains_on_abandon=False), "hook-default"),
    "a short hook": (group(hooks=(replace(HOOK, heartbeat_seconds=300),)), "hook-heartbeat"),
    "a budget that lets nobody go": (
        replace(GOOD, budgets=(replace(BUDGET, desired_healthy=3),)),
        "budget-blocks",
    ),
    "two may leave": (replace(GOOD, budgets=(replace(BUDGET, desired_healthy=1),)), "budget-loose"),
    "no handler": (replace(GOOD, handlers=()), "nth-missing"),
    "two handlers": (replace(GOOD, handlers=(HANDLER, HANDLER)), "nth-several"),
    "metadata only": (handler(queue_mode=False), "nth-mode"),
    "too little for pods": (handler(pod_grace_seconds=30), "nth-pod-grace"),
    "too little for nodes": (handler(drain_timeout_seconds=120), "nth-timeout"),
    "nobody asked": (replace(GOOD, eviction_webhooks=()), "eviction-unasked"),
    "a cleaner of others": (
        replace(GOOD, cleaners=(replace(CLEANER, drains_kafka=False),)),
        "cleaner-off",
    ),
    "a cleaner that denies": (replace(GOOD, cleaners=(CLEANER,)), "cleaner-denies"),
    "Karpenter's expiry": (karpenter(expire_after="720h"), "karpenter-expiry"),
    "Karpenter's consolidation": (
        karpenter(consolidation="WhenEmptyOrUnderutilized", budgets=("10%",)),
        "karpenter-consolidation",
    ),
    "Auto Mode": (karpenter(auto_mode=True), "auto-mode"),
    "an instance alone": (
        replace(GOOD, group_of={"i-0": "kafka-0", "i-1": "kafka-1"}),
        "node-alone",
    ),
    "no label": (replace(GOOD, gated_namespaces=frozenset()), "gate-label"),
    "no gate": (first_pod(readiness_gates=frozenset()), "gate-missing"),
    "no controller": (replace(GOOD, balancer_controllers=()), "lbc-missing"),
}


def test_a_healthy_cluster_yields_nothing() -> None:
    assert findings(GOOD) == []
    assert exit_code([]) == CLEAR


@pytest.mark.parametrize(("seen", "check"), BROKEN.values(), ids=BROKEN.keys())
def test_one_broken_fact_is_that_finding_and_no_other(seen: Surveyed, check: str) -> None:
    found = findings(seen)
    assert {each.check for each in found} == {check}
    assert exit_code(found) == FOUND
    assert all(each.subject and each.evidence and each.remedy for each in found)


def test_pods_without_a_budget_are_named_each() -> None:
    found = findings(replace(GOOD, budgets=()))
    assert [each.check for each in found] == ["budget-missing"] * 3


def test_two_budgets_over_a_pod_make_every_eviction_an_error() -> None:
    expression = Requirement(key="strimzi.io/cluster", operator="Exists")
    second = replace(BUDGET, name="ours", match_labels={}, expressions=(expression,))
    found = findings(replace(GOOD, budgets=(BUDGET, second)))
    assert {each.check for each in found} == {"budget-several"}
    assert "ours, payments-kafka" in found[0].evidence


def test_a_group_of_several_zones_that_does_not_rebalance_weighs_less() -> None:
    zones = frozenset({"a", "b"})
    (moving,) = findings(group(zones=zones))
    (still,) = findings(group(zones=zones, suspended=frozenset({"AZRebalance"})))
    assert (moving.weight, still.weight) == (Weight.BROKER, Weight.PRODUCER)


def test_a_budget_of_one_node_or_an_annotation_is_enough_for_consolidation() -> None:
    limited = karpenter(consolidation="Balanced", budgets=("1",))
    assert findings(limited) == []
    kept = tuple(
        replace(pod(i), annotations={"karpenter.sh/do-not-disrupt": "true"}) for i in range(3)
    )
    annotated = replace(karpenter(consolidation="Balanced", budgets=()), pods=kept)
    assert findings(annotated) == []


@pytest.mark.parametrize("part", [field.name for field in fields(Surveyed)])
def test_a_part_that_could_not_be_read_is_unknown_and_never_good(part: str) -> None:
    found = findings(replace(GOOD, **{part: Unread("you may not list it")}))
    assert any(each.weight is Weight.UNKNOWN and "you may not" in each.evidence for each in found)
    assert exit_code(found) == NOT_READ
