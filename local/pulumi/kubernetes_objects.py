"""Applies, reads and deletes Kubernetes objects on behalf of the provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.ground.errors import InvalidInput, StillwaterError
from local.kubernetes.client import Api, ApiError, Object, find, has_condition, tolerating
from local.processes import until
from local.values import Properties

FIELD_MANAGER = "pulumi"
POLL_SECONDS = 0.25
# A new CustomResourceDefinition takes a moment to be served.
KIND_SECONDS = 15.0
ESTABLISHED_SECONDS = 30.0
# The real provider's. A namespace waits for everything in it, a hung broker's whole grace included.
DELETE_SECONDS = 600.0
WAIT_SECONDS = 300.0
WAIT_FOR = "pulumi.com/waitFor"
SKIP_AWAIT = "pulumi.com/skipAwait"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"


@dataclass(frozen=True, slots=True)
class ObjectTarget:
    """Which object is meant."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.kind} {self.name}{where}"


def identifier(item: Mapping[str, Any]) -> str:
    """Return the engine's id of an object: namespace/name, or name."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def target(item: Mapping[str, Any], object_id: str | None = None) -> ObjectTarget:
    """Return which object a description means; an id, where given, wins over its metadata."""
    metadata = item.get("metadata") or {}
    name, namespace = metadata.get("name", ""), metadata.get("namespace")
    if object_id:
        namespace, _, name = object_id.rpartition("/")
    return ObjectTarget(item["apiVersion"], item["kind"], name, namespace or None)


def body(inputs: Properties) -> Object:
    """Return what is sent to the API server: without nulls and the engine's own fields."""
    cleaned: Object = {
        key: _without_nulls(value)
        for key, value in inputs.items()
        if value is not None and not key.startswith("__")
    }
    return cleaned


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def annotation(item: Mapping[str, Any], name: str) -> str | None:
    return ((item.get("metadata") or {}).get("annotations") or {}).get(name)


