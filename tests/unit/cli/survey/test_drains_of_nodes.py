"""Clusters of others by what their Strimzi reads, and by what bars a drain of Kafka's nodes."""

from __future__ import annotations

from tests.every_case import every_case
from tests.unit.cli.survey.further_changes import (
    both,
    deletes_claims,
    image_of_one,
    listener,
    neighbour,
    operator,
    policy,
    served,
    their_budget,
    webhook,
)
from tests.unit.cli.survey.hidden_changes import Change, container_of
from tests.unit.cli.survey.manifests import meta
from tests.unit.cli.survey.others import changed, checks, own
from tests.unit.cli.survey.platforms import pod_set

OPERATOR = "quay.io/strimzi/operator"
BEFORE_V1 = served(kafka="v1beta2", core="v1beta2")
OF_STRIMZI = {"strimzi.io/kind": "Kafka", "strimzi.io/name": "orders-zookeeper"}
LEASES = {"matchLabels": {"kubernetes.io/metadata.name": "web"}}
MUTATING = "mutatingwebhookconfigurations"

STRIMZI: dict[str, tuple[Change, set[str]]] = {
    "0.48, before v1": (both(BEFORE_V1, operator(f"{OPERATOR}:0.48.0")), {"strimzi-before-v1"}),
    "before v1, by digest": (
        both(BEFORE_V1, operator("mirror.example/strimzi/operator@sha256:0a")),
        {"strimzi-before-v1"},
    ),
    "0.50 beside v1 and v1beta2": (
        both(operator(f"{OPERATOR}:0.50.0"), lambda w: w.only_in.update(kafkas="v1")),
        set(),
    ),
    "0.49 with CRDs of 0.48": (
        both(BEFORE_V1, operator(f"{OPERATOR}:0.49.1")),
        {"strimzi-before-v1"},
    ),
    "1.2 with CRDs of 0.48": (BEFORE_V1, {"strimzi-before-v1", "strimzi-api"}),
    "0.48 with CRDs of 1.0": (operator(f"{OPERATOR}:0.48.0"), {"strimzi-api"}),
    "Red Hat's release 2.9": (
        operator("registry.redhat.io/amq-streams/strimzi-rhel9-operator:2.9.0"),
        set(),
    ),
    "a mirror of Red Hat's release 2.9 before v1": (
        both(BEFORE_V1, operator("mirror.example/strimzi-rhel9-operator:2.9.0-3")),
        {"strimzi-before-v1"},
    ),
    "a rebuild that is tagged by its day": (
        both(BEFORE_V1, operator("mirror.example/strimzi/operator:2026.11.03")),
        {"strimzi-before-v1"},
    ),
    "a mirror's tag with a v": (
        both(BEFORE_V1, operator("mirror.example/strimzi/operator:v0.45.0")),
        {"strimzi-before-v1", "strimzi-kubernetes"},
    ),
    "0.45.0 on 1.34": (
        both(BEFORE_V1, operator(f"{OPERATOR}:0.45.0")),
        {"strimzi-before-v1", "strimzi-kubernetes"},
    ),
    "0.45.0 on 1.34, told its version": (
        both(
            BEFORE_V1,
            operator(f"{OPERATOR}:0.45.0", STRIMZI_KUBERNETES_VERSION="major=1,minor=34"),
        ),
        {"strimzi-before-v1"},
    ),
    "0.45.1 on 1.34": (both(BEFORE_V1, operator(f"{OPERATOR}:0.45.1")), {"strimzi-before-v1"}),
    "pods of two images": (
        image_of_one("quay.io/strimzi/kafka:1.1.0-kafka-4.2.0"),
        {"image-skew"},
    ),
    "Connect of the same name that is rolled": (
        pod_set(
            metadata=meta(
                "orders-connect",
                "shop-kafka",
                labels={"strimzi.io/cluster": "orders", "strimzi.io/kind": "KafkaConnect"},
            ),
            status={"pods": 3, "currentPods": 1},
        ),
        set(),
    ),
    "an authority of one's own": (
        lambda w: w.only("kafkas")["spec"].update(
            clusterCa={"generateCertificateAuthority": False}
        ),
        {"own-authority"},
    ),
    "authorities that Strimzi makes": (
        lambda w: w.only("kafkas")["spec"].update(clientsCa={"validityDays": 365}),
        set(),
    ),
    "a pool that wants fewer than there are": (
        lambda w: w.kinds["kafkanodepools"][0]["spec"].update(replicas=2),
        {"shrinking"},
    ),
    "storage that says deleteClaim": (deletes_claims, {"claims-deleted"}),
    "an open listener behind networkPolicyPeers": (
        listener("internal", authentication={}, networkPolicyPeers=[{"podSelector": {}}]),
        {"listener"},
    ),
}
DRAINS: dict[str, tuple[Change, set[str]]] = {
    "a neighbour": (neighbour(), set()),
    "one of several that may leave": (
        both(neighbour(), their_budget(expected=3, desired=2, allowed=1)),
        set(),
    ),
    "one whose budget lets none leave": (
        both(neighbour(), their_budget(expected=1, desired=1, allowed=0)),
        {"drain-barred"},
    ),
    "one whose budget lets none leave today": (
        both(neighbour(), their_budget(expected=3, desired=2, allowed=0)),
        {"drain-barred"},
    ),
    "one of two budgets": (
        both(
            neighbour(),
            their_budget(expected=3, desired=2, allowed=1),
            their_budget("too", expected=3, desired=2, allowed=1),
        ),
        {"drain-barred"},
    ),
    "ZooKeeper's, which Drain Cleaner moves": (
        both(neighbour(labels=OF_STRIMZI), their_budget(expected=3, desired=3, allowed=0)),
        set(),
    ),
    "ZooKeeper's, which nobody moves": (
        both(
            neighbour(labels=OF_STRIMZI),
            their_budget(expected=3, desired=3, allowed=0),
            container_of("drain-cleaner", lambda c: c.update(image="example/else:1")),
        ),
        {"drain-barred", "budget-blocks"},
    ),
    "one of a DaemonSet under such a budget": (
        both(neighbour(owner="DaemonSet"), their_budget(expected=1, desired=1, allowed=0)),
        set(),
    ),
    "one that has ended": (
        both(neighbour(phase="Succeeded"), their_budget(expected=1, desired=1, allowed=0)),
        set(),
    ),
    "a static pod of the kubelet's": (
        neighbour(owner=None, annotations={"kubernetes.io/config.mirror": "x"}),
        set(),
    ),
    "a pod of nobody": (neighbour(owner=None), {"pod-alone"}),
    "one that takes an hour to stop": (neighbour(grace=3600), {"drain-slow"}),
    # What is asked on the way of a broker.
    "a node that joins, unanswered": (webhook("", "nodes", "CREATE"), {"step-refused"}),
    "a node that is cordoned, unanswered": (webhook("", "nodes", "UPDATE"), {"step-refused"}),
    "nodes' own word, unanswered": (webhook("", "nodes/status", "UPDATE"), {"step-refused"}),
    "a lease, unanswered": (webhook("coordination.k8s.io", "leases", "*"), {"step-refused"}),
    "a lease elsewhere, unanswered": (
        webhook("coordination.k8s.io", "leases", "*", namespaceSelector=LEASES),
        # Which namespaces it leaves out is known of those that are listed.
        {"step-refused"},
    ),
    "a disk that is attached, unanswered": (
        webhook("storage.k8s.io", "volumeattachments", "CREATE"),
        {"step-refused"},
    ),
    "a pod that gets its node, unanswered": (
        webhook("", "pods/binding", "CREATE"),
        {"step-refused"},
    ),
    "a pod that is deleted, unanswered": (webhook("", "pods", "DELETE"), {"step-refused"}),
    "the same where it may be missed": (
        webhook("", "nodes", "*", failurePolicy="Ignore"),
        set(),
    ),
    "nodes of some labels": (
        webhook("", "nodes", "*", objectSelector={"matchLabels": {"gpu": "true"}}),
        set(),
    ),
    "everything that has a namespace": (
        webhook("", "*", "UPDATE", scope="Namespaced"),
        set(),
    ),
    "disks of another group": (webhook("", "volumeattachments", "CREATE"), set()),
    "evictions that are changed, unanswered": (
        webhook("", "pods/eviction", "CREATE", kind=MUTATING),
        {"webhook-dead"},
    ),
    "everything that is changed, unanswered": (
        webhook("*", "*/*", "*", kind=MUTATING),
        {"webhook-dead", "pods-refused"},
    ),
    # Policies.
    "a policy for evictions": (policy("pods/eviction", "CREATE"), {"policy-drain"}),
    "a policy for nodes": (policy("nodes", "UPDATE"), {"policy-drain"}),
    "a policy that warns": (policy("pods/eviction", "CREATE", actions=("Warn", "Audit")), set()),
    "a policy for pods": (policy("pods", "CREATE"), set()),
    "a policy for pods whose expressions are wrong": (
        policy("pods", "CREATE", warning="undefined field 'specs'"),
        {"policy-broken"},
    ),
    "a policy for evictions elsewhere": (
        policy("pods/eviction", "CREATE", namespaceSelector={"matchLabels": {"team": "web"}}),
        set(),
    ),
}


@every_case(("change", "said"), STRIMZI.values(), ids=STRIMZI.keys())
def test_releases_of_strimzi_are_judged_by_what_they_read_and_are_served(
    change: Change, said: set[str]
) -> None:
    assert checks(changed(own, change)()) == said


@every_case(("change", "said"), DRAINS.values(), ids=DRAINS.keys())
def test_what_bars_a_drain_beside_kafka_is_found(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said
