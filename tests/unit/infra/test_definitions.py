"""infra.charts.lbc: what Helm makes once, and what the program keeps at its version."""

import json

import pulumi
import pulumi_kubernetes as k8s
import pytest

from infra.charts.lbc import PATCH_FORCE, ChartWithDefinitions, definitions
from tests.unit.infra.recording import Recorded, run_program

CHART = ChartWithDefinitions(chart="oci://charts.example/tides", version="1.2.0")
NAMES = {"kind": "Tide", "plural": "tides", "singular": "tide"}
RENDERED = [
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "tides.example", "annotations": {"made-by": "a generator"}},
        "spec": {"group": "example", "names": NAMES, "scope": "Namespaced", "versions": []},
    },
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "tides"}, "spec": {}},
]


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    def program() -> None:
        cluster = pulumi.ResourceOptions(providers=[k8s.Provider("cluster", kubeconfig="{}")])
        parent = pulumi.ComponentResource("test:infra:Tides", "tides", None, cluster)
        after = definitions("tides-definitions", CHART, parent)
        child = pulumi.ResourceOptions(parent=parent, depends_on=after)
        k8s.helm.v3.Release("tides-release", chart=CHART.chart, skip_crds=True, opts=child)

    return run_program(program, rendered=RENDERED)


def test_they_are_those_of_the_pinned_chart_and_nothing_else_of_it(recorded: Recorded) -> None:
    assert [r.type for r in recorded.resources if r.type.startswith("kubernetes:")] == [
        "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition",
        "kubernetes:helm.sh/v3:Chart",
        "kubernetes:helm.sh/v3:Release",
    ]
    ((_, asked),) = recorded.invokes
    assert json.loads(asked["jsonOpts"])["version"] == CHART.version


def test_they_come_first_outlive_the_release_and_take_over_helms(recorded: Recorded) -> None:
    definition = recorded.one("apiextensions.k8s.io/v1:CustomResourceDefinition")
    assert definition.retain_on_delete
    assert definition.provider == "cluster"
    annotations = definition.inputs["metadata"]["annotations"]
    assert annotations == {"made-by": "a generator", PATCH_FORCE: "true"}
    assert definition.name in recorded.one("helm.sh/v3:Release").depends_on


@pytest.mark.parametrize(
    ("layer", "component"), [("platform", "lbc"), ("kafka", "strimzi")], ids=["lbc", "strimzi"]
)
def test_a_chart_with_such_a_folder_leaves_it_to_the_program(
    layers: dict[str, Recorded], layer: str, component: str
) -> None:
    release = layers[layer].one("helm.sh/v3:Release", f"{component}-release")
    asked = [
        json.loads(sent["jsonOpts"]) for token, sent in layers[layer].invokes if "helm" in token
    ]
    (chart,) = (each for each in asked if each["release_name"] == f"{component}-definitions")
    assert release.inputs["skipCrds"] is True
    assert (chart["chart"], chart["version"]) == tuple(
        release.inputs[key] for key in ("chart", "version")
    )
