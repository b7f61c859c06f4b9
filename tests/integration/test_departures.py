"""Departures nobody terminates by hand: a shift of a zone, a retirement, a machine that dies."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest

from core.ground import naming
from core.incidents.record import Incident, State
from core.incidents.sweep import AGENT, ALONE_SECONDS, YOUNG_SECONDS
from core.views import ClusterView
from handlers import sweep
from handlers.adapters import kubernetes
from local import environment
from local.demo import result
from local.demo import rotation as demo
from local.demo import spec as demo_spec
from local.kubernetes.client import find
from tests.announcements import load
from tests.integration.cluster import Cluster
from tests.unit.handlers.announced import health_event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
BROKER = 20
TOPIC = "departures"
# After so long Kubernetes lets go of a dead node's volume by itself.
LETS_GO_SECONDS = 360


@pytest.fixture(scope="module", autouse=True)
def topic(provisioned: Cluster) -> Iterator[None]:
    """A topic of which every broker leads a third, by its own order of replicas."""
    provisioned.create_topic(TOPIC, num_partitions=6, replication_factor=3)
    yield
    provisioned.settle()
    provisioned.delete_topic(TOPIC)


def home(cluster: Cluster, node_id: int) -> tuple[str, str, str]:
    """Return a Kafka node's Kubernetes node, its instance and its zone."""
    node = cluster.node_of(node_id)
    zone = node["metadata"]["labels"][naming.ZONE_LABEL]
    return node["metadata"]["name"], node["spec"]["providerID"].rpartition("/")[2], zone


def group_in(cluster: Cluster, zone: str) -> dict[str, Any]:
    """Return the brokers' Auto Scaling group of a zone."""
    prefix = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}"
    name = naming.auto_scaling_group(prefix, "broker", zone)
    scaling = cluster.twin.aws("autoscaling")
    found = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    group: dict[str, Any] = found["AutoScalingGroups"][0]
    return group


def orders(view: ClusterView) -> dict[str, tuple[int, ...]]:
    return {p.name: p.replicas for p in view.partitions}


def states(incident: Incident) -> list[State]:
    return [t.state for t in incident.transitions]


@pytest.mark.long
def test_a_shifted_zone_leads_nothing_and_gets_everything_back_under_load(cluster: Cluster) -> None:
    with cluster.under_load() as load:
        shifted_and_back(cluster)
        counted = load.finish()
        smallest = [sample["smallest"] for sample in result.isr_samples(cluster.twin)]
    assert (counted["lost"], counted["acked"]) == (0, counted["sent"])
    # Brokers of a zone that leads nothing go on following.
    assert set(smallest) == {3}


def shifted_and_back(cluster: Cluster) -> None:
    """Begin a shift of a broker's zone and end it; leaders go away and come back."""
    before = orders(cluster.settle())
    _, _, zone = home(cluster, BROKER)
    shift = load("zone-autoshift")
    shift["detail"]["metadata"]["awayFrom"] = cluster.zone_id(zone)
    assert any(order[0] == BROKER for order in before.values())
    cluster.announce(shift)
    away = cluster.until(
        lambda: (
            (view := cluster.kafka())
            and BROKER not in {p.leader for p in view.partitions}
            and all(p.replicas[0] != BROKER for p in view.partitions)
            and view
        ),
        f"nothing is led by broker {BROKER}",
    )
    assert {name: set(order) for name, order in orders(away).items()} == {
        name: set(order) for name, order in before.items()
    }
    cluster.until(
        lambda: all(i["ProtectedFromScaleIn"] for i in group_in(cluster, zone)["Instances"]),
        "the zone's instances are protected",
    )
    cluster.announce({**shift, "detail-type": "Autoshift Completed"})
    cluster.until(
        lambda: (view := cluster.kafka()) and orders(view) == before,
        "every partition has its own order again",
    )
    cluster.until(
        lambda: not any(i["ProtectedFromScaleIn"] for i in group_in(cluster, zone)["Instances"]),
        "the zone's instances may be scaled in again",
    )
    back = cluster.until(
        lambda: (
            (view := cluster.kafka())
            and all(p.leader == p.replicas[0] for p in view.partitions if p.topic == TOPIC)
            and view
        ),
        "preferred leaders lead again",
    )
    assert any(p.leader == BROKER for p in back.partitions)


@contextmanager
def flooded(url: str, callers: int) -> Iterator[Counter[int]]:
    """Call a URL without its token as fast as it answers; yield how often it said what."""
    answers: Counter[int] = Counter()
    over = threading.Event()

    def call() -> None:
        request = urllib.request.Request(url, data=b"{}", method="POST")  # noqa: S310 - the twin's
        while not over.is_set():
            try:
                with urllib.request.urlopen(request) as answer:  # noqa: S310
                    answers[answer.status] += 1
            except urllib.error.HTTPError as error:
                answers[error.code] += 1

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for each in threads:
        each.start()
    try:
        yield answers
    finally:
        over.set()
        for each in threads:
            each.join()


@pytest.mark.long
def test_a_flood_of_the_webhooks_url_holds_up_no_incident(cluster: Cluster) -> None:
    prefix = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}"
    path = f"{environment.FUNCTION_URL_PATH}{naming.function(prefix, 'webhook')}/"
    url = f"{cluster.twin.place.url('moto')}{path}"
    with cluster.under_load() as load, flooded(url, 8) as answers:
        leaving = demo.terminate(cluster.twin, BROKER)
        incident = cluster.released(leaving.instance_id)
        counted = load.finish()
    print(dict(answers), f"{incident.transitions[-1].at - incident.opened_at:.0f} s")  # noqa: T201 - shown with a test that fails
    assert (counted["lost"], counted["client_errors"]) == (0, 0)
    assert incident.state is State.RELEASED
    assert {HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS} <= set(answers)
    cluster.settle()


