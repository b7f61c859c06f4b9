"""Reads what groups start machines by into core.survey's facts, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from cli.survey import template_parts
from cli.survey.template_parts import Started
from core.survey.node_facts import MachineTemplate, ScalingGroup, TemplateName

# How EC2 begins its codes for a template, or a version of one, that does not exist.
GONE = ("InvalidLaunchTemplateId", "InvalidLaunchTemplateName")
# In which a launch configuration's name stands in place of a template's.
CONFIGURATION = "launch configuration"


def template_names(group: Mapping[str, Any]) -> tuple[TemplateName, ...]:
    """Return what a group names to start machines by: one, or one for each of several types."""
    mixed = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    given = [
        group.get("LaunchTemplate"),
        mixed.get("LaunchTemplateSpecification"),
        *(each.get("LaunchTemplateSpecification") for each in mixed.get("Overrides") or ()),
    ]
    found = [
        TemplateName(
            name=str(each.get("LaunchTemplateId") or each.get("LaunchTemplateName")),
            version=str(each.get("Version") or "$Default"),
        )
        for each in given
        if each
    ]
    if configuration := group.get("LaunchConfigurationName"):
        found.append(TemplateName(name=str(configuration)))
    return tuple(dict.fromkeys(found))


def is_weighted(group: Mapping[str, Any]) -> bool:
    """Say whether a group's sizes count something else than machines."""
    mixed = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    weights = {str(each.get("WeightedCapacity") or "1") for each in mixed.get("Overrides") or ()}
    return group.get("DesiredCapacityType", "units") != "units" or bool(weights - {"1"})


def templates(
    ec2: Any, autoscaling: Any, groups: Iterable[ScalingGroup]
) -> dict[str, tuple[MachineTemplate, ...]]:
    """Return by group what it starts machines by; each is asked for once."""
    every = list(groups)
    wanted = dict.fromkeys(each for group in every for each in group.templates)
    found = template_parts.with_lost(
        ec2, {each: _template(ec2, autoscaling, each) for each in wanted}
    )
    return {group.name: tuple(found[each] for each in group.templates) for group in every}


def _template(ec2: Any, autoscaling: Any, wanted: TemplateName) -> Started:
    if wanted.version is None:
        return _configuration(autoscaling, wanted.name)
    key = "LaunchTemplateId" if wanted.name.startswith("lt-") else "LaunchTemplateName"
    title = f"version {wanted.version} of launch template {wanted.name}"
    try:
        answer = ec2.describe_launch_template_versions(
            **{key: wanted.name}, Versions=[wanted.version]
        )
    except ClientError as error:
        if error.response["Error"]["Code"].startswith(GONE):
            return MachineTemplate(title=title, missing=True), {}
        raise
    versions = answer["LaunchTemplateVersions"]
    if not versions:
        return MachineTemplate(title=title, missing=True), {}
    data = versions[0].get("LaunchTemplateData") or {}
    reserved = data.get("CapacityReservationSpecification") or {}
    template = MachineTemplate(
        title=title,
        market=(data.get("InstanceMarketOptions") or {}).get("MarketType"),
        metadata_open=metadata_open(data.get("MetadataOptions") or {}),
        placement=next(_places(data.get("Placement") or {}, reserved), None),
        keys=template_parts.keys(data),
        profile=template_parts.profile(data.get("IamInstanceProfile")),
    )
    return template, data


def _configuration(autoscaling: Any, name: str) -> Started:
    title = f"{CONFIGURATION} {name}"
    answer = autoscaling.describe_launch_configurations(LaunchConfigurationNames=[name])
    found = answer["LaunchConfigurations"]
    if not found:
        return MachineTemplate(title=title, missing=True), {}
    template = MachineTemplate(
        title=title,
        market="spot" if found[0].get("SpotPrice") else None,
        metadata_open=metadata_open(found[0].get("MetadataOptions") or {}),
        placement="dedicated machines" if found[0].get("PlacementTenancy") == "dedicated" else None,
        profile=template_parts.profile(found[0].get("IamInstanceProfile")),
    )
    return template, found[0]


def _places(placement: Mapping[str, Any], reserved: Mapping[str, Any]) -> Iterator[str]:
    if group := placement.get("GroupName") or placement.get("GroupId"):
        yield f"placement group {group}"
    if placement.get("Tenancy") == "host":
        yield "hosts of its own"
    if reserved.get("CapacityReservationPreference") == "capacity-reservations-only":
        yield "capacity reservations"


def metadata_open(options: Mapping[str, Any]) -> bool:
    """Say whether a machine's metadata are told without a token; what is not said is not known."""
    off = options.get("HttpEndpoint") == "disabled"
    return options.get("HttpTokens") == "optional" and not off


def metadata_far(options: Mapping[str, Any]) -> bool:
    """Say whether pods in a network of their own get no metadata."""
    near = options.get("HttpPutResponseHopLimit") == 1 and options.get("HttpTokens") == "required"
    return near or options.get("HttpEndpoint") == "disabled"
