"""A doctor of clusters that exist, and what `check` says of their descriptions."""

from dataclasses import replace
from typing import Any

import pytest

from core.checks.adopted import Standing, StandingGate, findings, secrets_named, unread_parts
from core.checks.finding import RULES, Weight
from core.checks.table import description_findings, stops_up
from core.cluster import ClusterSpec, adoption, parse
from core.cluster.adoption import Adoption
from core.ground.errors import InvalidInput
from core.ground.fields import Unknown
from core.ground.naming import CLUSTER_TAG
from core.model.nodes import LifecycleHook, ScalingGroup
from core.model.workloads import TerminationHandler, TerminationQueue
from infra.spec import problems_of
from tests.every_case import every_case
from tests.unit.core.checks.test_contradictions import ZONES, spec
from tests.unit.infra.programs import BROKER as BROKERS
from tests.unit.infra.programs import CONTROLLER, description

QUEUE = "https://sqs.eu-north-1.amazonaws.com/111122223333/their-drains"
IMAGE = "registry.example/stillwater-gate:1.4"
GOOD: dict[str, Any] = {
    "eks_cluster": "shop",
    "region": "eu-north-1",
    "kafkas": [
        {"namespace": "shop-kafka", "name": "orders", "bootstrap": "orders.example.com:9093",
            "authentication": "tls", "credentials_secret": "eyes"}],
    "scaling_groups": ["kafka-a"],
    "managed_node_groups": ["quorum"],
    "node_pools": ["spare"],
    "pool_label": "kafka-pool",
    "queue_url": QUEUE,
    "subnets": ["subnet-0123456789abcdef0"],
    "security_groups": ["sg-0123456789abcdef0"],
    "eviction_gate": {"image": IMAGE},
}  # fmt: skip
FUNCTIONS, QUEUES = {"shop-orders-tick": "orders"}, {"shop-orders-ticks": "orders"}


def adopted(level: str, **changed: Any) -> Adoption:
    return adoption.parse({"adopt": {**GOOD, "level": level, **changed}})


def hook(name: str, **changed: Any) -> LifecycleHook:
    beat = adopted("act").timings.hook_heartbeat_timeout_seconds
    made = LifecycleHook(name=name, heartbeat_seconds=beat, default_result="ABANDON")
    return replace(made, **changed)


THEIRS = ScalingGroup(
    name="kafka-a",
    zones=frozenset({"eu-north-1a"}),
    desired=1,
    maximum=2,
    suspended=frozenset(),
    on_abandon="retain",
    tags={},
)
HELD = replace(THEIRS, hooks=(hook("drain"), hook("gate")), tags={CLUSTER_TAG: "shop-orders"})
NTH = TerminationHandler(
    title="Deployment kube-system/nth",
    queue_mode=True,
    pod_grace_seconds=-1,
    drain_timeout_seconds=120,
    queue_url=QUEUE,
)
WELL = StandingGate(available=2, image=IMAGE, trusted=True)
OTHER = "system:serviceaccount:ops:strimzi"
TIMEOUT = "NODE_TERMINATION_GRACE_PERIOD"
UNASKED, RETAIN = "not asked by the gate before it rolls a pod", "retain on TerminateHookAbandon"
BESIDE = "system:serviceaccount:shop-kafka:strimzi-cluster-operator"


def standing(level: str, **changed: Any) -> Standing:
    """Return what stands where nothing has changed since a level was made."""
    made = Standing(
        groups={"kafka-a": HELD if level == "act" else THEIRS},
        node_groups=frozenset({"quorum", "workers"}),
        node_pools=frozenset({"spare"}),
        node_labels=frozenset({"kafka-pool"}),
        kafkas=frozenset({"shop-kafka/orders"}),
        secrets=frozenset({"shop-kafka/eyes", "shop-kafka/orders-cluster-ca-cert"}),
        handlers=(NTH,),
        handler_queues=frozenset({QUEUE}),
        fed={},
        operators=frozenset({BESIDE}),
        functions=frozenset(FUNCTIONS),
        queues=frozenset(QUEUES),
        gates={} if level == "watch" else {"shop-orders-gate": WELL},
    )
    return replace(made, **changed)


