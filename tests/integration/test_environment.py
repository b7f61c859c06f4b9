"""A whole environment: a second run changes nothing, growth only adds, and nothing outlives it."""

import copy
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml
from rich.console import Console

from cli.engine.events import EngineStep
from cli.kafka_layer import Teardown
from cli.provision import Asked
from core.ground.naming import KAFKA, LAYERS
from local.commands.app import run_layers
from local.commands.layers import TwinLayers
from local.demo import spec as demo_spec
from local.twin import Twin
from tests.integration import leftovers
from tests.integration.cluster import Cluster
from tests.integration.interrupting import Interrupting

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
# Resources that a layer's destroy has deleted when it is stopped.
CTRL_C_AFTER = 4
Plan = Callable[[Mapping[str, Any]], set[tuple[str, str, str]]]


def test_a_second_up_changes_nothing(cluster: Cluster) -> None:
    changed: list[str] = []
    again = cluster.layers.again(changed.append)
    assert again.changed == 0, changed
    assert sum(result.same for result in again.results) > 200


@pytest.fixture
def plan(cluster: Cluster) -> Iterator[Plan]:
    """Previews Kafka's layer with the brokers' pool changed; nothing is carried out.

    What growth means for the other layers is told by two recordings (tests/unit/stacks).
    """
    place = cluster.twin.place
    described = place.path("cluster.yaml")

    def preview(changed: Mapping[str, Any]) -> set[tuple[str, str, str]]:
        grown = copy.deepcopy(demo_spec.spec(place))
        (pool,) = [pool for pool in grown["pools"] if pool["name"] == "broker"]
        pool |= changed
        wanted = place.path("grown.yaml")
        wanted.write_text(yaml.safe_dump(grown))
        steps: list[EngineStep] = []
        layers = TwinLayers(cluster.twin, wanted).layers
        layers.on_step = steps.append
        layers.preview_one(KAFKA)
        return {
            (step.operation, step.resource_type, step.name)
            for step in steps
            if step.operation not in {"same", "read"}
        }

    yield preview
    TwinLayers(cluster.twin, described)


@pytest.mark.long
def test_adding_a_broker_adds_its_way_in_and_raises_four_numbers(plan: Plan) -> None:
    steps = plan({"nodes_per_zone": 2})
    assert {operation for operation, _, _ in steps} == {"create", "update"}
    created = {type_ for operation, type_, _ in steps if operation == "create"}
    assert created == {
        "aws:lb/targetGroup:TargetGroup",
        "aws:lb/listener:Listener",
        "kubernetes:elbv2.k8s.aws/v1beta1:TargetGroupBinding",
    }
    # How many there are is one number in the group, one in the pool, one of which the disruption
    # budget lets one go, and one that the dashboard holds the running ones against: nothing else
    # is touched.
    updated = {(type_, name) for operation, type_, name in steps if operation == "update"}
    assert updated - {("kubernetes:core/v1:ConfigMap", "dashboards-cluster")} < updated
    assert updated - {("kubernetes:core/v1:ConfigMap", "dashboards-cluster")} == {
        (type_, name)
        for zone in demo_spec.ZONES
        for type_, name in (
            ("aws:autoscaling/group:Group", f"nodes-{zone}-broker"),
            ("kubernetes:kafka.strimzi.io/v1:KafkaNodePool", f"kafka-{zone}-broker"),
        )
    } | {("kubernetes:policy/v1:PodDisruptionBudget", "budgets-staying")}


@pytest.mark.long
def test_preparing_for_a_broker_only_adds(plan: Plan) -> None:
    steps = plan({"spare_nodes_per_zone": 1})
    assert {operation for operation, _, _ in steps} == {"create"}
    assert len(steps) == 3 * len(demo_spec.ZONES)


@pytest.mark.long
@pytest.mark.ends_the_cluster
# NTH's pods outlive their release, and with it their rights, by the grace they have.
@pytest.mark.means_to_be_refused("sqs:ReceiveMessage", "ec2:DescribeInstances")
def test_a_destroyed_environment_leaves_nothing(cluster: Cluster, interrupting: bool) -> None:
    twin = cluster.twin
    assert leftovers.in_aws(twin)
    assert leftovers.in_store(twin)
    assert leftovers.in_kubernetes(twin.api)
    if interrupting:
        halfway = Interrupting(twin, demo_spec.ENVIRONMENT, demo_spec.write(twin.place))
        assert interruptions(halfway, cluster.layers.teardown) > len(LAYERS) // 2
    twin.keep()
    said = io.StringIO()
    run_layers("destroy", Console(file=said), Asked())
    assert [layer for layer in LAYERS if layer not in said.getvalue()] == []
    assert left_over(twin) == "", left_over(twin)


def interruptions(halfway: Interrupting, teardown: Teardown) -> int:
    """Destroy as `Layers.destroy` does, each layer stopped once; return how many really were."""
    stopped = 0
    for layer in reversed(LAYERS):
        teardown.prepare(layer)
        stopped += halfway.destroy(layer, after=CTRL_C_AFTER) is None
        halfway.layers.destroy_one(layer)
        teardown.clean_up(layer)
    return stopped


def left_over(twin: Twin) -> str:
    found = [*leftovers.in_kubernetes(twin.api), *leftovers.in_aws(twin), *leftovers.in_store(twin)]
    return "\n".join(found)
