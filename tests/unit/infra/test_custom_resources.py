"""Every custom resource of the program against the real definitions, unknown fields refused.

The definitions are Strimzi 1.2.0's, the Prometheus operator's and others' own, found in the folder
that STILLWATER_CRDS names or beside this repository. An API server without them takes anything.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.every_case import every_case
from tests.unit.infra.recording import Resource
from tests.unit.infra.variants import recorded

BESIDE = Path(__file__).parents[4] / "shared" / "data" / "crds"
FOLDER = Path(os.environ.get("STILLWATER_CRDS", BESIDE))
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason="the real CustomResourceDefinitions are not here; name their folder in STILLWATER_CRDS",
)
# Kinds whose definitions are in no folder here: the snapshot controller's add-on brings them.
ELSEWHERE = {"VolumeSnapshotClass"}
BUILT_IN = (
    *("core/", "apps/", "policy/", "storage.k8s.io/"),
    *("admissionregistration.k8s.io/", "rbac.authorization.k8s.io/", "helm.sh/"),
    "networking.k8s.io/",
)
SHAPES = ("asg", "certificates", "passwords", "combined")


def schemas() -> dict[tuple[str, str], dict[str, Any]]:
    """Return every definition's schema by apiVersion and kind, closed to what it does not name."""
    found = {}
    for path in sorted(FOLDER.rglob("*.yaml")):
        for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            if not document or document.get("kind") != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            for version in spec["versions"]:
                key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
                found[key] = closed(version["schema"]["openAPIV3Schema"])
    return found


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that refuses unknown fields, as an API server in strict mode does."""
    result = dict(schema)
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    if "properties" in schema:
        result["properties"] = {k: closed(v) for k, v in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            result.setdefault("additionalProperties", False)
    if isinstance(schema.get("items"), dict):
        result["items"] = closed(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = closed(schema["additionalProperties"])
    return result


def custom(resources: list[Resource]) -> Iterator[Resource]:
    for resource in resources:
        kind = resource.type.removeprefix("kubernetes:")
        if kind != resource.type and not kind.startswith(BUILT_IN):
            yield resource


def problems(manifest: dict[str, Any], known: dict[tuple[str, str], Any]) -> list[str]:
    schema = dict(known[manifest["apiVersion"], manifest["kind"]])
    # The API server checks metadata by its own rules, not by the definition's.
    schema["properties"] = {**schema["properties"], "metadata": {"type": "object"}}
    errors = Draft202012Validator(schema).iter_errors(manifest)
    return [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in errors]


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, str], Any]:
    return schemas()


@every_case("name", SHAPES)
def test_every_custom_resource_is_one_its_definition_accepts(
    name: str, known: dict[tuple[str, str], Any], cache: None
) -> None:
    seen = set()
    for layer in recorded(name).values():
        for resource in custom(layer.resources):
            kind = resource.inputs["kind"]
            if kind not in ELSEWHERE:
                assert problems(resource.inputs, known) == [], resource.name
            seen.add(kind)
    assert {"Kafka", "KafkaNodePool"} <= seen
    if name in ("certificates", "passwords"):
        assert {"KafkaConnect", "KafkaTopic", "KafkaUser"} <= seen
        assert {"PodMonitor", "PrometheusRule"} <= seen
    assert ("KafkaRebalance" in seen) == (name == "passwords")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("replicas", 3, id="a field of an older version"),
        pytest.param("storage", {"type": "ephemeral"}, id="a field of another resource"),
        pytest.param("version", 4, id="a wrong type"),
    ],
)
def test_the_check_itself_refuses_what_strimzi_would_drop(
    field: str, value: object, known: dict[tuple[str, str], Any], layers: Any
) -> None:
    kafka = layers["kafka"].one("kafka.strimzi.io/v1:Kafka").inputs
    wrong = {**kafka["spec"], "kafka": {**kafka["spec"]["kafka"], field: value}}
    assert problems({**kafka, "spec": wrong}, known) != []


def test_readiness_gates_are_not_by_hand(known: dict[tuple[str, str], Any], layers: Any) -> None:
    # Gates come from the load balancer controller's webhook alone.
    pool = layers["kafka"].of("kafka.strimzi.io/v1:KafkaNodePool")[0].inputs
    template = {"pod": {"readinessGates": [{"conditionType": "x"}]}}
    assert problems({**pool, "spec": {**pool["spec"], "template": template}}, known) != []