def told(level: str, **changed: Any) -> list[str]:
    return told_of(adopted(level), standing(level, **changed))


def told_of(mine: Adoption, stands: Standing) -> list[str]:
    found = findings(mine, stands, FUNCTIONS, QUEUES)
    return [f"{each.subject}: {each.evidence.removeprefix('expected ')}" for each in found]


@pytest.mark.parametrize("level", ["watch", "gate", "act"])
def test_what_was_adopted_and_is_still_so_is_no_finding(level: str) -> None:
    assert told(level) == []
    assert unread_parts(standing(level)) == []


TABLE: list[tuple[str, dict[str, Any], str]] = [
    ("watch", {"groups": {}}, "Auto Scaling group kafka-a: present, found missing"),
    ("watch", {"node_groups": frozenset()}, "managed node group quorum: present, found missing"),
    ("watch", {"node_pools": frozenset()}, "NodePool spare: present, found missing"),
    ("watch", {"node_labels": frozenset()}, "node label kafka-pool: present, found missing"),
    ("watch", {"kafkas": frozenset()}, "Kafka shop-kafka/orders: present, found missing"),
    ("watch", {"secrets": frozenset({"shop-kafka/orders-cluster-ca-cert"})},
        "Secret shop-kafka/eyes: present, found missing"),
    ("watch", {"functions": frozenset()}, "function shop-orders-tick: present, found missing"),
    ("watch", {"pod_set_versions": frozenset({"v1beta2"})},
        "API of StrimziPodSets: v1, found v1beta2 alone"),
    ("watch", {"pod_set_versions": frozenset()}, "API of StrimziPodSets: v1, found missing"),
    ("watch", {"queues": frozenset()}, "queue shop-orders-ticks: present, found missing"),
    ("watch", {"groups": {"kafka-a": HELD}},
        "tag stillwater:cluster of Auto Scaling group kafka-a: none below act, found shop-orders"),
    ("gate", {"groups": {"kafka-a": replace(THEIRS, hooks=(hook("wait"), hook("drain")))}},
        "hook drain of Auto Scaling group kafka-a: none of this name below act, found present"),
    ("gate", {"groups": {"kafka-a": replace(THEIRS, tags={CLUSTER_TAG: "lab"})}},
        "tag stillwater:cluster of Auto Scaling group kafka-a: none of another's, found lab"),
    ("watch", {"gates": {"shop-orders-gate": WELL}},
        "eviction gate shop-orders-gate: none at this level, found present"),
    ("watch", {"going": frozenset({"Kafka shop-kafka/orders", "NodePool of-others"})},
        "Kafka shop-kafka/orders: present, found somebody deletes it"),
    ("act", {"going": frozenset({"Auto Scaling group kafka-a"})},
        "Auto Scaling group kafka-a: present, found somebody deletes it"),
    ("gate", {"gates": {}}, "eviction gate shop-orders-gate: present, found missing"),
    ("gate", {"gates": {"shop-orders-gate": replace(WELL, available=1)}},
        "replicas of eviction gate shop-orders-gate that answer: 2, found 1"),
    ("gate", {"gates": {"shop-orders-gate": replace(WELL, trusted=False)}},
        "webhook shop-orders-gate: asks the gate, and trusts it, found does not"),
    ("gate", {"gates": {"shop-orders-gate": replace(WELL, image="other:1")}},
        f"image of eviction gate shop-orders-gate: {IMAGE}, found other:1"),
    ("gate", {"operators": frozenset({OTHER})},
        f"account of Strimzi's operator for Kafka shop-kafka/orders: {UNASKED}, found {OTHER}"),
    ("act", {"groups": {"kafka-a": replace(HELD, hooks=(hook("drain"),))}},
        "hook gate of Auto Scaling group kafka-a: present, found missing"),
    ("act", {"groups": {"kafka-a": replace(HELD, tags={})}},
        "tag stillwater:cluster of Auto Scaling group kafka-a: shop-orders, found missing"),
    ("act",
        {
            "groups": {
                "kafka-a": replace(
                    HELD, hooks=(hook("drain", default_result="CONTINUE"), hook("gate")))}},
        "default result of hook drain of Auto Scaling group kafka-a: ABANDON, found CONTINUE"),
    ("act", {"groups": {"kafka-a": replace(HELD, on_abandon=None)}},
        f"lifecycle policy of Auto Scaling group kafka-a: {RETAIN}, found terminate"),
    ("act", {"groups": {"kafka-a": replace(HELD, managed_node_group="kafka")}},
        "owner of Auto Scaling group kafka-a: none but yours, found EKS's node group kafka"),
    ("act", {"handler_queues": frozenset()}, f"queue {QUEUE}: present, found missing"),
    ("act", {"handlers": (replace(NTH, queue_mode=False),)},
        f"termination handler: one that reads {QUEUE}, found none"),
    ("act", {"handlers": (replace(NTH, drains=False),)},
        "Deployment kube-system/nth: drains, found only cordons, or only says so"),
    ("act", {"handlers": (replace(NTH, down=True),)},
        "Deployment kube-system/nth: runs, found none of its pods is available"),
    ("act", {"handlers": (replace(NTH, refuses=("DELETE_LOCAL_DATA",)),)},
        "Deployment kube-system/nth: drains every pod, found DELETE_LOCAL_DATA false"),
    ("act", {"handlers": (replace(NTH, drain_timeout_seconds=7200),)},
        f"{TIMEOUT} of Deployment kube-system/nth: 420 s at the most, found 7200 s"),
]  # fmt: skip


