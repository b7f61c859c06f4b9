"""A rotation run on the shared cluster: under load, paused and resumed, its driver killed."""

import io
import os
import signal
from pathlib import Path

import pytest
from rich.console import Console

from cli.incidents import verify
from cli.rotate import Rotations
from core.ground.naming import TWIN_ENVIRONMENT
from core.rotation.run_record import Phase, Run, RunState
from tests.integration.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
CONTROLLER, BROKER = 2, 30
DRIVER = b"handlers.tick.handler"


@pytest.mark.long
def test_a_run_moves_a_controller_and_a_broker_and_nothing_is_lost(
    cluster: Cluster, rotations: Rotations
) -> None:
    before = homes(cluster)
    with cluster.under_load() as load:
        # The broker is named first; the controller goes first.
        answer = rotations.ask("start", selection={"node_ids": [BROKER, CONTROLLER]})
        assert "2 nodes" in answer["said"]
        cluster.until(lambda: phase(rotations, CONTROLLER) is Phase.LEAVING, "it begins", 120)
        rotations.ask("pause")
        assert kill_drivers(cluster) > 0
        run = cluster.until(lambda: standing(rotations, RunState.PAUSED), "the run pauses", 240)
        assert phase_in(run, CONTROLLER) is Phase.DONE, run.reason
        assert phase_in(run, BROKER) is Phase.WAITING, run.reason
        assert homes(cluster)[BROKER] == before[BROKER]
        rotations.ask("resume")
        run = cluster.until(lambda: standing(rotations, RunState.DONE), "the run is done", 240)
        summary = load.finish()
    assert (summary["lost"], summary["client_errors"]) == (0, 0), summary
    assert {turn.phase for turn in run.turns} == {Phase.DONE}, run.reason
    view = cluster.settle()
    assert not set(before.values()) & set(homes(cluster).values())
    assert all(p.leader == p.replicas[0] for p in view.partitions if p.replicas[0] == BROKER)
    # Everything the session's cluster has been through by now, held to the rules.
    said = io.StringIO()
    verify(TWIN_ENVIRONMENT, Console(file=said, width=200))
    assert "incidents keep all" in said.getvalue()


def homes(cluster: Cluster) -> dict[int, str]:
    """Return the Kubernetes nodes of the two Kafka nodes."""
    pods = cluster.pods()
    return {node_id: str(pods[node_id]["spec"]["nodeName"]) for node_id in (CONTROLLER, BROKER)}


def phase(rotations: Rotations, node_id: int) -> Phase:
    run = rotations.run()
    assert run is not None
    return phase_in(run, node_id)


def phase_in(run: Run, node_id: int) -> Phase:
    return run.turn_of(node_id).phase


def standing(rotations: Rotations, state: RunState) -> Run | None:
    run = rotations.run()
    assert run is not None
    assert run.state is not RunState.STOPPED, run.reason
    return run if run.state is state else None


def kill_drivers(cluster: Cluster) -> int:
    """Kill every environment of the function that carries runs; return how many there were."""
    killed = 0
    for recorded in cluster.twin.place.path("pids").iterdir():
        command = Path("/proc", recorded.name, "cmdline")
        if command.exists() and DRIVER in command.read_bytes():
            os.kill(int(recorded.name), signal.SIGKILL)
            killed += 1
    return killed
