"""stacks: the stack's name chooses the layer; a mistake is a sentence; growing only adds."""

import importlib.util
import json
import runpy
from typing import Any

import pulumi
import pytest

from core.ground.errors import InvalidInput
from core.ground.naming import LAYERS
from infra.spec import ROOT
from stacks.program import split
from tests.unit.infra.programs import ZONES, description, run_layer
from tests.unit.infra.recording import Recorded, run_program

EXPORTS = {
    "foundation": {"vpc_id", "eks_cluster_name", "eks_endpoint", "eks_ca"},
    "platform": {"events_queue_url", "nth_queue_url", "nth_release"},
    "kafka": {"auto_scaling_groups", "namespace", "bootstrap"},
    "operations": {"ledger_table", "ticks_queue_url", "functions"},
    "analytics": {"billing_bucket"},
}
# A component for all its package: its definitions have the provider.
CHART = "kubernetes:helm.sh/v3:Chart"


@pytest.mark.parametrize("layer", LAYERS)
def test_a_stack_is_named_for_its_environment_and_layer(layer: str) -> None:
    assert split(f"my-prod-{layer}") == ("my-prod", layer)


@pytest.mark.parametrize("stack", ["prod", "kafka", "prod-kafkas", "-kafka", "prod-"])
def test_a_stack_without_a_layer_is_told_the_layers(stack: str) -> None:
    with pytest.raises(InvalidInput, match="foundation, platform, kafka, operations, analytics"):
        split(stack)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_exports_what_others_read(layers: dict[str, Recorded], layer: str) -> None:
    missing = EXPORTS[layer] - {k for k, v in layers[layer].outputs.items() if v is not None}
    assert not missing


@pytest.mark.parametrize("layer", LAYERS)
def test_every_resource_has_a_parent_component_and_an_explicit_provider(
    layers: dict[str, Recorded], layer: str
) -> None:
    for resource in layers[layer].resources:
        package = resource.type.partition(":")[0]
        if package in ("aws", "kubernetes") and resource.type != CHART:
            assert resource.provider == package, resource.name
            assert not resource.parent.startswith("stillwater-"), resource.name


def test_a_first_preview_runs_with_nothing_known() -> None:
    recorded = run_layer("foundation", description(), preview=True)
    assert recorded.of("eks/nodeGroup:NodeGroup")


def test_a_layer_before_its_time_says_which_stack_comes_first() -> None:
    with pytest.raises(pulumi.RunError, match=r"exports no .*run `pulumi up -s test-foundation`"):
        run_layer("kafka", description())


def test_a_zone_the_foundation_does_not_have_yet_says_so(layers: dict[str, Recorded]) -> None:
    grown = description(availability_zones=[*ZONES, "us-east-1d"])
    references = {"test-foundation": layers["foundation"].outputs}
    with pytest.raises(pulumi.RunError, match="no private_subnet_ids for us-east-1d"):
        run_layer("kafka", grown, references)


def test_a_zone_to_come_can_be_previewed_in_every_layer(layers: dict[str, Recorded]) -> None:
    grown = description(availability_zones=[*ZONES, "us-east-1d"])
    references = {f"test-{name}": run.outputs for name, run in layers.items()}
    recorded = run_layer("kafka", grown, references, preview=True)
    assert recorded.one("autoscaling/group:Group", "nodes-us-east-1d-broker")


def as_engine(raw: dict[str, Any], stack: str = "test-foundation") -> Recorded:
    """Run the directory as the engine does."""

    def program() -> None:
        runpy.run_path(str(ROOT / "stacks"), run_name="__main__")

    return run_program(program, stack_name=stack, config={"cluster": json.dumps(raw)})


def test_a_contradictory_spec_stops_the_engine_with_every_violation_and_no_traceback() -> None:
    raw = description(timings={"pod_grace_seconds": 100, "queue_visibility_timeout_seconds": 30})
    with pytest.raises(pulumi.RunError) as caught:
        as_engine(raw)
    sentences = str(caught.value).splitlines()
    assert len(sentences) >= 2
    assert all(sentence.endswith(".") for sentence in sentences)
    assert caught.value.__suppress_context__


def test_an_unknown_layer_stops_the_engine_in_a_sentence() -> None:
    with pytest.raises(pulumi.RunError, match="Stack 'test-storage' names no layer"):
        as_engine(description(), stack="test-storage")


def test_a_module_on_the_engines_path_hides_nobody_elses() -> None:
    on_the_path = [entry for entry in (ROOT / "stacks").iterdir() if entry.stem != "__main__"]
    names = {e.stem for e in on_the_path if e.suffix == ".py" or (e / "__init__.py").exists()}
    assert names >= {"program", "layers"}
    hidden = {name for name in names if importlib.util.find_spec(name) is not None}
    assert not hidden
