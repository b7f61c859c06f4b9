"""A real Kafka of somebody else's is adopted, loses a machine under load, and is left as it was.

No termination handler is there: the functions drain by themselves, through the eviction API.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cli.engine.layers import Layers
from cli.main import app
from core.ground.naming import CLUSTER_TAG, OPERATIONS
from core.incidents.record import Incident, State
from handlers.store.ledger import Ledger, rounds
from local import environment, journal
from local import twin as twins
from local.demo import result
from local.demo import rotation as demo
from local.pulumi.bin import twin_project
from local.twin import Twin
from tests.integration import inventory
from tests.integration.cluster import quiet_narrator
from tests.integration.conftest import LOGS
from tests.integration.their_kafka import (
    EKS,
    GROUPS,
    KAFKA,
    NAMESPACE,
    NODE_LABEL,
    START_SECONDS,
    USER,
    TheirKafka,
)
from tests.integration.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]
PREFIX = f"{EKS}-{KAFKA}"
LEAVING = 1
TIMINGS = {
    "tick_interval_seconds": 2,
    "post_condition_hold_seconds": 10,
    "hold_limit_seconds": 3600,
    # A drain must be over, whatever waits in a queue, before its node is kept.
    "nth_queue_retention_seconds": 900,
}


@pytest.fixture(scope="module")
def twin(tools: None, machines: None) -> Iterator[Twin]:
    """A twin of this test's own, whose IAM refuses what no policy allows."""
    with (
        pytest.MonkeyPatch.context() as settings,
        twins.running(lambda _sentence: None, keep_logs=LOGS / "their-kafka") as running,
    ):
        # The commands run with their account's credentials, as a person's do.
        for key, value in environment.with_credentials(running.place).items():
            if key.startswith("AWS_"):
                settings.setenv(key, value)
        yield running


@pytest.fixture(scope="module")
def theirs(twin: Twin) -> Iterator[TheirKafka]:
    made = TheirKafka(twin)
    with made.balanced():
        until(made.ready, "their Kafka runs", START_SECONDS, twin.check_alive)
        yield made


@pytest.fixture(scope="module")
def described(twin: Twin, theirs: TheirKafka) -> Path:
    """The description that a survey of it writes, with what a survey cannot know filled in."""
    path = Path(twin.place.path("acme.yaml"))
    kubeconfig = str(twin.place.path("kubeconfig"))
    # The twin's AWS has no Health, quotas, insights or zonal shifts: what they know is unknown.
    ran("survey", "--kubeconfig", kubeconfig, "--json", "--adopt", str(path), codes={2})
    (kafka,) = read(path)["kafkas"]
    kafka |= {"bootstrap": theirs.bootstrap, "authentication": "tls", "credentials_secret": USER}
    change(
        path,
        level="watch",
        kafkas=[kafka],
        pool_label=NODE_LABEL,
        subnets=[theirs.subnets["a"]],
        security_groups=[theirs.security_group],
        timings=TIMINGS,
    )
    return path


@pytest.fixture(scope="module")
def acting(twin: Twin, theirs: TheirKafka, described: Path) -> Iterator[Layers]:
    """Watched first, then acted on; what was before it must be what is after it."""
    before = inventory.take_inventory(twin)
    project = twin_project(twin.place, EKS, described, layers=(OPERATIONS,))
    layers = Layers(EKS, twin.environment(), project, layers=(OPERATIONS,))
    layers.up()
    change(described, level="act")
    layers.up()
    yield layers
    layers.destroy()
    left = inventory.differences(before, inventory.take_inventory(twin))
    assert left == {}, json.dumps(left, indent=1)


def ran(*words: str, codes: set[int]) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code in codes, f"{words}: {done.exit_code}\n{done.output}"
    return done.stdout


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())["adopt"]
    return found


def change(path: Path, **changes: Any) -> None:
    path.write_text(yaml.safe_dump({"adopt": read(path) | changes}, sort_keys=False))


