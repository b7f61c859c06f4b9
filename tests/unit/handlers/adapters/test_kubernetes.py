"""handlers.adapters.kubernetes as it reads: nodes, their troubles, pods, budgets, claims."""

import math
from dataclasses import replace
from typing import Any

import pytest
import urllib3

from core.availability.operator import KafkaConditions, OperatorView, PodSetView, Revisions
from core.ground.errors import Conflict, StillwaterError
from core.ground.placement import NOT_SAID
from core.incidents.observation import NodeView, PodView
from handlers.adapters.claims import read_conditions
from handlers.adapters.kubernetes import (
    CLAIMS_PATH,
    EksNodeClaims,
    EksNodes,
    _sick,
    _unready,
    kafka_pod_in,
)
from tests.every_case import every_case
from tests.unit.handlers.adapters.fake_api import api, attachment, node, reader

pytestmark = pytest.mark.usefixtures("signing")


def csi_node(name: str, *drivers: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"drivers": [{"name": d} for d in drivers]}}


def test_nodes_come_with_their_driver_from_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(
        monkeypatch,
        {
            "/api/v1/nodes": [
                {"items": [node("a", "i-1")]},
                {"items": [node("b", "i-2", ready="Unknown", unschedulable=True)]},
                {"items": [{"metadata": {"name": "c"}, "spec": {}}]},
            ],
            "/apis/storage.k8s.io/v1/csinodes": [
                {"items": [csi_node("a", "ebs.csi.aws.com"), csi_node("b", "efs.csi.aws.com")]}
            ],
        },
    )
    where = {"zone": "us-east-1a", "pool": "broker"}
    seen = [replace(n, labels={}, taints=(), allocatable={}) for n in fake.nodes.nodes()]
    assert seen == [
        NodeView(
            name="a", instance_id="i-1", ready=True, schedulable=True, csi_ready=True, **where
        ),
        NodeView(
            name="b", instance_id="i-2", ready=False, schedulable=False, csi_ready=False, **where
        ),
        NodeView(
            name="c",
            instance_id=None,
            zone=None,
            pool=None,
            ready=False,
            schedulable=True,
            csi_ready=False,
        ),
    ]


def pod(name: str, *, phase: str = "Running", **changes: Any) -> dict[str, Any]:
    labels = {
        "strimzi.io/pool-name": "broker-a",
        "strimzi.io/broker-role": "true",
        "strimzi.io/controller-role": "false",
        **changes.pop("labels", {}),
    }
    return {
        "metadata": {"name": name, "labels": labels, **changes},
        "spec": {"nodeName": "a"},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def test_kafka_pods_are_a_node_pools_that_still_run(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = pod("orders-entity-operator-1")
    del operator["metadata"]["labels"]["strimzi.io/pool-name"]
    items = [
        pod("orders-broker-a-10"),
        pod("orders-broker-a-11", deletionTimestamp="2026-11-20T10:00:00Z"),
        pod("orders-both-a-20", labels={"strimzi.io/controller-role": "true"}),
        pod("orders-broker-a-12", phase="Failed"),
        operator,
    ]
    path = "/api/v1/namespaces/kafka/pods"
    fake = reader(monkeypatch, {path: [{"items": items}]})

    def seen(name: str, role: str, *, ready: bool) -> PodView:
        node_id = int(name[-2:])
        return PodView(
            name=name,
            node_id=node_id,
            role=role,
            node_name="a",
            ready=ready,
            out_since=None if ready else 1_795_168_800.0,
            stopping=not ready,
        )

    assert tuple(replace(p, needs=NOT_SAID) for p in fake.nodes.kafka_pods()) == (
        seen("orders-broker-a-10", "broker", ready=True),
        seen("orders-broker-a-11", "broker", ready=False),
        seen("orders-both-a-20", "combined", ready=True),
    )
    assert fake.pool.asked[0][1]["labelSelector"] == ["strimzi.io/cluster=orders"]


STARTED = 1_795_168_800.0


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ("true", math.inf),
        ("1h30m", STARTED + 5400),
        ("false", None),
        ("a while", None),
        (None, None),
    ],
    ids=["ever", "for a time", "false", "unreadable", "nothing"],
)
def test_a_pod_says_until_when_karpenter_leaves_it(said: str | None, until: float | None) -> None:
    item = pod("orders-broker-a-10")
    item["metadata"]["annotations"] = {} if said is None else {"karpenter.sh/do-not-disrupt": said}
    item["status"]["startTime"] = "2026-11-20T10:00:00Z"
    assert kafka_pod_in(item).undisturbed_until == until


