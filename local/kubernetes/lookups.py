"""Reading what may not be there."""

from __future__ import annotations

from local.kubernetes.client import Api, ApiError, Object


def find(api: Api, path: str) -> Object | None:
    """Return an object, or None where the API has none at this path."""
    try:
        return api.get(path)
    except ApiError as error:
        if error.status == 404:
            return None
        raise