@pytest.mark.long
def test_a_retired_instance_is_replaced_before_it_goes(cluster: Cluster) -> None:
    old_node, instance_id, zone = home(cluster, BROKER)
    now = time.time()
    retirement = json.loads(health_event(due=now + 14 * 86_400, said_at=now))
    retirement["detail"]["affectedEntities"] = [{"entityValue": instance_id, "status": "PENDING"}]
    cluster.announce(retirement)
    incident = cluster.released(instance_id)
    assert states(incident) == [
        State.OPENED,
        State.REPLACING,
        State.HOLDING,
        State.DRAINING,
        State.GATING,
        State.RELEASED,
    ]
    new_node, _, new_zone = home(cluster, BROKER)
    assert (new_zone, new_node) == (zone, incident.replacement_node)
    assert new_node != old_node
    (ready,) = cluster.facts("node_ready", node=new_node)
    (told,) = [
        f for f in cluster.facts("pod_stopping", pod=incident.pod_name) if f["at"] > ready["at"]
    ]
    (gone,) = cluster.facts("instance_terminated", instance=instance_id)
    back = [f["at"] for f in cluster.facts("pod_ready", pod=incident.pod_name)]
    # The replacement first, then the pod, then the instance.
    assert ready["at"] < told["at"] < max(back) < gone["at"]
    group = group_in(cluster, zone)
    assert (group["DesiredCapacity"], len(group["Instances"])) == (1, 1)
    annotations = cluster.twin.api.get(f"/api/v1/nodes/{new_node}")["metadata"]["annotations"]
    assert "stillwater.dev/spare-for" not in annotations
    cluster.settle()


@pytest.mark.long
def test_a_machine_whose_storage_fails_is_replaced_before_it_dies(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_node, instance_id, zone = home(cluster, BROKER)
    since = time.time() - ALONE_SECONDS[AGENT] - 60
    agent_says(cluster, old_node, "StorageReady", since=since)
    # A machine of the twin is minutes old, and one that is sick in its first hour is a person's.
    born_at(monkeypatch, since - 2 * YOUNG_SECONDS)
    assert swept(cluster, monkeypatch)["opened"] == 1
    incident = cluster.released(instance_id)
    assert any("StorageReady=False" in t.reason for t in incident.transitions), incident
    new_node, _, new_zone = home(cluster, BROKER)
    assert (new_zone, new_node) == (zone, incident.replacement_node)
    (ready,) = cluster.facts("node_ready", node=new_node)
    (gone,) = cluster.facts("instance_terminated", instance=instance_id)
    assert ready["at"] < gone["at"]
    assert cluster.facts("pod_stopping", pod=incident.pod_name)[-1]["at"] > ready["at"]
    cluster.settle()


def agent_says(cluster: Cluster, name: str, condition: str, *, since: float) -> None:
    """Write a condition as EKS's node monitoring agent does; the agent itself is in no registry."""
    at = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    sick = {
        "type": condition,
        "status": "False",
        "reason": "XFSSmallAverageClusterSize",
        "lastTransitionTime": at,
        "lastHeartbeatTime": at,
    }
    cluster.twin.api.strategic(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [sick]}})


def born_at(monkeypatch: pytest.MonkeyPatch, moment: float) -> None:
    """Let every node look as old as that to whoever reads it in this process."""
    read = kubernetes._node
    monkeypatch.setattr(kubernetes, "_node", lambda *told: replace(read(*told), created_at=moment))


def swept(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Run λ sweep in this process, as it is deployed."""
    functions = cluster.twin.aws("lambda")
    name = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}-sweep"
    told = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    for key, value in {**environment.with_credentials(cluster.twin.place), **told}.items():
        monkeypatch.setenv(key, value)
    return sweep._broom.__wrapped__().sweep(time.time())


@pytest.mark.long
def test_a_dead_machines_broker_comes_back_elsewhere(cluster: Cluster) -> None:
    old_node, instance_id, zone = home(cluster, BROKER)
    died_at = time.time()
    cluster.twin.aws("ec2").stop_instances(InstanceIds=[instance_id])
    cluster.until(lambda: tainted(cluster, old_node), "the dead node is out of service")
    incident = cluster.until(
        lambda: (i := cluster.incident(instance_id)) and not i.open and i,
        "the incident is over",
        LETS_GO_SECONDS,
    )
    assert states(incident) == [State.OPENED, State.GATING, State.LOST], incident.transitions
    assert "is back on" in incident.reason
    new_node, _, new_zone = home(cluster, BROKER)
    assert new_zone == zone
    assert new_node != old_node
    assert time.time() - died_at < LETS_GO_SECONDS
    path = f"/api/v1/nodes/{old_node}"
    cluster.until(lambda: find(cluster.twin.api, path) is None, "the dead node is gone")
    cluster.settle()


def tainted(cluster: Cluster, name: str) -> bool:
    found = find(cluster.twin.api, f"/api/v1/nodes/{name}")
    return found is not None and any(
        t["key"] == naming.OUT_OF_SERVICE_TAINT for t in found["spec"].get("taints") or ()
    )
