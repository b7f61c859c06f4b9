"""Real Karpenter before the gate: what it writes down, what it is told, and in which order it goes.

Its own controllers on a real API server; kwok's nodes have no machines, and a stand-in says what
their kubelets would. One stage for all tests: each leaves three brokers that run. What a test sets
on a NodePool is true of the next node that is launched there, so a test has two nodes of one pool.
"""

import datetime as dt
import time
from collections.abc import Iterator

import pytest

from core.gate import Wish
from core.ground.fields import epoch
from core.ground.window import DAYS
from core.incidents.observation import DEADLINE_ANNOTATION, DISRUPTED_TAINT, DO_NOT_DISRUPT
from core.incidents.record import NodeDisruption, State
from core.rotation.run_record import RunState
from infra.nodes.karpenter import budgets
from local.twin import Twin
from tests.integration import karpenter_kwok as kwok
from tests.integration.karpenter_kwok import Json
from tests.integration.karpenter_stage import GRACE_SECONDS, PODS, Stage, pod_name, set_stage
from tests.unit.infra.programs import spec

pytestmark = [pytest.mark.integration, pytest.mark.long]
BEHIND = "partition t-0 would keep 1 in-sync replicas"
GATED = {"node_provisioner": "karpenter", "eviction_gate": {"image": "gate:1"}}


