"""Reads whether what a template names to start machines by is still there; changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from cli.aws_pages import FILTER_VALUES, pages
from core.survey.node_facts import MachineTemplate
from handlers.adapters.calls import portions

# A template, and what it starts machines by as EC2 has it.
Started: TypeAlias = tuple[MachineTemplate, Mapping[str, Any]]
Name = TypeVar("Name")
# By what a part is called in a sentence: the call that lists such, its answer, filter and name.
LISTED = {
    "image": ("describe_images", "Images", "image-id", "ImageId"),
    "security group": ("describe_security_groups", "SecurityGroups", "group-id", "GroupId"),
    "key pair": ("describe_key_pairs", "KeyPairs", "key-name", "KeyName"),
}
# Images that are no longer recommended start machines all the same; disabled ones do not.
ALSO = {"image": {"IncludeDeprecated": True, "IncludeDisabled": True}}
# EC2 has no pages of these.
IN_ONE_PIECE = ("key pair",)
AVAILABLE = "available"


def keys(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of KMS's that a template names for disks."""
    disks = (each.get("Ebs") or {} for each in data.get("BlockDeviceMappings") or ())
    return tuple(sorted({str(disk["KmsKeyId"]) for disk in disks if disk.get("KmsKeyId")}))


def profile(named: Any) -> str | None:
    """Return an instance profile's name: of a template by name or ARN, else by itself."""
    said = (named.get("Arn") or named.get("Name")) if isinstance(named, Mapping) else named
    return str(said).rpartition("/")[2] if said else None


def with_lost(ec2: Any, found: Mapping[Name, Started]) -> dict[Name, MachineTemplate]:
    """Return templates, each with what it names and AWS has no more."""
    named = {name: list(_parts(data)) for name, (_, data) in found.items()}
    wanted: dict[str, set[str]] = {}
    for kind, part in (each for parts in named.values() for each in parts):
        wanted.setdefault(kind, set()).add(part)
    there = {kind: set(_there(ec2, kind, parts)) for kind, parts in wanted.items()}
    return {
        name: replace(
            template, lost=tuple(f"{k} {part}" for k, part in named[name] if part not in there[k])
        )
        for name, (template, _) in found.items()
    }


def _parts(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a template or a launch configuration names: kind and name."""
    # One that a parameter of Systems Manager names is looked up when a machine starts.
    if (image := str(data.get("ImageId") or "")).startswith("ami-"):
        yield "image", image
    interfaces = data.get("NetworkInterfaces") or ()
    groups = [*(data.get("SecurityGroupIds") or ()), *(data.get("SecurityGroups") or ())]
    groups += [group for each in interfaces for group in each.get("Groups") or ()]
    for group in sorted({str(each) for each in groups}):
        # Before VPCs they went by name.
        if group.startswith("sg-"):
            yield "security group", group
    if pair := data.get("KeyName"):
        yield "key pair", str(pair)


def _there(ec2: Any, kind: str, wanted: Iterable[str]) -> Iterator[str]:
    call, answer, chosen, key = LISTED[kind]
    for portion in portions(sorted(wanted), FILTER_VALUES):
        asked = {"Filters": [{"Name": chosen, "Values": portion}], **ALSO.get(kind, {})}
        whole = kind in IN_ONE_PIECE
        found = getattr(ec2, call)(**asked)[answer] if whole else pages(ec2, call, answer, **asked)
        # Only images have a state.
        yield from (str(e[key]) for e in found if e.get("State", AVAILABLE) == AVAILABLE)
