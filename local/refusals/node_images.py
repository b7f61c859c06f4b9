"""Refuses images that EKS makes no nodes of: of that Kubernetes, or on that machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local.refusals.instances import runs
from local.refusals.node_templates import node_groups_with_templates
from local.refusals.pairs import minor, versions_of_clusters
from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import about
from local.refusals.together import limit as together

_EKS = "https://docs.aws.amazon.com/eks/latest/userguide/"
# EKS user guide, "Amazon Linux 2": the last Kubernetes that it has images of it for.
LAST_OF_AL2 = 32


def _gone(inputs: Mapping[str, Any], version: str) -> str:
    image = str(inputs.get("amiType") or "")
    if image.startswith("AL2_") and minor(version) > LAST_OF_AL2:
        return f"amiType {image} is not supported for Kubernetes version {version}"
    return ""


@together(f"{_EKS}launch-templates.html")
def images_beside_clusters_and_templates(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """An image that the cluster's Kubernetes has, and that runs on the template's machine."""
    versions = versions_of_clusters(everything)
    for each, template in node_groups_with_templates(everything):
        version = versions.get(str(each.inputs.get("clusterName")), "")
        # With a version of its own it is refused by itself.
        if not each.inputs.get("version") and (gone := _gone(each.inputs, version)):
            code = "InvalidParameterException"
            yield about(each, "CreateNodegroup", code, gone, "amiType")
        kind = str(template.inputs.get("instanceType") or "") if template else ""
        image = str(each.inputs.get("amiType") or "")
        if kind and image and not runs(image, kind):
            message = f"[{kind}] is not a valid instance type for requested amiType {image}"
            code = "InvalidParameterException"
            yield about(each, "CreateNodegroup", code, message, "launchTemplate")
