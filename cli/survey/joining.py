"""Reads which roles of machines a cluster knows into core.survey's facts, and changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import yaml
from botocore.exceptions import ClientError

from cli.aws_pages import pages
from cli.survey.listing import one
from core.errors import StillwaterError
from core.survey.account_facts import ControlPlane
from core.survey.node_facts import MachineTemplate, NodeRole
from infra.eks.api import Api

GONE = "NoSuchEntity"
AWS_AUTH = "/api/v1/namespaces/kube-system/configmaps/aws-auth"
# The type of access entries that are not of machines.
PEOPLES = "STANDARD"
# Of EKS's authentication modes, the one without access entries, and the one without aws-auth.
CONFIG_MAP, ENTRIES = "CONFIG_MAP", "API"


def node_roles(iam: Any, templates: Iterable[MachineTemplate]) -> dict[str, NodeRole | None]:
    """Return by instance profile its role."""
    named = sorted({each.profile for each in templates if each.profile})
    return {name: _role(iam, name) for name in named}


def _role(iam: Any, profile: str) -> NodeRole | None:
    try:
        found = iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]
    except ClientError as error:
        if error.response["Error"]["Code"] == GONE:
            return None
        raise
    roles = (
        NodeRole(str(r["RoleName"]), r["CreateDate"].timestamp()) for r in found.get("Roles") or ()
    )
    return next(roles, None)


def admitted_roles(
    eks: Any, api: Api, plane: ControlPlane, wanted: Collection[str]
) -> dict[str, float | None]:
    """Return which wanted roles a cluster knows: aws-auth knows none by its path.

    Where an access entry and aws-auth name a role, EKS goes by the entry. One of people's type
    lets no node join.
    """
    mode = plane.authentication or CONFIG_MAP
    mapped = [] if mode == ENTRIES else [arn.rpartition("/")[2] for arn in _mapped(api)]
    entries = {} if mode == CONFIG_MAP else dict(_entries(eks, plane.name, wanted))
    return {
        **{name: None for name in mapped if name in wanted and name not in entries},
        **{
            name: entry["createdAt"].timestamp()
            for name, entry in entries.items()
            if entry.get("type") != PEOPLES
        },
    }


def _entries(
    eks: Any, cluster: str, wanted: Collection[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for arn in pages(eks, "list_access_entries", "accessEntries", clusterName=cluster):
        if (name := str(arn).rpartition("/")[2]) in wanted:
            answer = eks.describe_access_entry(clusterName=cluster, principalArn=arn)
            yield name, answer["accessEntry"]


def _mapped(api: Api) -> Iterator[str]:
    found = one(api, AWS_AUTH) or {}
    try:
        roles = yaml.safe_load((found.get("data") or {}).get("mapRoles") or "[]") or []
    except yaml.YAMLError:
        raise StillwaterError("mapRoles of ConfigMap kube-system/aws-auth is no YAML") from None
    for each in roles:
        yield str(each.get("rolearn") or "")
