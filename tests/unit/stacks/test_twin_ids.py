"""The twin's own ids pass its own gate: every recorded resource is made as `up local` makes it.

The layers' programs are recorded with ids of AWS's form; here each resource is made by the twin's
provider, moto answering in this process, and what later ones name is what the twin has drawn.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from moto import mock_aws

from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_provider import AwsProvider
from local.pulumi.provider import Resource, State
from local.store import ResourceStore
from tests.unit.infra.programs import description, run_layers
from tests.unit.infra.real_outputs import real
from tests.unit.infra.recording import Resource as Recorded
from tests.unit.infra.variants import EVERYTHING

# Judged, and not made: these need Kubernetes, a zip file, or what only the running twin adds to
# moto. Their own ids are names, or ARNs that others do not read.
APART = (
    *("aws:autoscaling/group", "aws:eks/", "aws:kms/grant", "aws:lambda/", "aws:lb/l"),
    "aws:s3/bucketObjectv2",
)
# The group that EKS makes for a cluster, which nothing here makes.
OF_THE_CLUSTER = "sg-0123456789abcdef0"


def filled(value: Any, drawn: Mapping[str, str]) -> Any:
    """Return inputs with the twin's ids in place of the recorded ones."""
    if isinstance(value, Mapping):
        return {key: filled(each, drawn) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, drawn) for each in value]
    if isinstance(value, str):
        for recorded, own in drawn.items():
            value = value.replace(recorded, own)
    return value


def noted(resource: Recorded, made: State) -> dict[str, str]:
    """Return what stood for a resource in the recording, and what the twin says in its place."""
    identity, outputs = real(resource.type, resource.name, resource.inputs)
    pairs = {identity: made.id}
    pairs |= {
        str(value): str(made.outputs[key])
        for key, value in outputs.items()
        if isinstance(value, str) and key != "name" and isinstance(made.outputs.get(key), str)
    }
    return {recorded: own for recorded, own in pairs.items() if recorded and recorded != own}


def in_order(resources: Iterable[Recorded]) -> Iterator[Recorded]:
    """Yield a layer's resources, each after all that it names."""
    pending = {each.mock_urn: each for each in resources}
    while pending:
        ready = [
            r
            for r in pending.values()
            if not pending.keys() & set().union(*r.references.values()) - {r.mock_urn}
        ]
        assert ready, "resources that name each other in a circle"
        for each in ready:
            yield pending.pop(each.mock_urn)


def test_no_id_that_the_twin_draws_is_refused(tmp_path: Path, cache: None) -> None:
    layers = run_layers(description(**EVERYTHING), real_sizes=True)
    provider = AwsProvider(Aws(), ResourceStore(tmp_path))
    drawn: dict[str, str] = {}
    made = 0
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        for resource in (r for layer in layers.values() for r in in_order(layer.resources)):
            if not resource.type.startswith("aws:"):
                continue
            asked = Resource(f"urn:pulumi:local::stillwater::{resource.type}::{resource.name}")
            inputs = provider.check(asked, {}, filled(resource.inputs, drawn))
            provider.gate.judge(asked, inputs)
            if resource.type.startswith(APART) or OF_THE_CLUSTER in inputs.values():
                continue
            drawn |= noted(resource, provider.create(asked, inputs))
            made += 1
    assert made > 100