def wanted_condition(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the (type, status) that the object's waitFor annotation asks for."""
    asked = annotation(item, WAIT_FOR)
    if asked is None or annotation(item, SKIP_AWAIT) == "true":
        return None
    form, _, rest = asked.partition("=")
    condition, _, status = rest.partition("=")
    if form != "condition" or not condition:
        problem = (
            f"The annotation {WAIT_FOR} is {asked!r}; the twin's provider waits for conditions "
            f"only, such as condition=Ready."
        )
        raise InvalidInput([problem])
    return condition, status or "True"


def _conditions_text(item: Mapping[str, Any]) -> str:
    conditions = (item.get("status") or {}).get("conditions") or []
    told = [
        f"{c.get('type')} is {c.get('status')} ({c.get('message') or c.get('reason') or 'no word'})"
        for c in conditions
    ]
    return "; ".join(told) or "it reports no conditions"


class Objects:
    """Objects of one cluster; `connect` gives its API, or says why it may not be used."""

    def __init__(self, connect: Callable[[], Api], default_namespace: str = "default") -> None:
        self._connect = connect
        self._default_namespace = default_namespace
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}

    @property
    def _api(self) -> Api:
        return self._connect()

    def apply(self, inputs: Properties) -> Object:
        """Create or change an object and wait for what its kind or annotations ask for."""
        wanted = self._wanted_condition(inputs)
        which = target(inputs)
        path = self._path(which, KIND_SECONDS)
        applied = self._api.apply(path, body(inputs), field_manager=FIELD_MANAGER)
        if wanted is not None:
            condition, status, limit_seconds = wanted
            applied = self._wait(path, which, condition, status, limit_seconds)
        return _without_managed_fields(applied)

    def dry_run(self, inputs: Properties) -> None:
        """Let the API server judge an object without keeping it.

        What it cannot judge yet, since the kind or the namespace comes later, passes.
        """
        with tolerating(404):
            path = self._path(target(inputs), 0.0)
            self._api.apply(path, body(inputs), field_manager=FIELD_MANAGER, dry_run=True)

    def read(self, which: ObjectTarget) -> Object | None:
        """Return the object as it is now, or None when it is gone."""
        found = self._find(which)
        return None if found is None else _without_managed_fields(found[1])

    def delete(self, which: ObjectTarget, item: Mapping[str, Any]) -> None:
        """Delete an object and wait until it is gone, unless told not to; gone already is fine."""
        found = self._find(which)
        if found is None:
            return
        path, live = found
        uid = live["metadata"]["uid"]
        # 409: another object of the same name has taken its place.
        with tolerating(404, 409):
            self._api.delete(
                path, {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
            )
        if annotation(item, SKIP_AWAIT) == "true":
            # As the real provider: a class that retained volumes hold is not waited for.
            return
        limit_seconds = _limit_seconds(item, DELETE_SECONDS)

        def is_gone() -> bool:
            left = self._find(which)
            return left is None or left[1]["metadata"]["uid"] != uid

        if not until(is_gone, limit_seconds, POLL_SECONDS):
            raise StillwaterError(_deletion_sentence(which, self._api.get(path), limit_seconds))

    def _wanted_condition(self, inputs: Properties) -> tuple[str, str, float] | None:
        if inputs.get("kind") == "CustomResourceDefinition":
            return "Established", "True", ESTABLISHED_SECONDS
        asked = wanted_condition(inputs)
        return None if asked is None else (*asked, _limit_seconds(inputs, WAIT_SECONDS))

    def _wait(
        self, path: str, which: ObjectTarget, condition: str, status: str, limit_seconds: float
    ) -> Object:
        def satisfied() -> Object | None:
            live = self._api.get(path)
            return live if _current(live) and has_condition(live, condition, status) else None

        found = until(satisfied, limit_seconds, POLL_SECONDS)
        if found is None:
            raise StillwaterError(
                f"{which} did not reach {condition}={status} within {limit_seconds:.0f} s: "
                f"{_conditions_text(self._api.get(path))}. The annotation {TIMEOUT_SECONDS} raises "
                f"the limit."
            )
        return found

    def _find(self, which: ObjectTarget) -> tuple[str, Object] | None:
        with tolerating(404):
            path = self._path(which, 0.0)
            return path, self._api.get(path)
        return None

    def _path(self, which: ObjectTarget, patience_seconds: float) -> str:
        """Return an object's path, waiting for its kind to be served if need be."""
        root = f"/apis/{which.api_version}" if "/" in which.api_version else "/api/v1"
        resource = until(lambda: self._resource(root, which.kind), patience_seconds, POLL_SECONDS)
        if resource is None:
            raise ApiError(
                404,
                "NotFound",
                f"The cluster serves no {which.kind} of {which.api_version}; install its "
                f"CustomResourceDefinition first.",
            )
        plural, namespaced = resource
        namespace = which.namespace or self._default_namespace
        where = f"/namespaces/{namespace}" if namespaced else ""
        return f"{root}{where}/{plural}/{which.name}"

    def _resource(self, root: str, kind: str) -> tuple[str, bool] | None:
        if (root, kind) not in self._kinds:
            served = find(self._api, root)
            for resource in served["resources"] if served is not None else ():
                if "/" not in resource["name"]:
                    plural_and_scope = (resource["name"], bool(resource["namespaced"]))
                    self._kinds[root, resource["kind"]] = plural_and_scope
        return self._kinds.get((root, kind))


def _limit_seconds(item: Mapping[str, Any], default: float) -> float:
    asked = annotation(item, TIMEOUT_SECONDS)
    return float(asked) if asked else default


def _current(item: Mapping[str, Any]) -> bool:
    """Say whether a status speaks of the latest generation, where it says which it speaks of."""
    observed = (item.get("status") or {}).get("observedGeneration")
    return observed is None or observed >= item["metadata"].get("generation", 0)


def _without_managed_fields(live: Object) -> Object:
    metadata = {k: v for k, v in live["metadata"].items() if k != "managedFields"}
    return {**live, "metadata": metadata}


def _deletion_sentence(which: ObjectTarget, live: Mapping[str, Any], limit_seconds: float) -> str:
    finalizers = ", ".join(live["metadata"].get("finalizers") or []) or "none"
    return (
        f"{which} is still there {limit_seconds:.0f} s after its deletion. Finalizers: "
        f"{finalizers}; state: {_conditions_text(live)}."
    )
