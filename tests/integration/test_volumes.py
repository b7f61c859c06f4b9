"""Volumes on the twin: grown under a running broker, raised and lowered, or refused by name."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from core.rotation.run_record import Phase, RunState
from core.volumes.sizing import Gp3
from core.volumes.views import History, Hour, Modification, ModificationState, free_slots
from handlers.adapters.claims import FIELD_MANAGER
from local import environment
from tests.integration.cluster import Cluster
from tests.integration.volume_stage import FUNCTION, HOUR, MIB, MINUTE, Stage, put, set_up

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
FULL_WITH_MIB = 12


@pytest.fixture(autouse=True)
def credentials(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.with_credentials(cluster.twin.place).items():
        monkeypatch.setenv(name, value)


# A pool for each test: what is done to a volume, and said of an instance, stands for an hour.
@pytest.fixture
def stage(cluster: Cluster, credentials: None) -> Iterator[Stage]:
    with set_up(cluster, "broker-a", 10) as stage:
        yield stage


@pytest.fixture
def bound(cluster: Cluster, credentials: None) -> Iterator[Stage]:
    with set_up(cluster, "broker-b", 20) as stage:
        yield stage


@pytest.fixture
def rotated(cluster: Cluster, credentials: None) -> Iterator[Stage]:
    """A pool in which a minute with a replica less is worth more than any volume.

    How long a broker is away was measured of the departures before, each of its own length: with
    less at stake they would choose the step.
    """
    with set_up(cluster, "broker-c", 30, usd_per_minute_saved=1000.0) as stage:
        yield stage


def test_a_filling_volume_grows_under_its_broker_is_raised_and_lowered(stage: Stage) -> None:
    before = stage.pod()
    stage.write(FULL_WITH_MIB)
    grown = stage.decision(time.time())
    assert (grown["kind"], grown["applied"], grown["emergency"]) == ("grow", True, True)
    gib = grown["target"][0]
    assert gib > 100
    stage.until_given(gib)
    stage.until_completed(time.time())
    pool = stage.cluster.twin.api.get(
        f"/apis/kafka.strimzi.io/v1/namespaces/kafka/kafkanodepools/{stage.pool}"
    )
    assert FIELD_MANAGER in {m["manager"] for m in pool["metadata"]["managedFields"]}

    # What filled it has expired; now it is kept busy beyond what it gives.
    stage.fill.fills_up = False
    stage.meter(mib=2)
    raised = stage.decision(time.time())
    assert (raised["kind"], raised["target"]) == ("raise", [gib, 3000, 250])
    stage.until_given(klass="gp3-3000-250")
    stage.until_completed(time.time() + 700)

    later = time.time() + 30 * HOUR
    first = later - later % HOUR - 26 * HOUR
    stage.remember(
        hours=tuple(Hour(first + n * HOUR, 100.0, 1.0 * MIB, exceeded=False) for n in range(27))
    )
    lowered = stage.decision(later)
    assert (lowered["kind"], lowered["target"][1:]) == ("lower", [3000, 125])
    stage.until_given(klass="gp3-3000-125")
    assert kinds(stage) == ["grow", "raise", "lower"]
    # Of the day's four the last is left for an emergency.
    assert free_slots(stage.history(), time.time()) == 1
    assert stage.pod() == before


@pytest.mark.long
def test_a_volume_is_faster_for_a_rotation_and_as_before_after_it(rotated: Stage) -> None:
    # Busy, within its limit, and not filling: without a rotation it has what it needs.
    rotated.fill.fills_up = False
    rotated.meter(mib=1)
    assert rotated.decision(time.time(), dry_run=True)["kind"] == "keep"
    run = rotated.rehearse()

    # Raising, lowering, and one for an emergency: with fewer than three it is not begun.
    rotated.remember(history=modified_today(2))
    short = rotated.decision(time.time())
    assert (short["kind"], short["refused_by"]) == ("wait", "slots")
    rotated.remember(history=modified_today(1))
    raised = rotated.decision(time.time())
    assert (raised["kind"], raised["applied"]) == ("raise for a rotation", True)
    assert raised["target"][1:] == [3000, 250]
    assert "minutes sooner than" in raised["reason"]
    rotated.until_given(klass="gp3-3000-250")

    # Its broker is away, then the run has others to take: it stays as it is.
    (turn,) = run.turns
    run = rotated.runs.put(replace(run, turns=(replace(turn, phase=Phase.LEAVING),)))
    assert rotated.until_completed(time.time())["kind"] == "keep"
    assert rotated.decision(time.time())["kind"] == "keep"

    over = replace(run, state=RunState.DONE, turns=(replace(turn, phase=Phase.DONE),))
    rotated.runs.put(over)
    lowered = rotated.decision(time.time())
    assert (lowered["kind"], lowered["applied"]) == ("lower", True)
    assert lowered["reason"].endswith(f"the rotation of {turn.pod} is over")
    rotated.until_given(klass="gp3-3000-125")
    assert kinds(rotated) == ["grow", "raise for a rotation", "lower"]
    assert free_slots(rotated.history(), time.time()) == 1


def modified_today(times: int) -> History:
    """Return a history of so many modifications in the last hours."""
    now, shape = time.time(), Gp3(100)
    return History(
        known_since=now - 48 * HOUR,
        looked_at=now,
        modifications=tuple(
            Modification(
                started_at=now - (5 - number) * HOUR,
                ended_at=now - (5 - number) * HOUR + MINUTE,
                state=ModificationState.COMPLETED,
                target=shape,
                original=shape,
                kind="grow",
            )
            for number in range(times)
        ),
    )


def kinds(stage: Stage) -> list[str]:
    return [m.kind for m in stage.history().modifications if m.ours]


def test_a_volume_whose_instance_is_the_limit_is_refused_with_the_type_that_helps(
    bound: Stage,
) -> None:
    sources = bound.steward.lookout.sources
    instance = sources.ebs.volumes([bound.volume_id])[bound.volume_id].instance_id
    for minute in range(1, 21):
        at = time.time() - MINUTE * minute - 30
        exceeded = {"InstanceEBSThroughputExceededCheck": 1.0}
        put(bound.cluster, "AWS/EC2", ("InstanceId", str(instance)), at, exceeded)
    refused = bound.decision(time.time(), dry_run=True)
    assert (refused["kind"], refused["refused_by"]) == ("refuse", "instance")
    assert "r7g.2xlarge sustains 12000 IOPS and 298 MiB/s (40000 and 1192" in refused["reason"]
    assert "; m7g.4xlarge sustains 20000 and 596" in refused["reason"]


def test_the_deployed_function_sees_every_volume_and_has_the_rights_to(cluster: Cluster) -> None:
    answer = cluster.twin.aws("lambda").invoke(
        FunctionName=FUNCTION, Payload=json.dumps({"dry_run": True}).encode()
    )
    shown = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, shown
    assert shown["mode"] == "apply"
    assert len(shown["volumes"]) >= 6
    assert {d["pool"] for d in shown["decisions"]} >= {"broker-a", "broker-b", "broker-c"}
