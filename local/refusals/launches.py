"""Refuses what a launch does not take of network interfaces and of what else a template says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.fields import values
from local.refusals.limits import first_of, limit
from local.refusals.networks import SECURITY_GROUPS_PER_INTERFACE
from local.refusals.refusal import Refusal, Wanted

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/"
_TEMPLATE = "ec2/launchTemplate:LaunchTemplate"
# What an interface that exists already has of its own.
_OWN = (
    *("associatePublicIpAddress", "ipv4AddressCount", "ipv4Addresses", "ipv6AddressCount"),
    *("ipv6Addresses", "privateIpAddress", "securityGroups", "subnetId"),
)
# One of each row at most.
_EITHER = (
    ("ipv4AddressCount", "ipv4Addresses"),
    ("ipv4PrefixCount", "ipv4Prefixes"),
    ("ipv4AddressCount", "ipv4PrefixCount"),
    ("ipv6AddressCount", "ipv6Addresses"),
    ("ipv6PrefixCount", "ipv6Prefixes"),
    ("ipv6AddressCount", "ipv6PrefixCount"),
)


@limit(
    _TEMPLATE,
    source=f"{_EC2}APIReference/API_LaunchTemplateInstanceNetworkInterfaceSpecificationRequest.html",
)
def interfaces_of_a_template(wanted: Wanted) -> Iterator[Refusal]:
    """A place for each, a public address for one alone, five groups, nothing said twice."""
    interfaces = [*values(wanted.inputs, "networkInterfaces.*")]
    places = [(e.get("networkCardIndex") or 0, e.get("deviceIndex") or 0) for e in interfaces]
    public = [e for e in interfaces if str(e.get("associatePublicIpAddress")).lower() == "true"]
    crowded = [
        each
        for each in interfaces
        if len(each.get("securityGroups") or ()) > SECURITY_GROUPS_PER_INTERFACE
    ]
    at = "networkInterfaces"
    yield from first_of(
        "RunInstances",
        "InvalidParameterCombination",
        (
            len(set(places)) < len(places),
            "Each network interface requires a device index of its own.",
            at,
        ),
        (
            public and len(interfaces) > 1,
            (
                "The associatePublicIPAddress parameter cannot be specified when launching with "
                "multiple network interfaces."
            ),
            at,
        ),
        *((True, each, at) for each in _of_interfaces(interfaces)),
    )
    if crowded:
        message = "You have exceeded the maximum number of security groups per network interface"
        yield Refusal("RunInstances", "SecurityGroupsPerInterfaceLimitExceeded", message, at)


def _of_interfaces(interfaces: list[Mapping[str, Any]]) -> Iterator[str]:
    for each in interfaces:
        own = [key for key in _OWN if each.get(key) not in (None, [], "", "false", False)]
        if each.get("networkInterfaceId") and own:
            yield f"A network interface that exists may not be given {own[0]}."
        for one, other in _EITHER:
            if each.get(one) and each.get(other):
                yield f"{one} and {other} cannot be specified together."


@limit(_TEMPLATE, source=f"{_EC2}APIReference/API_RequestLaunchTemplateData.html")
def choices_of_a_template(wanted: Wanted) -> Iterator[Refusal]:
    """One way for each: of reserving, of having a disk or none, of counting from least to most."""
    inputs = wanted.inputs
    reserved = inputs.get("capacityReservationSpecification") or {}
    mappings = inputs.get("blockDeviceMappings") or ()
    kind = str(inputs.get("instanceType") or "")
    several = [e for e in mappings if len([k for k in ("ebs", "virtualName") if e.get(k)]) > 1]
    gone = [e for e in mappings if e.get("noDevice") not in (None, "", False) and e.get("ebs")]
    yield from first_of(
        "RunInstances",
        "InvalidParameterCombination",
        (
            reserved.get("capacityReservationPreference") in {"none", "open"}
            and reserved.get("capacityReservationTarget"),
            "A capacity reservation's preference and a target cannot be specified together.",
            "capacityReservationSpecification",
        ),
        (
            inputs.get("creditSpecification") and kind and not kind.startswith("t"),
            f"The instance type {kind} does not have CPU credits.",
            "creditSpecification",
        ),
        (
            several or gone,
            "A block device mapping has one of ebs, virtualName and noDevice.",
            "blockDeviceMappings",
        ),
    )
    reversed_ = [
        key
        for key, block in (inputs.get("instanceRequirements") or {}).items()
        if isinstance(block, Mapping) and _is_reversed(block)
    ]
    if reversed_:
        message = f"The minimum of {reversed_[0]} cannot be greater than its maximum."
        code, at = "InvalidParameterValue", "instanceRequirements"
        yield Refusal("RunInstances", code, message, at)


# EC2 user guide, "Work with instance tags in instance metadata".
_TAG_IN_METADATA = re.compile(r"(?!(?:\.{1,2}|_index)$)[0-9a-zA-Z+\-=._,:@]{1,255}")


@limit(_TEMPLATE, source=f"{_EC2}UserGuide/work-with-tags-in-IMDS.html")
def tags_in_the_metadata(wanted: Wanted) -> Iterator[Refusal]:
    """A tag's key is a part of an address there: no space and no slash."""
    options = wanted.inputs.get("metadataOptions") or {}
    tagged = [
        each
        for each in wanted.inputs.get("tagSpecifications") or ()
        if each.get("resourceType") == "instance"
    ]
    shown = options.get("instanceMetadataTags") == "enabled"
    for key in (key for each in tagged for key in each.get("tags") or {}) if shown else ():
        if _TAG_IN_METADATA.fullmatch(str(key)) is None:
            message = "Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not "
            message += f"be a reserved name, when turning on instance metadata tags: {key}"
            yield Refusal("RunInstances", "InvalidParameterValue", message, "tagSpecifications")


def _is_reversed(block: Mapping[str, Any]) -> bool:
    least, most = block.get("min"), block.get("max")
    return least is not None and most is not None and float(least) > float(most)