@every_case(("level", "changed", "sentence"), TABLE, ids=[t for *_, t in TABLE])
def test_what_is_no_longer_so_is_named(level: str, changed: dict[str, Any], sentence: str) -> None:
    assert told(level, **changed) == [sentence]


def test_what_could_not_be_read_is_said_and_never_taken_for_missing() -> None:
    refused = Unknown("AccessDenied")
    blind = dict.fromkeys(Standing.__slots__, refused)
    assert told("act", **blind) == []
    parts = unread_parts(standing("act", **blind))
    assert ("Secrets", refused) in parts
    assert len(parts) == len(blind)


def test_the_secrets_are_those_that_the_functions_read() -> None:
    expected = ["shop-kafka/eyes", "shop-kafka/orders-cluster-ca-cert"]
    assert secrets_named(adopted("watch")) == expected


OURS = replace(
    NTH,
    title="kube-system/shop-orders-nth",
    queue_url="https://sqs.eu-north-1.amazonaws.com/111122223333/shop-orders-nth",
)


@pytest.mark.parametrize(
    ("handlers", "sentences"),
    [
        ((OURS,), []),
        # Theirs hears of other machines from a queue of its own.
        ((OURS, NTH), []),
        ((NTH,), ["termination handler shop-orders-nth: runs, found missing"]),
        ((replace(OURS, down=True),),
            ["termination handler shop-orders-nth: runs, found none of its pods is available"]),
        ((OURS, replace(NTH, queue_url=OURS.queue_url)),
            ["queue shop-orders-nth: read by ours alone, found Deployment kube-system/nth"]),
    ],
    ids=["ours", "ours and theirs", "theirs alone", "ours is down", "theirs on our queue"],
)  # fmt: skip
def test_a_termination_handler_of_ours_runs_and_has_its_queue_for_itself(
    handlers: tuple[TerminationHandler, ...], sentences: list[str]
) -> None:
    mine = adopted("act", drainer="ours", queue_url=None)
    assert told_of(mine, standing("act", handlers=handlers)) == sentences


