"""Knows services: their actions, and whether a service's principal can be one of AWS's.

Actions are the service authorization reference's, which cfn-lint, that moto brings along, keeps as
a table. AWS keeps no list of principals: one is a service's prefix, before it perhaps the part of
that service or a region; what no table knows by any of these is refused by IAM as no principal.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

import botocore.session

from local.refusals.documents import cfn_lint_data, words

_DOMAIN = re.compile(
    r"(?P<names>[a-z0-9.-]+)\.(?:amazonaws\.com(?:\.cn)?|aws\.internal|api\.aws|amazon\.com)"
)
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")
_OTHERWISE = words("principals")


def is_service(principal: str) -> bool:
    """Say whether a service's principal can be one.

    >>> is_service("pods.eks.amazonaws.com"), is_service("lamda.amazonaws.com")
    (True, False)
    """
    found = _DOMAIN.fullmatch(principal)
    if found is None:
        return False
    named = [each for each in found["names"].split(".") if not _REGION.fullmatch(each)]
    return any(each in _known_services() for each in named)


@functools.cache
def _known_services() -> frozenset[str]:
    services_of_clients = botocore.session.get_session().get_available_services()
    plain = {service.replace("-", "") for service in services_of_clients}
    return services() | _OTHERWISE | clients() | plain


@functools.cache
def clients() -> frozenset[str]:
    """Return the names of services by which botocore makes clients, and the parts of endpoints."""
    session = botocore.session.get_session()
    known = set(session.get_available_services())
    for partition in session.get_data("endpoints")["partitions"]:
        known |= {part for service in partition["services"] for part in service.split(".")}
    return frozenset(known)


SOURCE = "https://docs.aws.amazon.com/service-authorization/latest/reference/"
_TABLE = "AdditionalSpecs/Policies.json"


def actions(service: str) -> Mapping[str, frozenset[str]]:
    """Return a service's actions in lower case, each with the kinds of resource it is on.

    >>> sorted(actions("s3")["getbucketlocation"])
    ['bucket']
    """
    known = _table().get(service, {}).get("Actions", {})
    return {name: frozenset(each.get("Resources", ())) for name, each in known.items()}


def services() -> frozenset[str]:
    """Return the prefixes of all services."""
    return frozenset(_table())


@functools.cache
def _table() -> dict[str, Any]:
    folder = cfn_lint_data()
    known: dict[str, Any] = json.loads((folder / _TABLE).read_text()) if folder else {}
    return known