@every_case(
    ("toleration", "ignores"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "karpenter.sh/disrupted", "operator": "Exists"}, True),
        ({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}, True),
        ({"key": "karpenter.sh/disrupted", "operator": "Equal", "value": "x"}, False),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "dedicated", "operator": "Exists"}, False),
    ],
    ids=["everything", "named", "equal", "another value", "another effect", "another key"],
)
def test_tolerating_karpenters_taint_is_known(toleration: dict[str, str], ignores: bool) -> None:
    item = pod("orders-broker-a-10")
    item["spec"]["tolerations"] = [toleration]
    assert kafka_pod_in(item).ignores_disruption is ignores


@pytest.mark.parametrize(
    ("conditions", "since"),
    [
        ([("Ready", "True", 5)], None),
        ([("PodScheduled", "True", 1), ("Ready", "False", 7)], 7.0),
        ([("PodScheduled", "False", 3)], 3.0),
        ([("PodScheduled", "True", 3)], 1.0),
        ([], 1.0),
    ],
    ids=["Ready", "not Ready", "no node", "a kubelet that says nothing", "no scheduler"],
)
def test_a_pod_is_out_since_it_stopped_being_ready_or_was_made(
    conditions: list[tuple[str, str, int]], since: float | None
) -> None:
    item = pod("orders-broker-a-10", creationTimestamp="2026-11-20T10:00:01Z")
    item["status"]["conditions"] = [
        {"type": kind, "status": status, "lastTransitionTime": f"2026-11-20T10:00:0{at}Z"}
        for kind, status, at in conditions
    ]
    found = kafka_pod_in(item)
    assert found is not None
    assert found.out_since == (None if since is None else 1_795_168_800.0 + since)


POD_PATH = "/api/v1/namespaces/kafka/pods/orders-broker-a-10"
STAYING_PATH = "/apis/policy/v1/namespaces/kafka/poddisruptionbudgets/orders-staying"
LABEL = "stillwater.dev/may-leave"


def labelled(value: str | None = None, cluster: str = "orders", **changes: Any) -> dict[str, Any]:
    labels = {"strimzi.io/cluster": cluster, **({LABEL: value} if value else {})}
    return pod("orders-broker-a-10", labels=labels, resourceVersion="7", **changes)


def test_a_pod_says_for_whom_it_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {POD_PATH: [labelled("i-0a.2")]})
    assert fake.nodes.kafka_pod("orders-broker-a-10").may_leave == "i-0a.2"


@pytest.mark.parametrize(
    ("before", "written"),
    [
        (labelled(), True),
        (labelled("i-0a.1"), True),  # of an earlier round
        (labelled("i-0a.2"), False),
        (labelled(cluster="another"), False),
        (labelled(deletionTimestamp="2026-11-20T10:00:00Z"), False),
    ],
)
def test_a_pod_is_labelled_once_in_the_version_it_was_read_in(
    monkeypatch: pytest.MonkeyPatch, before: dict[str, Any], written: bool
) -> None:
    fake = reader(monkeypatch, {POD_PATH: [before], STAYING_PATH: [{}]})
    fake.nodes.let_leave("orders-broker-a-10", "i-0a.2")
    change = {"metadata": {"resourceVersion": "7", "labels": {LABEL: "i-0a.2"}}}
    labelled = [each for each in fake.pool.patched if each[0] == POD_PATH]
    assert labelled == ([(POD_PATH, change)] if written else [])


