"""What a node has to differ in from a new one of its group to be rotated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.rotation.plan import Build, Launched, stale_template, why_outdated, why_unknown
from tests.every_case import every_case

OLD = Build(template_id="lt-1", template_version="3", image_id="ami-1", instance_type="m7g.large")
SERVER = "v1.36.1-eks-2"


@every_case(
    ("wanted", "why"),
    [
        ({}, None),
        ({"image_id": "ami-2"}, "image ami-1 instead of ami-2"),
        ({"instance_type": "m8g.large"}, "instance type m7g.large instead of m8g.large"),
        ({"template_version": "4"}, "launch template version 3 instead of 4"),
        ({"template_id": "lt-2"}, "launch template lt-1 instead of lt-2"),
        (
            {"template_id": "lt-2", "template_version": "1"},
            "launch template lt-1 instead of lt-2",
        ),
        ({"image_id": None, "instance_type": None, "template_version": None}, None),
        # A parameter says which image it is, and was not read.
        ({"image_id": "resolve:ssm:/eks/1.36"}, None),
        (
            {"template_id": None, "configuration": "kafka-2"},
            "launch template lt-1 instead of launch configuration kafka-2",
        ),
    ],
)
def test_each_difference_is_a_reason(wanted: dict[str, str | None], why: str | None) -> None:
    assert why_outdated(Launched(OLD, replace(OLD, **wanted)), SERVER, SERVER) == why


@every_case(
    ("present", "wanted", "why"),
    [
        ("kafka-1", "kafka-1", None),
        ("kafka-1", "kafka-2", "launch configuration kafka-1 instead of kafka-2"),
        (
            None,
            "kafka-2",
            "no launch template or configuration instead of launch configuration kafka-2",
        ),
    ],
)
def test_a_launch_configuration_has_no_versions(
    present: str | None, wanted: str, why: str | None
) -> None:
    launched = Launched(Build(configuration=present), Build(configuration=wanted))
    assert why_outdated(launched, SERVER, SERVER) == why


@every_case(
    ("launched", "words"),
    [
        (Launched(OLD, OLD), None),
        (None, "no group of this cluster has its instance"),
        (Launched(OLD, replace(OLD, image_id="resolve:ssm:/eks/1.36")), "resolve:ssm:/eks/1.36"),
    ],
)
def test_what_cannot_be_compared_says_why(launched: Launched | None, words: str | None) -> None:
    assert (words or "") in (why_unknown(launched) or "")
    assert (why_unknown(launched) is None) is (words is None)


def test_an_older_kubelet_is_a_reason_where_a_new_node_would_have_another() -> None:
    said = why_outdated(Launched(OLD, replace(OLD, image_id="ami-2")), "v1.35.4", SERVER)
    assert said == f"kubelet v1.35.4 under Kubernetes {SERVER}, image ami-1 instead of ami-2"


@pytest.mark.parametrize("side", ["present", "wanted"])
def test_an_older_kubelet_is_a_reason_where_the_image_is_not_known(side: str) -> None:
    unknown = replace(Launched(OLD, OLD), **{side: replace(OLD, image_id=None)})
    assert why_outdated(unknown, "v1.35.4", SERVER) == f"kubelet v1.35.4 under Kubernetes {SERVER}"
    assert not list(stale_template({"i-1": unknown}, {"i-1": "v1.35.4"}, SERVER))


def test_an_older_kubelet_in_the_same_image_is_said_and_no_reason() -> None:
    same = Launched(OLD, OLD)
    assert why_outdated(same, "v1.35.4", SERVER) is None
    (note,) = stale_template({"i-1": same}, {"i-1": "v1.35.4", "i-2": "v1.35.4"}, SERVER)
    assert "give it a newer one first" in note


@pytest.mark.parametrize("kubelet", ["v1.36.0", "1.36+", ""])
def test_a_kubelet_of_the_same_minor_version_or_none_is_no_reason(kubelet: str) -> None:
    unknown = Launched(replace(OLD, image_id=None), OLD)
    assert why_outdated(unknown, kubelet, SERVER) is None
