"""Lists what an API server holds, over all pages and in the version it prefers; GET alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.ground.errors import StillwaterError
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


Item = Mapping[str, Any]


def name_of(item: Item) -> str:
    return str(item["metadata"]["name"])


def title_of(item: Item) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def labels(item: Item) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def annotations_of(item: Item) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def kafka_of(item: Item) -> str:
    """Return the Kafka that an object of Strimzi's belongs to."""
    return labels(item).get("strimzi.io/cluster", "")


def going(item: Item) -> bool:
    """Say whether somebody has deleted an object that is not gone yet."""
    return bool((item.get("metadata") or {}).get("deletionTimestamp"))


def status_of(item: Item) -> Object:
    return item.get("status") or {}


def is_condition(item: Item, kind: str, *, true: bool = True) -> bool:
    """Say whether a condition holds, or that it does not; neither where the status has no such."""
    # Strimzi writes some of them in small letters.
    return str(_condition(item, kind).get("status")).lower() == str(true).lower()


def is_ready(item: Item) -> bool | None:
    """Say whether an object's condition Ready holds; None where its status has no such."""
    return is_condition(item, "Ready") if _condition(item, "Ready") else None


def reason_of(item: Item, kind: str) -> str:
    """Return what a condition says, on one line."""
    found = _condition(item, kind)
    said = found.get("message") or found.get("reason") or "no reason is given"
    return " ".join(str(said).split())


def _condition(item: Item, kind: str) -> Object:
    every = status_of(item).get("conditions") or ()
    return next((each for each in every if each.get("type") == kind), {})


def controller_of(item: Item) -> str | None:
    """Return the kind of what makes an object and brings it back; None: nothing does."""
    owners = item["metadata"].get("ownerReferences") or ()
    return next((str(each["kind"]) for each in owners if each.get("controller")), None)


def variable(container: Item, name: str) -> str:
    """Return a variable of a container's environment, as far as it is written there."""
    found = (each.get("value") for each in container.get("env") or () if each.get("name") == name)
    return str(next(found, None) or "")
