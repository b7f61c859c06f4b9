"""Rows of the fault matrix on the shared cluster: real nodes, pods, brokers and NTH."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.cluster.rights import FUNCTION_CALLS
from core.ground import naming
from core.incidents.record import Incident, State
from local import environment
from local.aws.instances import MARKET_TAG
from local.demo import rotation as demo
from local.demo import spec as demo_spec
from local.demo.clients import CONSUMER, PRODUCER
from local.kubernetes.strimzi_authorities import FORCE_REPLACE, is_signed_by
from local.place import PLACE_VARIABLE
from tests.integration.cluster import Cluster
from tests.integration.retold import retell
from tests.unit.handlers.announced import ec2_event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
FROZEN_SECONDS = 10.0
NOBODY = "127.0.0.1:1"
TICK = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}-tick"


def pids_of(cluster: Cluster, program: str) -> list[int]:
    """Return the processes of this twin that run a program."""
    mark = f"{PLACE_VARIABLE}={cluster.twin.place.directory}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            ours = mark in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # It has ended, or is another user's.
        if ours and Path(words[0].decode()).name == program:
            found.append(int(entry.name))
    return found


def entered(cluster: Cluster, instance_id: str, state: State, seconds: float = 120) -> Incident:
    """Wait until an instance's incident has been in a state."""

    def there() -> Incident | None:
        incident = cluster.incident(instance_id)
        reached = incident and state in {t.state for t in incident.transitions}
        return incident if reached else None

    return cluster.until(there, f"the incident of {instance_id} is {state}", seconds)


@contextmanager
def frozen_api_server(cluster: Cluster) -> Iterator[None]:
    """Let the API server answer nobody for the block: its connections stand, nothing comes."""
    (server,) = [c for c in cluster.twin.processes.children if c.name == "kube-apiserver"]
    os.kill(server.popen.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.popen.pid, signal.SIGCONT)


@pytest.mark.long
def test_a_handler_killed_in_a_drain_and_a_frozen_api_server_cost_only_time(
    cluster: Cluster,
) -> None:
    rotation = demo.terminate(cluster.twin, demo.BROKER_ID)
    incident = entered(cluster, rotation.instance_id, State.DRAINING)
    since = rotation.terminated_call_at
    cluster.until(
        lambda: [f for f in told_to_stop(cluster, incident) if f["at"] > since],
        "the broker is told to stop",
    )
    (handler,) = pids_of(cluster, "node-termination-handler")
    os.kill(handler, signal.SIGKILL)
    with frozen_api_server(cluster):
        time.sleep(FROZEN_SECONDS)
    over = cluster.released(rotation.instance_id)
    assert over.state is State.RELEASED, over.reason
    assert len([f for f in told_to_stop(cluster, incident) if f["at"] > since]) == 1
    assert handler not in cluster.until(
        lambda: pids_of(cluster, "node-termination-handler"), "NTH runs again"
    )
    view = cluster.settle()
    assert all(demo.BROKER_ID in p.isr for p in view.partitions)


def told_to_stop(cluster: Cluster, incident: Incident) -> list[dict[str, Any]]:
    return cluster.facts("pod_stopping", pod=incident.pod_name)


def deaf_to_kafka(cluster: Cluster) -> AbstractContextManager[None]:
    """Give λ tick an address of Kafka at which nobody answers, for the block."""
    return retell(cluster, TICK, kafka_bootstrap=[NOBODY])


@pytest.mark.long
def test_a_broker_is_held_while_kafka_is_silent_and_drained_at_a_spot_warning(
    cluster: Cluster,
) -> None:
    with deaf_to_kafka(cluster):
        rotation = demo.terminate(cluster.twin, demo.BROKER_ID)
        held = cluster.until(lambda: silent(cluster, rotation.instance_id), "it is held", 120)
        assert [f for f in told_to_stop(cluster, held) if f["at"] > held.opened_at] == []
        warn(cluster, rotation.instance_id)
        warned_at = time.time()
        incident = entered(cluster, rotation.instance_id, State.DRAINING)
        cluster.until(
            lambda: [f for f in told_to_stop(cluster, incident) if f["at"] > warned_at],
            "the broker is told to stop",
        )
    over = cluster.released(rotation.instance_id)
    assert over.state is State.RELEASED, over.reason
    assert over.urgent
    cluster.settle()


@pytest.mark.long
def test_certificates_renewed_in_the_middle_of_a_rotation_cost_nothing(cluster: Cluster) -> None:
    users = (naming.function_user(demo_spec.CLUSTER, "tick"), PRODUCER)
    before = {user: cluster.secret(user)["user.crt"] for user in users}
    with cluster.under_load() as load:
        rotation = demo.terminate(cluster.twin, demo.BROKER_ID)
        entered(cluster, rotation.instance_id, State.DRAINING)
        for user in users:
            cluster.twin.api.delete(cluster.secret_path(user))
        for user in users:
            cluster.until(lambda u=user: renewed(cluster, u, before[u]), f"{user} is renewed")
        over = cluster.released(rotation.instance_id)
        summary = load.finish()
    assert over.state is State.RELEASED, over.reason
    assert (summary["lost"], summary["client_errors"]) == (0, 0), summary
    cluster.settle()


@pytest.mark.long
def test_the_clients_authority_replaced_in_the_middle_of_a_rotation_costs_nothing(
    cluster: Cluster,
) -> None:
    users = [naming.function_user(demo_spec.CLUSTER, name) for name in FUNCTION_CALLS]
    before = {user: cluster.secret(user)["user.crt"] for user in [*users, PRODUCER, CONSUMER]}
    authority = naming.clients_ca_secret(demo_spec.CLUSTER)
    replaced = {"metadata": {"annotations": {FORCE_REPLACE: "true"}}}
    with cluster.under_load() as load:
        rotation = demo.terminate(cluster.twin, demo.BROKER_ID)
        entered(cluster, rotation.instance_id, State.DRAINING)
        cluster.twin.api.merge(cluster.secret_path(authority.removesuffix("-cert")), replaced)
        over = cluster.released(rotation.instance_id)
        # Every broker restarts to trust the new one before anybody shows its certificates.
        for user, old in before.items():
            cluster.until(lambda u=user, o=old: renewed(cluster, u, o), f"{user} is renewed", 180)
        summary = load.finish()
    assert over.state is State.RELEASED, over.reason
    assert (summary["lost"], summary["client_errors"]) == (0, 0), summary
    trusted = cluster.secret(authority)["ca.crt"]
    assert all(is_signed_by(cluster.secret(user)["user.crt"], trusted) for user in before)
    cluster.settle()


def renewed(cluster: Cluster, user: str, before: str) -> bool:
    return cluster.secret(user).get("user.crt", before) != before


def silent(cluster: Cluster, instance_id: str) -> Incident | None:
    """Return an incident that waits because no broker could be asked."""
    incident = cluster.incident(instance_id)
    waits = incident is not None and incident.state is State.HOLDING
    return incident if waits and incident and "Kafka" in incident.reason else None


def warn(cluster: Cluster, instance_id: str) -> None:
    """Put EC2's two-minute warning on the bus, for an instance that says it is spot."""
    cluster.twin.aws("ec2").create_tags(
        Resources=[instance_id], Tags=[{"Key": MARKET_TAG, "Value": "spot"}]
    )
    kind = "EC2 Spot Instance Interruption Warning"
    event = json.loads(ec2_event(kind, instance_id, **{"instance-action": "terminate"}))
    arn = f"arn:aws:ec2:{environment.REGION}:{environment.ACCOUNT}:instance/{instance_id}"
    cluster.announce({**event, "resources": [arn]})