ALL_HOOKS: dict[str, Any] = {"source": ["aws.autoscaling"]}
THEIR_HOOK = {**ALL_HOOKS, "detail": {"LifecycleHookName": ["their-drain"]}}
STRAIGHT = f"rules that feed {QUEUE}: none for the hooks drain and gate, found those of kafka-a"


@every_case(
    ("queue", "sentences"),
    [
        (TerminationQueue(arn="q", kept_seconds=60, patterns=(ALL_HOOKS,)), [STRAIGHT]),
        (TerminationQueue(arn="q", kept_seconds=60, patterns=(THEIR_HOOK,)), []),
        (TerminationQueue(arn="q", kept_seconds=60, patterns=(ALL_HOOKS,), barred="x"), []),
        (TerminationQueue(arn="q", kept_seconds=60, patterns=()), []),
    ],
    ids=["every hook", "their own hook", "nothing arrives", "no rule"],
)
@every_case("drainer", ["theirs", "ours"])
def test_a_rule_that_drains_at_once_what_is_held_is_found(
    queue: TerminationQueue, sentences: list[str], drainer: str
) -> None:
    ours = drainer == "ours"
    mine = adopted("act", drainer=drainer, queue_url=None if ours else QUEUE)
    stands = standing("act", fed={QUEUE: queue}, handlers=(NTH, OURS) if ours else (NTH,))
    assert told_of(mine, stands) == sentences


def test_a_termination_handler_beside_a_drain_of_our_own_is_found() -> None:
    alone = adopted("act", drainer="none", queue_url=None)
    assert findings(alone, standing("act", handlers=()), FUNCTIONS, QUEUES) == []
    idle = replace(NTH, drains=False)
    assert findings(alone, standing("act", handlers=(idle,)), FUNCTIONS, QUEUES) == []
    (found,) = findings(alone, standing("act"), FUNCTIONS, QUEUES)
    assert found.evidence == f"expected none: drainer is none, found {NTH.title}"


LOCAL = replace(NTH, title="ops/nth-imds", queue_mode=False, queue_url=None)


@pytest.mark.parametrize(
    ("level", "handler", "said"),
    [
        ("act", replace(LOCAL, sees_hooks=True), 1),
        ("act", replace(LOCAL, sees_hooks=True, drains=False), 0),
        # Spot's notices and the like are no hooks of ours.
        ("act", LOCAL, 0),
        ("gate", replace(LOCAL, sees_hooks=True), 0),
    ],
    ids=["it drains", "it only cordons", "other notices", "no hooks yet"],
)
def test_a_handler_that_drains_the_held_is_found(level: str, handler: object, said: int) -> None:
    at_once = "by the instance metadata: none, found ops/nth-imds drains at once what is held"
    assert told(level, handlers=(NTH, handler)) == [f"lifecycle draining {at_once}"] * said


BROKER, PRODUCER, ADVICE = Weight.BROKER, Weight.PRODUCER, Weight.ADVICE
RLMM = "rlmm.config.remote.log.metadata.topic"


def kafka(**said: Any) -> ClusterSpec:
    return parse(description(kafka=said))


def topic(**said: Any) -> ClusterSpec:
    return parse(description(topics=[{"name": "t", "partitions": 3, **said}]))


