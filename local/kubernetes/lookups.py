"""Reading what may not be there: objects, and their conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.kubernetes.client import Api, ApiError, Object


def find(api: Api, path: str) -> Object | None:
    """Return an object, or None where the API has none at this path."""
    try:
        return api.get(path)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def has_condition(item: Mapping[str, Any], condition: str = "Ready", status: str = "True") -> bool:
    """Say whether an object reports a condition, by itself that it is Ready."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(c.get("type") == condition and c.get("status") == status for c in conditions)
