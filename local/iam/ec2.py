"""Lists what EC2's calls need: an action on every resource a call touches, tags made on the way.

Source: service authorization reference of EC2; "Grant permission to tag resources during creation"
of its user guide (a TagSpecification is a CreateTags of its own, with ec2:CreateAction).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from local.iam.need import (
    AccountFacts,
    Keys,
    Need,
    UnmappedCall,
    arn,
    request_tag_keys,
    resource_tag_keys,
)
from local.iam.requests import Call

KINDS = {
    "ami": "image",
    "cr": "capacity-reservation",
    "eni": "network-interface",
    "fleet": "fleet",
    "i": "instance",
    "lt": "launch-template",
    "sg": "security-group",
    "snap": "snapshot",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
}
# What belongs to no account in its ARN.
WITHOUT_ACCOUNT = {"image", "snapshot"}
# Parameter -> what it names, for calls that act on what is there.
ON_EXISTING: Mapping[str, Sequence[str]] = {
    "AssignPrivateIpAddresses": ["NetworkInterfaceId"],
    "AttachVolume": ["InstanceId", "VolumeId"],
    "DeleteLaunchTemplate": ["LaunchTemplateId"],
    "DeleteNetworkInterface": ["NetworkInterfaceId"],
    "DeleteSnapshot": ["SnapshotId"],
    "DeleteVolume": ["VolumeId"],
    "DetachVolume": ["InstanceId", "VolumeId"],
    "ModifyVolume": ["VolumeId"],
    "TerminateInstances": ["InstanceIds"],
    "UnassignPrivateIpAddresses": ["NetworkInterfaceId"],
}
# What a call makes, and the parameters that name what it makes it from.
MAKING: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "CreateFleet": (["fleet"], []),
    "CreateLaunchTemplate": (["launch-template"], []),
    "CreateNetworkInterface": (["network-interface"], ["SubnetId", "Groups"]),
    "CreateReplaceRootVolumeTask": (
        ["replace-root-volume-task", "volume"],
        ["InstanceId", "ImageId"],
    ),
    "CreateSnapshot": (["snapshot"], ["VolumeId"]),
    "CreateVolume": (["volume"], ["SnapshotId"]),
    "RunInstances": (
        ["instance", "network-interface", "volume"],
        ["ImageId", "SubnetId", "SecurityGroupIds"],
    ),
}


def needs(call: Call, facts: AccountFacts) -> Iterator[Need]:
    """Return what a call of EC2 needs."""
    operation, given = call.operation, call.parameters
    action = f"ec2:{operation}"
    if operation.startswith("Describe") or operation == "GetInstanceTypesFromInstanceRequirements":
        yield Need(action=action)
    elif operation in ON_EXISTING:
        for id_ in _ids(given, ON_EXISTING[operation]):
            yield _on(action, id_, call, facts)
    elif operation in MAKING:
        yield from _making(action, call, facts)
    elif operation in ("CreateTags", "DeleteTags"):
        tags = {tag["Key"]: tag.get("Value", "") for tag in given.get("Tags", [])}
        for id_ in given["Resources"]:
            yield _on(action, id_, call, facts, request_tag_keys(tags))
    else:
        raise UnmappedCall(f"ec2:{operation}")


def _making(action: str, call: Call, facts: AccountFacts) -> Iterator[Need]:
    made, sources = MAKING[call.operation]
    tags = {
        each["ResourceType"]: {tag["Key"]: tag.get("Value", "") for tag in each.get("Tags", [])}
        for each in call.parameters.get("TagSpecifications", [])
    }
    for kind in made:
        yield Need(
            action=action,
            resource=_resource(call.region, kind, "*"),
            keys=request_tag_keys(tags.get(kind, {})),
        )
    for id_ in _ids(call.parameters, sources):
        yield _on(action, id_, call, facts)
    for template in _templates(call.parameters):
        yield _on(action, template, call, facts)
    profile = call.parameters.get("IamInstanceProfile") or {}
    if profile:
        name = profile.get("Name") or str(profile["Arn"]).rpartition("/")[2]
        service = {"iam:PassedToService": ("ec2.amazonaws.com",)}
        yield Need(action="iam:PassRole", resource=facts.role_of_profile(name), keys=service)
    for kind, named in tags.items():
        keys = {**request_tag_keys(named), "ec2:CreateAction": (call.operation,)}
        yield Need(action="ec2:CreateTags", resource=_resource(call.region, kind, "*"), keys=keys)


def _templates(given: Mapping[str, Any]) -> Iterator[str]:
    alone = given.get("LaunchTemplate", {}).get("LaunchTemplateId")
    if alone:
        yield alone
    for each in given.get("LaunchTemplateConfigs", []):
        named = each.get("LaunchTemplateSpecification", {}).get("LaunchTemplateId")
        if named:
            yield named


def _ids(given: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        value = given.get(name) or []
        yield from [value] if isinstance(value, str) else value


def _on(action: str, id_: str, call: Call, facts: AccountFacts, more: Keys | None = None) -> Need:
    kind = KINDS.get(id_.partition("-")[0])
    if kind is None:
        raise UnmappedCall(f"{action} on {id_}")
    resource = _resource(call.region, kind, id_)
    tags = facts.tags(call.region, resource)
    keys = {**resource_tag_keys(tags), **resource_tag_keys(tags, "ec2"), **(more or {})}
    return Need(action=action, resource=resource, keys=keys)


def _resource(region: str, kind: str, id_: str) -> str:
    if kind in WITHOUT_ACCOUNT:
        return arn("ec2", region, f"{kind}/{id_}", account="")
    return arn("ec2", region, f"{kind}/{id_}")
