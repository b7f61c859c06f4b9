"""Lists what an API server holds, over all pages and in the version it prefers; GET alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.errors import StillwaterError
from infra.eks.api import Api, ApiError, Object

PAGE = 500
NOT_FOUND, EXPIRED = 404, 410


def items(
    api: Api, prefix: str, kind: str, namespace: str | None = None, **query: object
) -> Iterator[Object]:
    """Yield what a listing holds, over all of its pages.

    A listing whose pages expire on the way (410) is begun anew, in one piece.
    """
    path = f"{prefix}/{kind}" if namespace is None else f"{prefix}/namespaces/{namespace}/{kind}"
    try:
        yield from list(_pages(api, path, {"limit": PAGE, **query}))
    except ApiError as error:
        if error.status != EXPIRED:
            raise
        yield from list(_pages(api, path, query))


def _pages(api: Api, path: str, query: Mapping[str, object]) -> Iterator[Object]:
    seen: set[str] = set()
    following = ""
    while True:
        answer = api.get(path, **query, **({"continue": following} if following else {}))
        yield from answer.get("items") or ()
        following = str((answer.get("metadata") or {}).get("continue") or "")
        if not following:
            return
        if following in seen:
            raise StillwaterError(f"GET {path} names the same next page again and again")
        seen.add(following)


def custom(api: Api, group: str, kind: str, namespace: str | None) -> list[Object]:
    """Return custom resources in the version the server prefers; none where it knows no such."""
    found = one(api, f"/apis/{group}")
    if found is None:
        return []
    preferred = found["preferredVersion"]["groupVersion"]
    others = (each["groupVersion"] for each in found.get("versions") or ())
    # A kind may be served in another version than the group's preferred one, or not at all.
    for version in dict.fromkeys((preferred, *others)):
        try:
            return list(items(api, f"/apis/{version}", kind, namespace))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
    return []


def served_versions(api: Api, group: str) -> frozenset[str]:
    """Return the versions in which a group is served; none where the server knows no such."""
    found = one(api, f"/apis/{group}") or {}
    return frozenset(str(each["version"]) for each in found.get("versions") or ())


def one(api: Api, path: str) -> Object | None:
    """Return an object, or None where there is none."""
    try:
        return api.get(path)
    except ApiError as error:
        if error.status == NOT_FOUND:
            return None
        raise