def test_the_budget_of_others_is_counted_anew_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disruption controller looks at the budget a changed pod is under, not at the one it was
    under.
    """
    fake = reader(monkeypatch, {POD_PATH: [labelled("i-0a.2")], STAYING_PATH: [{}]})
    for _ in range(2):
        fake.nodes.let_leave("orders-broker-a-10", "i-0a.2")
    touched = [body["metadata"]["annotations"] for path, body in fake.pool.patched]
    assert {path for path, _ in fake.pool.patched} == {STAYING_PATH}
    assert len({each["stillwater.dev/counted"] for each in touched}) == 2


@pytest.mark.parametrize(("value", "taken"), [("i-0a.2", True), ("i-0a.3", False), (None, False)])
def test_a_label_is_taken_off_by_whose_it_is(
    monkeypatch: pytest.MonkeyPatch, value: str | None, taken: bool
) -> None:
    fake = reader(monkeypatch, {POD_PATH: [labelled(value)]})
    fake.nodes.keep("orders-broker-a-10", "i-0a.2")
    change = {"metadata": {"resourceVersion": "7", "labels": {LABEL: None}}}
    assert fake.pool.patched == ([(POD_PATH, change)] if taken else [])


def test_a_pod_that_changed_meanwhile_is_not_labelled(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {POD_PATH: [labelled()]})
    answered = fake.pool.request

    def conflicting(method: str, *rest: Any, **named: Any) -> Any:
        answer = answered(method, *rest, **named)
        if method == "PATCH":
            answer.status = 409
        return answer

    fake.pool.request = conflicting
    with pytest.raises(Conflict):
        fake.nodes.let_leave("orders-broker-a-10", "i-0a.2")


def test_attachments_are_ebs_volumes_by_node(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        attachment("1", "a"),
        attachment("2", "a"),
        attachment("3", "b"),
        attachment("efs", "b", "efs.csi.aws.com"),
    ]
    fake = reader(monkeypatch, {"/apis/storage.k8s.io/v1/volumeattachments": [{"items": items}]})
    assert fake.nodes.attachments() == {"a": ("pv-1", "pv-2"), "b": ("pv-3",)}


def test_a_certificate_nobody_can_read_is_one_sentence() -> None:
    with pytest.raises(StillwaterError, match=r"The Kubernetes API's certificate authority is no"):
        EksNodes(api(), "kafka", "orders").nodes()


def test_a_refusal_says_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {"/apis/storage.k8s.io/v1/volumeattachments": [{"items": None}]})
    assert fake.nodes.attachments() == {}
    fake.pool.status = 403
    with pytest.raises(StillwaterError, match="answered 403 to GET /apis/storage"):
        fake.nodes.attachments()


def test_a_silent_api_server_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {})

    def refuse(*arguments: Any, **named: Any) -> None:
        raise urllib3.exceptions.ProtocolError("Connection aborted.")

    monkeypatch.setattr(fake.pool, "request", refuse)
    with pytest.raises(StillwaterError, match="did not answer GET /apis/storage"):
        fake.nodes.attachments()


def expressed(key: str, operator: str, *values: str) -> dict[str, Any]:
    given = {"values": list(values)} if values else {}
    return {"matchExpressions": [{"key": key, "operator": operator, **given}]}


@every_case(
    ("selector", "covered", "yields"),
    [
        ({"matchLabels": {"strimzi.io/cluster": "orders"}}, (10, 11), False),
        ({"matchLabels": {"strimzi.io/cluster": "another"}}, (), False),
        (expressed("x", "DoesNotExist"), (10, 11), False),
        (expressed("x", "Exists"), (), False),
        (expressed("strimzi.io/cluster", "In", "orders"), (10, 11), False),
        (expressed("strimzi.io/cluster", "NotIn", "orders"), (), False),
        # It leaves out who is labelled.
        (expressed(LABEL, "DoesNotExist"), (10,), True),
        (expressed(LABEL, "Exists"), (11,), False),
        ({}, (10, 11), False),
        (None, (), False),
    ],
)
def test_a_budget_is_known_with_the_pods_it_speaks_for(
    monkeypatch: pytest.MonkeyPatch,
    selector: dict[str, Any] | None,
    covered: tuple[int, ...],
    yields: bool,
) -> None:
    budget = {
        "metadata": {"name": "orders-kafka"},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": 0},
    }
    other = pod("orders-broker-a-11", labels={"strimzi.io/cluster": "orders", LABEL: "i-0a.2"})
    pages = {
        "/apis/policy/v1/namespaces/kafka/poddisruptionbudgets": [{"items": [budget]}],
        "/api/v1/namespaces/kafka/pods": [{"items": [labelled(), other]}],
    }
    (found,) = reader(monkeypatch, pages).nodes.budgets()
    assert (found.name, found.disruptions_allowed, found.yields) == ("orders-kafka", 0, yields)
    assert found.pods == {f"orders-broker-a-{node_id}" for node_id in covered}


def test_only_the_agents_conditions_that_are_false_are_trouble() -> None:
    written = [
        ("Ready", "True"),
        ("StorageReady", "False"),
        ("KernelReady", "Unknown"),
        ("NetworkingReady", "True"),
        ("DiskPressure", "False"),
    ]
    conditions = [
        {"type": kind, "status": status, "lastTransitionTime": "2026-11-20T10:00:00Z"}
        for kind, status in written
    ]
    assert _sick({"status": {"conditions": conditions}}) == {"StorageReady": 1_795_168_800.0}
    assert _sick({"status": {}}) == {}


@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_a_kubelet_that_is_silent_is_not_ready(status: str) -> None:
    ready = {"type": "Ready", "status": status, "lastTransitionTime": "2026-11-20T10:00:00Z"}
    assert _unready({"status": {"conditions": [ready]}}) == ({} if status == "True" else ready)
    assert _unready({"status": {}}) == {}


LABELS = {"kafka": ("broker", "controller")}


def claim(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": name, "labels": {"kafka": "broker"}},
        "status": {"providerID": f"aws:///us-east-1a/i-{name}"},
    }


def test_claims_come_from_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [{"items": [claim("a")]}, {"items": [claim("b")]}]
    fake = reader(monkeypatch, {CLAIMS_PATH: pages})
    found = EksNodeClaims(fake.nodes._api, LABELS).claims()
    expected = [("a", "i-a", "broker"), ("b", "i-b", "broker")]
    assert [(each.name, each.instance_id, each.pool) for each in found] == expected


@pytest.mark.parametrize(
    ("taint", "schedulable"),
    [("karpenter.sh/disrupted", False), ("stillwater.dev/dedicated", True)],
)
def test_a_node_that_karpenter_empties_takes_no_pod_though_it_is_not_cordoned(
    monkeypatch: pytest.MonkeyPatch, taint: str, schedulable: bool
) -> None:
    tainted = node("a", "i-1", taints=[{"key": taint, "effect": "NoSchedule"}])
    fake = reader(
        monkeypatch,
        {
            "/api/v1/nodes": [{"items": [tainted]}],
            "/apis/storage.k8s.io/v1/csinodes": [{"items": []}],
        },
    )
    (found,) = fake.nodes.nodes()
    assert found.schedulable is schedulable


def test_the_operators_work_is_read_of_pools_and_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    def pod(name: str, **annotations: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "annotations": annotations}}

    seen = {"observedGeneration": 1, "pods": 2, "currentPods": 1}
    pods = [pod("a-1", **{"strimzi.io/revision": "7f"}), pod("a-2")]
    item = {"metadata": {"name": "a", "generation": 2}, "spec": {"pods": pods}, "status": seen}
    behind = {"metadata": {"name": "pool", "generation": 1}}
    ready = {"type": "Ready", "status": "True"}
    strimzi = "/apis/kafka.strimzi.io/v1/namespaces/kafka"
    moving = {"type": "Rebalancing", "status": "True"}
    rebalances = [
        {"metadata": {"name": name}, "status": {"conditions": [each]}}
        for name, each in (("grow", moving), ("done", ready))
    ]
    fake = reader(
        monkeypatch,
        {
            "/apis/core.strimzi.io/v1/namespaces/kafka/strimzipodsets": [{"items": [item]}],
            f"{strimzi}/kafkanodepools": [{"items": [behind]}],
            f"{strimzi}/kafkarebalances": [{"items": rebalances}],
            f"{strimzi}/kafkas/orders": [
                {
                    "metadata": {"name": "orders", "generation": 1},
                    "status": {"observedGeneration": 1, "conditions": [ready]},
                }
            ],
        },
    )
    to_be = {"a-1": Revisions("7f"), "a-2": Revisions()}
    assert fake.nodes.operator() == OperatorView(
        kafka=KafkaConditions(ready=True, generation_observed=True),
        pod_sets=(PodSetView(name="a", pods=to_be, behind=True, outdated=1),),
        pools_behind=("pool",),
        rebalances=("grow",),
    )
    # The Kafka is read last: a change of broker configuration shows there alone.
    assert [path.rpartition("/")[2] for path, _ in fake.pool.asked][-1] == "orders"
    assert fake.pool.asked[0][1]["labelSelector"] == ["strimzi.io/cluster=orders"]


def test_a_proposal_is_said_with_its_figures_unless_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def rebalance(name: str, state: str, **annotations: str) -> dict[str, Any]:
        result = {"dataToMoveMB": 1024, "numReplicaMovements": 3}
        held = [{"type": state, "status": "True"}]
        return {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"mode": "add-brokers", "brokers": [11]},
            "status": {"conditions": held, "optimizationResult": result},
        }

    strimzi = "/apis/kafka.strimzi.io/v1/namespaces/kafka"
    items = [
        rebalance("grow", "ProposalReady"),
        rebalance("done", "Ready"),
        rebalance("base", "New", **{"strimzi.io/rebalance-template": "true"}),
    ]
    kafka = {"metadata": {"name": "orders", "generation": 1}}
    pages = {f"{strimzi}/kafkarebalances": [{"items": items}], f"{strimzi}/kafkas/orders": [kafka]}
    api = reader(monkeypatch, pages).nodes._api
    (told,) = read_conditions(api, "kafka", "orders", "us-east-1").rebalances
    assert told.startswith("KafkaRebalance grow: ProposalReady, 3 replicas, 1.0 GiB. 3 replicas")
    assert "costs 0.02 USD at most" in told
    del pages[f"{strimzi}/kafkarebalances"]
    assert read_conditions(api, "kafka", "orders", "us-east-1").rebalances == ()
