"""Names and tags of every resource: no two of one name, and ours on all that take them.

What Pulumi creates gets them from its provider's default tags, unless the resource type knows none
of those. What an Auto Scaling group, a node group, Karpenter, the EBS CSI driver or Data Lifecycle
Manager creates gets them from the settings of each.
"""

import importlib
import inspect
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from infra.tags import SNAPSHOT_TAG, cluster_tags
from tests.unit.infra.programs import run_changed, spec
from tests.unit.infra.recording import Recorded, Resource
from tests.unit.infra.variants import EVERYTHING, recorded

TEAM = EVERYTHING["tags"]
OURS = cluster_tags(spec(tags=TEAM)).everywhere
VARIANT_NAMES = ("certificates", "karpenter with everything")
# Python's keywords.
MODULES = {"lambda": "lambda_"}


@pytest.fixture(scope="module", params=VARIANT_NAMES)
def tagged(request: pytest.FixtureRequest, cache: None) -> Mapping[str, Recorded]:
    return recorded(request.param)


def of_aws(layers: Mapping[str, Recorded]) -> Iterator[Resource]:
    for layer in layers.values():
        yield from (r for r in layer.resources if r.type.startswith("aws:"))


def resource_class(type_: str) -> type:
    _, path, name = type_.split(":")
    module = path.partition("/")[0]
    return getattr(importlib.import_module(f"pulumi_aws.{MODULES.get(module, module)}"), name)


def takes_tags(found: type) -> bool:
    return "tags" in inspect.signature(found._internal_init).parameters


def gets_default_tags(found: type) -> bool:
    return hasattr(found, "tags_all")


def test_the_provider_of_every_layer_has_our_tags(tagged: Mapping[str, Recorded]) -> None:
    for layer in tagged.values():
        provider = layer.one("providers:aws")
        assert json.loads(provider.inputs["defaultTags"])["tags"] == OURS
        assert provider.inputs["region"] == "us-east-1"


def test_what_gets_no_default_tags_has_them_all_itself(tagged: Mapping[str, Recorded]) -> None:
    taking = [r for r in of_aws(tagged) if takes_tags(resource_class(r.type))]
    alone = [r for r in taking if not gets_default_tags(resource_class(r.type))]
    assert len({r.type for r in taking}) > 20
    for resource in alone:
        assert own_tags(resource).items() >= OURS.items(), resource.name
    assert {r.type for r in alone} <= {"aws:autoscaling/group:Group"}


def own_tags(resource: Resource) -> dict[str, str]:
    """Return a resource's tags: a mapping, or the list an Auto Scaling group has."""
    tags = resource.inputs.get("tags", {})
    return {tag["key"]: tag["value"] for tag in tags} if isinstance(tags, list) else dict(tags)


def test_no_tag_of_a_resources_own_hides_one_of_ours(tagged: Mapping[str, Recorded]) -> None:
    for resource in of_aws(tagged):
        own = own_tags(resource)
        assert {key: value for key, value in own.items() if OURS.get(key, value) != value} == {}


def test_a_group_hands_our_tags_on_to_its_nodes(tagged: Mapping[str, Recorded]) -> None:
    for group in tagged["kafka"].of("autoscaling/group:Group"):
        inherited = {t["key"] for t in group.inputs["tags"] if t["propagateAtLaunch"]}
        assert inherited >= OURS.keys()


def test_what_a_launch_template_launches_has_our_tags(tagged: Mapping[str, Recorded]) -> None:
    templates = [r for r in of_aws(tagged) if r.type.endswith(":LaunchTemplate")]
    assert templates
    for template in templates:
        launched = {t["resourceType"]: t["tags"] for t in template.inputs["tagSpecifications"]}
        assert launched.keys() == {"instance", "volume", "network-interface"}
        for tags in launched.values():
            assert tags.items() >= OURS.items(), template.name


def test_what_karpenter_launches_has_our_tags(cache: None) -> None:
    layers = recorded("karpenter with everything")
    classes = layers["kafka"].of("karpenter.k8s.aws/v1:EC2NodeClass")
    assert classes
    for node_class in classes:
        assert node_class.inputs["spec"]["tags"].items() >= OURS.items()


def parameter_tags(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that a storage or snapshot class's parameters name."""
    named = (v for k, v in parameters.items() if k.startswith("tagSpecification_"))
    return dict(tag.split("=", 1) for tag in named)


def test_what_the_csi_driver_creates_has_our_tags(tagged: Mapping[str, Recorded]) -> None:
    driver = next(
        r
        for r in tagged["foundation"].of("eks/addon:Addon")
        if r.inputs["addonName"] == "aws-ebs-csi-driver"
    )
    told = json.loads(driver.inputs["configurationValues"])["controller"]["extraVolumeTags"]
    assert told == OURS
    storage = tagged["platform"].one("storage.k8s.io/v1:StorageClass").inputs["parameters"]
    assert {**told, **parameter_tags(storage)} == {**OURS, SNAPSHOT_TAG: "test-orders"}
    snapshots = tagged["platform"].one("snapshot.storage.k8s.io/v1:VolumeSnapshotClass").inputs
    assert parameter_tags(snapshots["parameters"]) == OURS


def test_a_scheduled_snapshot_has_the_tags_of_its_volume(tagged: Mapping[str, Recorded]) -> None:
    policy = tagged["platform"].one("dlm/lifecyclePolicy:LifecyclePolicy").inputs
    assert [s["copyTags"] for s in policy["policyDetails"]["schedules"]] == [True]


def storage_class(**changed: Any) -> Mapping[str, Any]:
    return run_changed("platform", **changed).one("storage.k8s.io/v1:StorageClass").inputs


def test_a_new_tag_of_the_users_leaves_the_storage_class_as_it_is(cache: None) -> None:
    # Kubernetes refuses to change one, and a protected one is not made again.
    assert storage_class() == storage_class(tags=TEAM)


# A hook's name is its group's own.
WITHIN_ANOTHER = {"aws:autoscaling/lifecycleHook:LifecycleHook"}


@pytest.mark.parametrize("variant", ["certificates", "karpenter with everything"])
def test_every_name_of_a_kind_is_given_once(variant: str, cache: None) -> None:
    named = Counter(
        (resource.type, str(resource.inputs["name"]))
        for layer in recorded(variant).values()
        for resource in layer.resources
        if resource.type.startswith("aws:")
        and resource.type not in WITHIN_ANOTHER
        and "name" in resource.inputs
    )
    assert [key for key, times in named.items() if times > 1] == []
    assert len(named) > 50
