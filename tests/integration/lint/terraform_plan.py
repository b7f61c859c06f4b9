"""Recorded AWS resources as a Terraform plan, the form Checkov reads them in.

Pulumi's AWS provider is Terraform's, bridged: `aws:sqs/queue:Queue` is aws_sqs_queue, camelCase is
snake_case, and a block that may stand once is an object in place of a list of one.
"""

import re
from collections.abc import Mapping
from typing import Any

from tests.unit.infra.recording import Recorded, Resource

# What is not called by its service and type alone; `aws_` goes before each.
IRREGULAR: Mapping[str, str] = {
    "bcmdata/export:Export": "bcmdataexports_export",
    "lb/loadBalancer:LoadBalancer": "lb",
    "s3/bucketObjectv2:BucketObjectv2": "s3_object",
}
# Attributes that are mappings in Terraform, too: their keys are the user's.
MAPPINGS = {"tags", "variables", "targetTags", "securityGroupNames"}
# Where the bridge gives a list a plural of its own.
SINGULAR: Mapping[str, str] = {
    "blockDeviceMappings": "block_device_mappings",
    "defaultActions": "default_action",
    "encryptionConfigs": "encryption_config",
    "globalSecondaryIndexes": "global_secondary_index",
    "rules": "rule",
    "schedules": "schedule",
    "tagSpecifications": "tag_specifications",
}


def plan(layers: Mapping[str, Recorded]) -> dict[str, Any]:
    """Return the plan that makes every AWS resource of these layers."""
    resources = [
        (layer, resource)
        for layer, recorded in layers.items()
        for resource in recorded.resources
        if resource.type.startswith("aws:")
    ]
    addresses = {resource.mock_urn: address(layer, resource) for layer, resource in resources}
    planned = [_planned_resource(addresses[r.mock_urn], r) for _, r in resources]
    return {
        "format_version": "1.2",
        "terraform_version": "1.9.0",
        "planned_values": {"root_module": {"resources": planned}},
        "resource_changes": [
            {**each, "change": {"actions": ["create"], "before": None, "after": each["values"]}}
            for each in planned
        ],
        "configuration": {
            "root_module": {"resources": [_configuration(r, addresses) for _, r in resources]}
        },
    }


def address(layer: str, resource: Resource) -> str:
    """Return a resource's Terraform address, which says its layer and Pulumi's name."""
    return f"{terraform_type(resource)}.{layer}-{resource.name}".replace(" ", "-")


def terraform_type(resource: Resource) -> str:
    _, _, type_ = resource.type.partition(":")
    service, _, kind = type_.partition("/")
    named = snake(kind.partition(":")[2])
    regular = named if service == "ec2" else f"{service}_{named}"
    return f"aws_{IRREGULAR.get(type_, regular)}"


def _planned_resource(at: str, resource: Resource) -> dict[str, Any]:
    type_, _, name = at.partition(".")
    return {
        "address": at,
        "mode": "managed",
        "type": type_,
        "name": name,
        "provider_name": "registry.terraform.io/hashicorp/aws",
        "values": terraform(resource.inputs),
    }


def _configuration(resource: Resource, addresses: Mapping[str, str]) -> dict[str, Any]:
    at = addresses[resource.mock_urn]
    type_, _, name = at.partition(".")
    expressions = {}
    for key, urns in resource.references.items():
        found = sorted(addresses[urn] for urn in urns if urn in addresses)
        if found:
            # A nested value's reference stands at its attribute.
            expressions[snake(key)] = {"references": [r for a in found for r in (f"{a}.id", a)]}
    return {
        "address": at,
        "mode": "managed",
        "type": type_,
        "name": name,
        "expressions": expressions,
    }


def terraform(value: Any) -> Any:
    """Return inputs as Terraform writes them: snake_case, and every block a list."""
    if isinstance(value, list):
        return [terraform(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        snake(key): _attribute(key, each) for key, each in value.items() if not key.startswith("__")
    }


def _attribute(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value) if key in MAPPINGS else [terraform(value)]
    return terraform(value)


def snake(name: str) -> str:
    """Return Terraform's name of an input.

    >>> snake("visibilityTimeoutSeconds"), snake("defaultActions"), snake("cidrIpv4")
    ('visibility_timeout_seconds', 'default_action', 'cidr_ipv4')
    """
    if name in SINGULAR:
        return SINGULAR[name]
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
