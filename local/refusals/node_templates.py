"""Refuses what EKS does not take of the launch template that a node group names."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local.refusals.fields import values
from local.refusals.limits import first_of, limit
from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import about, of
from local.refusals.together import limit as together

_EKS = "https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html"
# The page above, "Launch template configuration basics": what is the node group's own, by the path
# in the template.
_PROHIBITED = {
    "hibernationOptions.configured": "Hibernation is not supported",
    "iamInstanceProfile": "The instance profile must be that of the node group's role",
    "instanceInitiatedShutdownBehavior": "EKS sets the shutdown behaviour of its nodes itself",
    "instanceMarketOptions": "Spot capacity is asked for by the node group's capacityType",
    "networkInterfaces.*.subnetId": "Subnets are those of the node group",
}


def node_groups_with_templates(
    everything: Sequence[Wanted],
) -> Iterator[tuple[Wanted, Wanted | None]]:
    """Yield each node group with the launch template that it names, by its id or by its name."""
    templates = of(everything, "ec2/launchTemplate:LaunchTemplate")
    named = {each.name: each for each in templates}
    named |= {str(each.inputs["name"]): each for each in templates if each.inputs.get("name")}
    for each in of(everything, "eks/nodeGroup:NodeGroup"):
        asked = each.inputs.get("launchTemplate") or {}
        yield each, named.get(str(asked.get("id") or asked.get("name")))


@together(_EKS)
def templates_of_node_groups(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """None of what EKS sets itself, and the type and the image in one place alone."""
    for each, template in node_groups_with_templates(everything):
        wrong = _wrong(each.inputs, template.inputs) if template is not None else ""
        if wrong:
            code = "InvalidParameterException"
            yield about(each, "CreateNodegroup", code, wrong, "launchTemplate")


def _wrong(group: Mapping[str, Any], template: Mapping[str, Any]) -> str:
    for path, why in _PROHIBITED.items():
        if any(value not in ({}, "", False) for value in values(template, path)):
            return f"Launch template has {path.partition('.')[0]}: {why}."
    image, kind = template.get("imageId"), group.get("amiType")
    problems = (
        (
            template.get("instanceType") and group.get("instanceTypes"),
            "Cannot specify instance types in launch template and API request",
        ),
        (
            image and kind not in (None, "", "CUSTOM"),
            (
                "You cannot specify an AMI Type other than CUSTOM, when specifying an image id in "
                "your launch template."
            ),
        ),
        (
            image and (group.get("releaseVersion") or group.get("version")),
            "You cannot specify a version when specifying an image id in your launch template.",
        ),
        (
            not image and kind == "CUSTOM",
            "The launch template must have an image id for the AMI type CUSTOM.",
        ),
        (
            not image and not _may_be_merged(str(template.get("userData") or "")),
            "User data was not in the MIME multipart format.",
        ),
    )
    return next((said for wrong, said in problems if wrong), "")


def _may_be_merged(user_data: str) -> bool:
    """Say whether EKS can lay its own user data beside a template's: its images take two forms.

    Bottlerocket's is TOML, all others' MIME parts or, of Amazon Linux 2023, a node's configuration.
    """
    try:
        read = base64.b64decode(user_data, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return True
    return not read.lstrip().startswith(("#!", "#cloud-config"))


@limit("eks/nodeGroup:NodeGroup", source=_EKS)
def image_of_a_node_group(wanted: Wanted) -> Iterator[Refusal]:
    """One's own image is named by a launch template."""
    own = wanted.inputs.get("amiType") == "CUSTOM" and not wanted.inputs.get("launchTemplate")
    message = "The AMI type CUSTOM needs a launch template that names the image."
    yield from first_of("CreateNodegroup", "InvalidParameterException", (own, message, "amiType"))