# A description -> its findings, and whether `up` goes on.
DESCRIBED: dict[str, tuple[ClusterSpec, dict[str, Weight], bool]] = {
    "three replicas, two in sync": (kafka(), {}, True),
    "one in sync": (kafka(min_insync_replicas=1), {"min-insync": BROKER}, False),
    "two replicas, one in sync": (kafka(default_replication_factor=2, min_insync_replicas=1),
        {"min-insync": BROKER, "replication": PRODUCER}, False),
    "all in sync": (kafka(min_insync_replicas=3), {"no-spare-replica": PRODUCER}, False),
    "transactions all in sync": (kafka(config={"transaction.state.log.min.isr": 3}),
        {"no-spare-replica": PRODUCER}, False),
    "a tier's metadata all in sync": (kafka(config={f"{RLMM}.replication.factor": 2}),
        {"no-spare-replica": PRODUCER}, False),
    "a tier's metadata with one spare": (
        kafka(config={f"{RLMM}.replication.factor": 3, f"{RLMM}.min.isr": 2}), {}, True),
    "more replicas than brokers": (kafka(config={"offsets.topic.replication.factor": 4}),
        {"too-few-brokers": PRODUCER}, False),
    "unclean leaders": (kafka(config={"unclean.leader.election.enable": True}),
        {"unclean-election": BROKER}, False),
    "a topic with all in sync": (topic(config={"min.insync.replicas": 3}),
        {"topic-no-spare-replica": PRODUCER}, False),
    "a topic of one replica": (topic(replication_factor=1), {"topic-replicas": PRODUCER}, True),
    "a topic with one in sync": (topic(config={"min.insync.replicas": 1}),
        {"topic-min-insync": BROKER}, False),
    "brokers in two of four zones": (spec(brokers=ZONES[:2]), {"zones": PRODUCER}, True),
    "two voters": (spec(2), {"quorum": PRODUCER}, True),
    "four voters": (spec(4), {"quorum-even": ADVICE}, True),
}  # fmt: skip


@every_case(("described", "said", "goes_on"), DESCRIBED.values(), ids=DESCRIBED)
def test_a_description_is_asked_what_a_cluster_is(
    described: ClusterSpec, said: dict[str, Weight], *, goes_on: bool
) -> None:
    found, accepted = description_findings(described)
    assert {each.check: each.weight for each in found if each.check != "quorum-grows"} == said
    assert accepted == []
    assert (not any(map(stops_up, found))) is goes_on
    assert (problems_of(described) == []) is goes_on


def test_what_is_accepted_by_name_stops_nobody_and_is_kept_apart() -> None:
    meant = parse(description(kafka={"min_insync_replicas": 1}, accept=["min-insync"]))
    found, (accepted,) = description_findings(meant)
    assert (accepted.check, "min-insync" in {each.check for each in found}) == ("min-insync", False)
    assert problems_of(meant) == []


def test_a_refusal_says_how_it_is_accepted() -> None:
    (sentence,) = problems_of(kafka(min_insync_replicas=1))
    assert sentence.endswith("set min.insync.replicas to 2, or name min-insync in `accept`.")


def test_a_name_that_accepts_nothing_is_said() -> None:
    (said,) = [
        each
        for each in description_findings(parse(description(accept=["min-insink"])))[0]
        if each.check == "accept-unused"
    ]
    assert "it names min-insink" in said.evidence


@pytest.mark.parametrize("heap", [6553, 6554])
def test_a_heap_above_four_fifths_is_known(heap: int) -> None:
    large = {**CONTROLLER, "heap_mib": heap, "memory_request_mib": 8192}
    described = parse(description(pools=[large, BROKERS]))
    found = {each.check for each in description_findings(described)[0]}
    assert ("heap-large" in found) is (heap > 6553)


def test_a_pod_that_is_killed_in_its_shutdown_is_found_as_of_a_cluster() -> None:
    with pytest.raises(InvalidInput):
        parse(description(timings={"pod_grace_seconds": 0}))
    raw = description(timings={"pod_grace_seconds": 200, "controlled_shutdown_seconds": 100})
    (found,) = [each for each in description_findings(parse(raw))[0] if each.check == "grace"]
    assert found.weight is BROKER


def test_every_rule_of_a_description_has_its_facts_there() -> None:
    assert len({rule.title for rule in RULES}) == len(RULES)
    for rule in RULES:
        if rule.described:
            assert set(rule.needs) <= {"description", "kafkas", "pools", "topics", "pods", "nodes"}
