"""What a plan says of clusters that other people made, and of what it is asked: one sentence each.

Nothing that is not known makes a plan say that a node may go, or that it is as new.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from core.incidents.observation import NodeClaim, PodView
from core.rotation.plan import Build, Launched
from core.views import Doubt, VoterView
from tests.every_case import every_case
from tests.unit.handlers.fakes import OLD, FakeCluster, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.views import node_view

IDS = (OLD, "i-0b", "i-0c")
EVERYTHING = {"selection": {"everything": True}}
Change = Callable[[FakeCluster], object]


def node(**changed: Any) -> Change:
    def change(cluster: FakeCluster) -> None:
        cluster.change_node(OLD, **changed)

    return change


def pod(node_id: int = 10, **changed: Any) -> Change:
    def change(cluster: FakeCluster) -> None:
        cluster.change_pod(node_id, **changed)

    return change


def kafka(**changed: Any) -> Change:
    return lambda cluster: setattr(cluster, "kafka", replace(healthy_kafka(), **changed))


def combined(*lags: float | None) -> Change:
    voters = tuple(VoterView(n, lag) for n, lag in zip((10, 20, 30), lags, strict=True))

    def change(cluster: FakeCluster) -> None:
        for node_id in cluster.pods:
            pod(node_id, role="combined")(cluster)
        kafka(voters=voters, quorum_leader=20)(cluster)

    return change


def controllers_elsewhere(cluster: FakeCluster) -> None:
    """A pool of controllers alone, on a node of nobody's pools."""
    cluster.node_views["i-x"] = node_view("elsewhere", "i-x", "us-east-1a", pool=None)
    cluster.pods[0] = PodView(
        name="orders-votes-0", node_id=0, role="controller", node_name="elsewhere", ready=True
    )


def by_karpenter(cluster: FakeCluster) -> None:
    cluster.groups.clear()
    cluster.builds.clear()
    cluster.node_claims = tuple(NodeClaim(name=i, uid=i, instance_id=i) for i in IDS)


def detached(cluster: FakeCluster) -> None:
    cluster.set_groups_without(OLD)
    del cluster.builds[OLD]


def groups(**changed: Any) -> Change:
    def change(cluster: FakeCluster) -> None:
        cluster.groups = {n: replace(g, **changed) for n, g in cluster.groups.items()}

    return change


WHOLE: Mapping[str, tuple[Change, str]] = {
    # Where pods run.
    "a broker on a machine of no group": (detached, "belongs to no Auto Scaling group"),
    "a node without labels": (node(pool=None, zone=None), "has no label of its pool and zone"),
    "a node that is no instance": (node(instance_id=None), "which is not an instance of EC2's"),
    "a node that is not listed": (lambda cluster: cluster.node_views.pop(OLD),
        "which Kubernetes does not list"),
    "a pod that no node takes": (pod(node_name=None, ready=False, trouble="Unschedulable"),
        "runs on no node (Unschedulable)"),
    "two brokers on one node": (pod(20, node_name=node_named(OLD)),
        "Pod orders-broker-b-20 of the same Kafka is also on ip-i-0a.ec2.internal"),
    "controllers on nodes of nobody's": (controllers_elsewhere, "Instance i-x of node 0 belongs"),
    "no pods": (lambda cluster: cluster.pods.clear(), "lists no pod of this Kafka's"),
    # What Kafka says, or does not.
    "Kafka is silent": (lambda cluster: setattr(cluster, "kafka", None),
        "No Kafka broker could be reached"),
    "Kafka denies something": (
        kafka(doubts=(Doubt("Kafka refuses DescribeConfigs.", refused=True),)),
        "Whether node 10 may leave is unknown."),
    "no quorum": (kafka(stale=True, quorum_leader=None), "the controllers have no quorum"),
    "partitions that move": (kafka(reassigning=("t-0",)), "are being reassigned, among them t-0"),
    "combined, with a vote away": (combined(0.1, 0.1, None), "only 20 would be left caught up"),
    "every replica needed": (
        kafka(partitions=tuple(replace(p, min_isr=3) for p in healthy_kafka().partitions)),
        "it is not written with acks=all while"),
    "a broker without a pod": (kafka(brokers=frozenset({10, 20, 30, 7})), "Node 7 is part of"),
    # What AWS and Kubernetes say.
    "no groups at all": (lambda cluster: cluster.groups.clear(), "belongs to no Auto Scaling"),
    "groups without room": (groups(maximum=1), "wants 1 instances of at most 1"),
    "a machine in standby": (lambda cluster: cluster.set_lifecycle(OLD, "Standby"),
        "has instance i-0a of node 10 in Standby"),
    "Karpenter's machines": (by_karpenter, "NodeClaim i-0a of node 10 would be drained before"),
    "claims that may not be read": (lambda cluster: setattr(cluster, "node_claims", None),
        "Nothing could be read: The Kubernetes API answered 403."),
    "an API server that is away": (lambda cluster: setattr(cluster, "kubernetes_answers", False),
        "Nothing could be read"),
}  # fmt: skip


def planned(change: Change, **asked: Any) -> str:
    """Return all that a plan says of a cluster in which everything is outdated."""
    station = Station()
    old, new = Build(image_id="ami-1"), Build(image_id="ami-2")
    station.cluster.builds = dict.fromkeys(IDS, Launched(old, new))
    change(station.cluster)
    answer = station.conductor.take({"command": "plan", "actor": "ada", **asked}, station.now)
    nodes = answer.get("plan", {}).get("nodes", ())
    said = [answer.get("said", ""), *answer.get("problems", ())]
    return " ".join([*said, *(each for one in nodes for each in one["objections"])])


@every_case(("change", "words"), WHOLE.values(), ids=WHOLE)
def test_whoever_is_named_by_hand_has_what_speaks_against_it(change: Change, words: str) -> None:
    assert words in planned(change, **EVERYTHING)


ASKED: Mapping[str, tuple[dict[str, Any], str]] = {
    "a node that is no number": ({"selection": {"node_ids": ["x"]}}, "node_ids is 'x', and must"),
    "no list of nodes": ({"selection": {"node_ids": 7}}, "must be lists of node_ids, pools, zones"),
    "no selection": ({"selection": "all"}, "selection is 'all', and must be lists"),
    "a node that is not there": ({"selection": {"node_ids": [99]}},
        "The cluster lacks Kafka node 99"),
    "a pool that is not there": ({"selection": {"pools": ["x"]}}, "lacks a pool x"),
    "a zone that is not there": ({"selection": {"zones": ["z"]}},
        "The cluster lacks nodes in a zone z"),
    "a deadline that is none": ({"deadline_seconds": "soon"}, "deadline_seconds is 'soon'"),
    "a deadline without end": ({"deadline_seconds": float("inf")}, "deadline_seconds is inf"),
    "sizes without a time": ({"held": {"bytes": {}}}, "held.at is None, and must be a number"),
    "sizes that are none": ({"held": {"at": 1.0}}, "must be what `held` answered before"),
    "sizes of tomorrow": ({"held": {"at": 9e9, "bytes": {}}}, "held.at is 9000000000.0"),
    "none at once": ({"at_once": 0}, "must be a whole number from 1"),
}  # fmt: skip


@every_case(("asked", "words"), ASKED.values(), ids=ASKED)
def test_what_is_asked_wrongly_is_refused_in_a_sentence(asked: dict[str, Any], words: str) -> None:
    assert words in planned(lambda _: None, **asked)