@pytest.fixture(scope="module")
def stage(twin: Twin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Karpenter's, until the module's last test."""
    with set_stage(twin, tmp_path_factory.mktemp("karpenter"), spec(**GATED)) as found:
        yield found


def conditions(claim: Json | None) -> dict[str, tuple[str, str]]:
    listed = (claim or {}).get("status", {}).get("conditions") or ()
    return {each["type"]: (each["status"], each["reason"]) for each in listed}


def taints(stage: Stage, node: str) -> set[str]:
    found = stage.api.get(f"{kwok.NODES}/{node}")["spec"].get("taints") or ()
    return {each["key"] for each in found}


def delete(stage: Stage, broker: int) -> Json:
    """Delete the NodeClaim of a broker's node, as a person does."""
    claim = stage.claim_of(broker)
    stage.api.delete(f"{kwok.CLAIMS}/{claim['metadata']['name']}")
    return claim


def annotate(stage: Stage, path: str, value: str | None) -> None:
    stage.api.merge(path, {"metadata": {"annotations": {DO_NOT_DISRUPT: value}}})


def window(opens: dt.datetime) -> list[Json]:
    """Return the budgets of a maintenance window of two hours, as infra/ renders them."""
    given = {
        "days": [DAYS[opens.weekday()]],
        "start_utc": opens.strftime("%H:%M"),
        "duration_minutes": 120,
    }
    return budgets(spec(**GATED, maintenance=given))


def test_a_deleted_node_waits_for_its_successor_and_kafka_and_one_with_a_deadline_too(
    stage: Stage,
) -> None:
    stage.change_pool(10, {"template": {"spec": {"terminationGracePeriod": "8s"}}})
    stage.cluster.lagging = {20}
    claim = delete(stage, 10)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    stage.until(lambda: stage.told(10), "Karpenter asks the gate")
    # It asks before there is another node.
    asked, answer = stage.told(10)[0]
    assert (asked.wish, asked.username) == (Wish.EVICT, kwok.ACCOUNT)
    assert f"No other node of us-east-1a is ready to take {pod_name(10)}" in answer.reason
    stage.until(lambda: BEHIND in stage.told(10)[-1][1].reason, "it is told what Kafka says")
    held = stage.claim(name)
    assert held is not None
    assert conditions(held)["Drained"] == ("Unknown", "Draining")
    assert "DisruptionReason" not in conditions(held)
    assert DEADLINE_ANNOTATION not in held["metadata"]["annotations"]
    assert DISRUPTED_TAINT in taints(stage, node)
    assert stage.node_of(10) == node
    # Nobody but the gate and the incident says why: its events count pods.
    events = [e["message"] for e in stage.events() if e["involvedObject"].get("name") == node]
    assert "Failed to drain node, 1 pods are waiting to be evicted" in events
    assert not any("partition" in message for message in events)
    stage.cluster.lagging = set()
    incident = stage.over(claim, State.RIDDEN_THROUGH)
    assert incident.disruption == NodeDisruption(reason="untold")
    assert stage.node_of(10) == incident.replacement_node != node
    stage.until(lambda: stage.claim(name) is None, "its claim is gone")

    # The pod takes longer to stop than its node has: it is deleted at once, never evicted.
    stage.change_pool(10, {"template": {"spec": {"terminationGracePeriod": None}}})
    stage.cluster.lagging = {20}
    since = len(stage.answers)
    claim = delete(stage, 10)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    stage.until(lambda: "forced" in stage.pages(claim), "a person is called")
    written = (stage.claim(name) or {})["metadata"]["annotations"][DEADLINE_ANNOTATION]
    ends = epoch(written) or 0.0
    stage.until(lambda: time.time() > ends + 1, "the deadline has passed")
    assert {asked.wish for asked, _ in stage.told(10, since)} == {Wish.DELETE_POD}
    assert not any("to stop in" in answer.reason for _, answer in stage.told(10, since))
    assert all((asked.grace_seconds or 0) <= 8 for asked, _ in stage.told(10, since))
    assert stage.node_of(10) == node
    stage.cluster.lagging = set()
    incident = stage.over(claim, State.RIDDEN_THROUGH)
    assert incident.disruption is not None
    assert incident.disruption.forced_at == ends - GRACE_SECONDS
    *_, (asked, answer) = (e for e in stage.told(10, since) if e[0].wish is Wish.DELETE_POD)
    # All that is left to a broker that was held past the deadline.
    assert (answer.allowed, asked.grace_seconds) == (True, 1)


def test_what_has_drifted_waits_for_its_window_and_goes_once_its_successor_is_initialized(
    stage: Stage,
) -> None:
    claim = stage.claim_of(20)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    now, since = dt.datetime.now(dt.UTC), len(stage.answers)
    stage.kubelet.ready = False
    # On a claim whose node has joined Karpenter does not read it.
    annotate(stage, f"{kwok.CLAIMS}/{name}", "true")
    stage.change_pool(20, {"disruption": {"budgets": window(now + dt.timedelta(hours=3))}})
    stage.change_pool(20, {"template": {"metadata": {"labels": {"generation": "two"}}}})
    stage.until(lambda: "Drifted" in conditions(stage.claim(name)), "it has drifted")
    blocked = "No allowed disruptions for disruption reason Drifted due to blocking budget"
    stage.until(
        lambda: any(
            e["message"] == blocked and e["involvedObject"].get("name") == "broker-b"
            for e in stage.events()
        ),
        "it is kept by its window",
    )
    assert "DisruptionReason" not in conditions(stage.claim(name))
    stage.change_pool(20, {"disruption": {"budgets": window(now - dt.timedelta(minutes=30))}})
    stage.until(lambda: stage.incident(claim), "the sweep opens its incident")
    assert conditions(stage.claim(name))["DisruptionReason"] == ("True", "Drifted")
    assert DISRUPTED_TAINT in taints(stage, node)
    stage.until(lambda: len(stage.claims()) == 4, "Karpenter launches its successor")
    waits = ("NodeClaim", "is not initialized yet")
    stage.until(
        lambda: all(each in str(stage.incident(claim)) for each in waits), "it is waited for"
    )
    # As long as that is so, nothing is deleted and nobody asked.
    assert "deletionTimestamp" not in (stage.claim(name) or {})["metadata"]
    assert stage.told(20, since) == []
    stage.kubelet.ready = True
    incident = stage.over(claim, State.RIDDEN_THROUGH)
    assert incident.disruption == NodeDisruption(reason="drift")
    assert incident.transitions[0].actor == "sweep"
    assert stage.node_of(20) == incident.replacement_node
    stage.until(lambda: stage.claim(name) is None, "its claim is gone")


def test_a_rotation_outlives_the_claim_that_it_ends_and_an_expiry_brings_nothing_first(
    stage: Stage,
) -> None:
    stage.change_pool(30, {"template": {"spec": {"expireAfter": "15s"}}})
    claim, since = stage.claim_of(30), len(stage.answers)
    start = {"command": "start", "actor": "ada", "selection": {"node_ids": [30]}}
    assert "problems" not in stage.station.conductor.take(start, time.time())
    stage.until(lambda: stage.told(30, since) and stage.told(30, since)[-1][1].allowed, "it may go")
    refused = [answer.reason for _, answer in stage.told(30, since) if not answer.allowed]
    assert refused[0].startswith("No other node of us-east-1c is ready")
    # Its node has ended before it has caught up, as on any machine with data.
    stage.cluster.lagging = {30}
    stage.until(lambda: stage.claim(claim["metadata"]["name"]) is None, "its claim is gone")
    stage.cluster.lagging = set()
    incident = stage.over(claim, State.RELEASED)
    assert incident.disruption == NodeDisruption(reason="rotation")

    def run_state() -> RunState | None:
        run = stage.station.runs.current()
        return None if run is None else run.state

    stage.until(lambda: run_state() is not RunState.RUNNING, "the run is over")
    assert run_state() in {RunState.DONE, None}

    claim, since = stage.claim_of(30), len(stage.answers)
    stage.change_pool(30, {"template": {"spec": {"expireAfter": "Never"}}})
    stage.until(lambda: stage.told(30, since), "its successor expires, and the gate is asked")
    assert stage.told(30, since)[0][1].reason.startswith("No other node of us-east-1c is ready")
    incident = stage.over(claim, State.RIDDEN_THROUGH)
    assert incident.disruption == NodeDisruption(reason="expiry")


def test_a_pod_that_says_do_not_disrupt_is_neither_evicted_nor_made_room_for(stage: Stage) -> None:
    path, since = f"{PODS}/{pod_name(20)}", len(stage.answers)
    annotate(stage, path, "true")
    claim = delete(stage, 20)
    remedy = f"does not evict it while it says {DO_NOT_DISRUPT}; take that off."
    stage.until(
        lambda: remedy in getattr(stage.incident(claim), "reason", ""), "the incident says why"
    )
    stage.until(lambda: DISRUPTED_TAINT in taints(stage, claim["status"]["nodeName"]), "drained")
    assert (stage.told(20, since), len(stage.claims())) == ([], 3)
    annotate(stage, path, None)
    over = stage.over(claim, State.RIDDEN_THROUGH)
    assert over.disruption == NodeDisruption(reason="untold")
