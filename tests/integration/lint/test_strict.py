"""Every Kubernetes object of the program, charts included, at a real API server in strict mode.

Strict refuses what a server otherwise drops without a word: a field that no kind has, or one that
is there twice. The definitions of custom resources are the real ones: Karpenter's and the load
balancer controller's come with their charts, the others from the folder that STILLWATER_CRDS names
or that lies beside this repository.
"""

import copy
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import twin
from local.kubernetes import control_plane, crds
from local.kubernetes.client import Api, ApiError, has_condition
from local.place import claim_place
from local.processes import Processes
from local.tools import tool_path
from tests.integration.lint.rendered import ELSEWHERE, Rendered, charts, objects
from tests.integration.waiting import until
from tests.unit.infra.programs import run_layers
from tests.unit.infra.recording import Recorded
from tests.unit.infra.variants import VARIANTS

pytestmark = pytest.mark.integration

BESIDE = Path(__file__).parents[4] / "shared" / "data" / "crds"
FOLDER = Path(os.environ.get("STILLWATER_CRDS", BESIDE))
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
DEFINITION = "CustomResourceDefinition"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MANAGER = "pulumi"
SHOWN = ("asg", "karpenter", "certificates", "karpenter with everything", "combined")


@pytest.fixture(scope="module")
def programs(tools: None) -> Mapping[str, dict[str, Recorded]]:
    return {name: run_layers(VARIANTS[name]) for name in SHOWN}


@pytest.fixture(scope="module")
def api(tools: None, programs: Mapping[str, dict[str, Recorded]]) -> Iterator[Api]:
    """A control plane without a twin around it, which knows every custom resource we write."""
    if not FOLDER.is_dir():
        pytest.skip(
            "the real CustomResourceDefinitions are not here; name their folder in STILLWATER_CRDS"
        )
    with claim_place() as place, twin.prepared_directory(place):
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            binaries = {name: tool_path(name) for name in PROGRAMS}
            server = control_plane.start(processes, place, binaries)
            _define(server, programs)
            yield server
        finally:
            processes.close()


def _define(api: Api, programs: Mapping[str, dict[str, Recorded]]) -> None:
    known = {each["metadata"]["name"]: each for each in crds.snapshot_definitions()}
    for path in sorted(FOLDER.rglob("*.yaml")):
        found = yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader)
        known |= {d["metadata"]["name"]: d for d in found if d and d.get("kind") == DEFINITION}
    # What a chart brings is what a cluster gets.
    for layers in programs.values():
        brought = [o.manifest for o in objects(layers) if o.manifest["kind"] == DEFINITION]
        known |= {each["metadata"]["name"]: each for each in brought}
    for name, definition in known.items():
        api.apply(f"{DEFINITIONS}/{name}", definition, field_manager=MANAGER, strict=True)
    for name in known:
        path = f"{DEFINITIONS}/{name}"
        until(lambda at=path: has_condition(api.get(at), "Established"), f"{name} is served")


class Server:
    """Judges objects, as `kubectl apply --server-side --dry-run=server --validate=strict` does."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}

    def refusal(self, sent: Rendered) -> str | None:
        """Return why the server would not take an object, or None."""
        try:
            path = self._path(sent.manifest, sent.namespace)
            self._api.apply(path, sent.manifest, field_manager=MANAGER, dry_run=True, strict=True)
        except ApiError as error:
            return str(error)
        return None

    def _path(self, manifest: Mapping[str, Any], namespace: str) -> str:
        version, kind = manifest["apiVersion"], manifest["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if root not in self._kinds:
            self._kinds[root] = {
                each["kind"]: (each["name"], each["namespaced"])
                for each in self._api.get(root)["resources"]
                if "/" not in each["name"]
            }
        plural, namespaced = self._kinds[root][kind]
        metadata = manifest["metadata"]
        if namespaced:
            root += f"/namespaces/{self._namespace(metadata.get('namespace', namespace))}"
        return f"{root}/{plural}/{metadata['name']}"

    def _namespace(self, name: str) -> str:
        # A dry run leaves nothing behind, so that the next object would find no namespace.
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self._api.apply(f"/api/v1/namespaces/{name}", body, field_manager="test")
        return name


@pytest.mark.parametrize("variant", SHOWN)
def test_every_object_is_accepted(
    variant: str, api: Api, programs: Mapping[str, dict[str, Recorded]]
) -> None:
    server = Server(api)
    judged = objects(programs[variant])
    refused = {o.name: why for o in judged if (why := server.refusal(o)) is not None}
    assert not refused
    assert {"Kafka", "KafkaNodePool", "Deployment", "StorageClass"} <= {
        o.manifest["kind"] for o in judged
    }


def test_every_chart_is_rendered_or_looked_at_elsewhere(
    programs: Mapping[str, dict[str, Recorded]],
) -> None:
    for layers in programs.values():
        sources = {o.source for o in objects(layers)}
        releases = {r.name for each in layers.values() for r in each.of("helm.sh/v3:Release")}
        unrendered = {
            str(r.inputs["chart"]).rpartition("/")[2]
            for each in layers.values()
            for r in each.of("helm.sh/v3:Release")
            if r.name in releases - sources
        }
        assert unrendered <= ELSEWHERE.keys()
        assert charts(layers) - ELSEWHERE.keys() >= {
            "aws-node-termination-handler",
            "aws-load-balancer-controller",
        }
    assert "karpenter" in charts(programs["karpenter"])


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", ("spec", "template", "spec", "gracePeriod"), 1),
        ("StorageClass", ("reclaim",), "Retain"),
        ("Kafka", ("spec", "kafka", "replicas"), 3),
        ("KafkaNodePool", ("spec", "template", "pod", "readinessGates"), []),
        ("TargetGroupBinding", ("spec", "port"), 9094),
    ],
)
def test_a_field_that_no_kind_has_is_refused(
    kind: str,
    path: tuple[str, ...],
    value: object,
    api: Api,
    programs: Mapping[str, dict[str, Recorded]],
) -> None:
    whole = next(o for o in objects(programs["asg"]) if o.manifest["kind"] == kind)
    wrong = copy.deepcopy(whole)
    inner = wrong.manifest
    for step in path[:-1]:
        inner = inner.setdefault(step, {})
    inner[path[-1]] = value
    refusal = Server(api).refusal(wrong)
    assert refusal is not None
    assert path[-1] in refusal