def ended(twin: Twin, instance_id: str) -> Incident | None:
    table = f"{PREFIX}-incidents"
    ledger = Ledger(table, KAFKA, environment.REGION, client=twin.aws("dynamodb"))
    found = rounds(ledger, instance_id)
    return found[-1] if found and not found[-1].open else None


@contextlib.contextmanager
def load(twin: Twin, theirs: TheirKafka) -> Iterator[Any]:
    """Produce and consume for the block; what it yields stops it and counts."""
    words = (NAMESPACE, KAFKA, theirs.bootstrap, str(twin.place.directory))
    client = twin.start_program("load", "tests.integration.their_load", *words)

    def counted() -> dict[str, Any]:
        client.popen.terminate()
        return result.summary(twin)

    try:
        demo._wait_for_acks(twin, quiet_narrator())
        yield counted
    finally:
        twin.processes.stop(client, grace_seconds=5)


def happened(twin: Twin, event: str, **fields: Any) -> list[float]:
    return [
        float(fact["at"])
        for fact in journal.read(twin.place)
        if fact["event"] == event and fields.items() <= fact.items()
    ]


def evicted(twin: Twin) -> Iterator[tuple[str, float]]:
    """Yield the pods that were evicted, and when."""
    for fact in journal.read(twin.place):
        if fact["event"] == "pod_evicted":
            yield str(fact["pod"]), float(fact["at"])


def test_the_survey_of_it_describes_it(described: Path) -> None:
    found = read(described)
    assert (found["eks_cluster"], found["region"]) == (EKS, environment.REGION)
    assert found["scaling_groups"] == sorted(GROUPS.values())
    assert found["drainer"] == "none"
    assert "eviction" in ran("adopt", "plan", str(described), codes={0})


def test_doctor_and_health_find_nothing_wrong(acting: Layers, described: Path) -> None:
    assert "everything is as its description says" in ran("doctor", str(described), codes={0})
    examined = json.loads(ran("health", str(described), "--json", codes={0}))
    assert examined["status"] == "healthy"
    (again,) = acting.up()
    assert again.changed == 0


def test_a_machine_of_theirs_dies_under_load_and_nothing_is_lost(
    twin: Twin, theirs: TheirKafka, acting: Layers, described: Path
) -> None:
    leaving = theirs.instance_of(LEAVING)
    beside = theirs.beside(LEAVING)
    with load(twin, theirs) as counted:
        theirs.scaling.terminate_instance_in_auto_scaling_group(
            InstanceId=leaving, ShouldDecrementDesiredCapacity=False
        )
        over = until(
            lambda: ended(twin, leaving),
            f"the incident of {leaving} is over",
            demo.ROTATION_LIMIT_SECONDS,
            twin.check_alive,
        )
        until(lambda: happened(twin, "instance_terminated", instance=leaving), "it has gone")
        samples = result.isr_samples(twin)
        summary = counted()
    assert (summary["lost"], summary["client_errors"]) == (0, 0), summary
    assert summary["acked"] == summary["sent"] > 0
    states = [t.state for t in over.transitions]
    assert states[-1] is State.RELEASED, over.transitions
    went = dict(evicted(twin))
    # Whatever else was on the node goes first, by the eviction API as Kafka's pod does.
    assert [went[name] < went[f"{KAFKA}-mains-{LEAVING}"] for name in beside] == [True]
    assert {missing for s in samples for missing in s["missing"]} <= {LEAVING}
    assert theirs.ready()
    assert theirs.instance_of(LEAVING) != leaving
    tags = theirs.group(GROUPS["a"])["Tags"]
    assert (CLUSTER_TAG, PREFIX) in {(tag["Key"], tag["Value"]) for tag in tags}
    examined = json.loads(ran("health", str(described), "--json", codes={0}))
    assert examined["status"] == "healthy"
