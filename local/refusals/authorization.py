"""Reads which actions each service has, and on what, out of the service authorization reference.

AWS publishes it as pages; cfn-lint, which moto brings along, keeps it as a table.
"""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCE = "https://docs.aws.amazon.com/service-authorization/latest/reference/"
_TABLE = "data/AdditionalSpecs/Policies.json"


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
    # Found and not imported: importing cfn-lint takes a second, and only its data is wanted.
    found = importlib.util.find_spec("cfnlint")
    if found is None or found.origin is None:
        return {}
    known: dict[str, Any] = json.loads((Path(found.origin).parent / _TABLE).read_text())
    return known
