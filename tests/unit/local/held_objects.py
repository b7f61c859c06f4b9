"""The API server as the twin's operator uses it, in memory: objects by path."""

import copy
from collections.abc import Mapping
from typing import Any

from local.kubernetes.client import ApiError

Object = dict[str, Any]


class HeldObjects:
    """Holds what is applied, merged, posted and deleted; `objects` are by path."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}

    def get(self, path: str, **query: str) -> Object:
        if path in self.objects:
            return copy.deepcopy(self.objects[path])
        if not query:
            raise ApiError(404, "NotFound", path)
        wanted = {pair.partition("=")[::2] for pair in query["labelSelector"].split(",")}
        items = [
            each
            for where, each in self.objects.items()
            if where.rsplit("/", 1)[0] == path
            and wanted <= each["metadata"].get("labels", {}).items()
        ]
        return {"items": copy.deepcopy(items)}

    def apply(self, path: str, body: Mapping[str, Any], field_manager: str = "") -> Object:
        del field_manager
        return self.merge(path, body)

    def merge(self, path: str, body: Mapping[str, Any]) -> Object:
        path = path.removesuffix("/status")
        known = self.objects.get(path, {"metadata": {"generation": 0}})
        fresh = _merged(known, body)
        changed = known.get("spec") != fresh.get("spec")
        fresh["metadata"]["generation"] = known["metadata"].get("generation", 0) + changed
        self.objects[path] = fresh
        return fresh

    def post(self, path: str, body: Mapping[str, Any]) -> Object:
        return self.merge(f"{path}/{body['metadata']['name']}", body)

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> Object:
        del body
        return self.objects.pop(path)


def _merged(known: Any, body: Any) -> Any:
    if not isinstance(known, Mapping) or not isinstance(body, Mapping):
        return copy.deepcopy(body)
    gone = {key for key, value in body.items() if value is None}
    return {
        **{key: value for key, value in known.items() if key not in body},
        **{key: _merged(known.get(key), body[key]) for key in body.keys() - gone},
    }
