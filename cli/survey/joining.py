"""Reads which roles of machines a cluster knows into core.survey's facts, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import yaml
from botocore.exceptions import ClientError

from cli.aws_pages import pages
from cli.survey.listing import one
from core.errors import StillwaterError
from core.survey.account_facts import ControlPlane
from core.survey.node_facts import MachineTemplate
from infra.eks.api import Api

GONE = "NoSuchEntity"
AWS_AUTH = "/api/v1/namespaces/kube-system/configmaps/aws-auth"
# Of EKS's authentication modes, the one without access entries, and the one without aws-auth.
CONFIG_MAP, ENTRIES = "CONFIG_MAP", "API"


def node_roles(iam: Any, templates: Iterable[MachineTemplate]) -> dict[str, str | None]:
    """Return by instance profile the name of its role."""
    named = sorted({each.profile for each in templates if each.profile})
    return {name: _role(iam, name) for name in named}


def _role(iam: Any, profile: str) -> str | None:
    try:
        found = iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]
    except ClientError as error:
        if error.response["Error"]["Code"] == GONE:
            return None
        raise
    return next((str(role["RoleName"]) for role in found.get("Roles") or ()), None)


def admitted_roles(eks: Any, api: Api, plane: ControlPlane) -> frozenset[str]:
    """Return the names of roles that a cluster knows: aws-auth knows none by its path."""
    mode = plane.authentication or CONFIG_MAP
    found = [] if mode == CONFIG_MAP else list(_entries(eks, plane.name))
    found += [] if mode == ENTRIES else list(_mapped(api))
    return frozenset(arn.rpartition("/")[2] for arn in found)


def _entries(eks: Any, cluster: str) -> Iterator[str]:
    for arn in pages(eks, "list_access_entries", "accessEntries", clusterName=cluster):
        yield str(arn)


def _mapped(api: Api) -> Iterator[str]:
    found = one(api, AWS_AUTH) or {}
    try:
        roles = yaml.safe_load((found.get("data") or {}).get("mapRoles") or "[]") or []
    except yaml.YAMLError:
        raise StillwaterError("mapRoles of ConfigMap kube-system/aws-auth is no YAML") from None
    for each in roles:
        yield str(each.get("rolearn") or "")
