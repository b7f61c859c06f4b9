"""The calls of the adapters for EKS on a twin's API server, as its administrator."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit

from core.ground.errors import Conflict
from local.kubernetes.client import Api, ApiError, find

Json = dict[str, Any]


@dataclass(frozen=True)
class Administrator:
    """Stands in the place of handlers.adapters.eks.EksApi, whose caller is a function's role."""

    api: Api

    def find(self, path: str) -> Json | None:
        return cast("Json | None", find(self.api, path))

    def list(self, path: str, **query: str) -> list[Json]:
        return list(self.api.get(path, **query)["items"])

    def get(self, path: str, query: Mapping[str, str]) -> Json:
        return self.api.get(path, **query)

    def merge(self, path: str, body: Json) -> None:
        try:
            self.api.merge(path, body)
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                raise Conflict(str(error)) from None
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    def apply(self, path: str, body: Json, *, manager: str) -> Json:
        return self.api.apply(path, body, field_manager=manager)

    def delete(self, path: str, uid: str) -> None:
        try:
            self.api.delete(path, {"preconditions": {"uid": uid}})
        except ApiError as error:
            if error.status not in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
                raise


@dataclass(frozen=True)
class GateByAddress(Administrator):
    """Has the API server dial a gate at a port of this machine, where it would dial a Service."""

    port: int

    def moved(self, configuration: Json) -> Json:
        """Return webhooks with the Service of each replaced by the gate's address."""
        asked = [self._moved(each) for each in configuration["webhooks"]]
        return {**configuration, "webhooks": asked}

    def find(self, path: str) -> Json | None:
        found = super().find(path)
        for each in (found or {}).get("webhooks") or ():
            url = urlsplit(each["clientConfig"].pop("url"))
            each["clientConfig"]["service"] = {"path": url.path}
        return found

    def apply(self, path: str, body: Json, *, manager: str) -> Json:
        return super().apply(path, self.moved(body), manager=manager)

    def _moved(self, webhook: Json) -> Json:
        client = {k: v for k, v in webhook["clientConfig"].items() if k != "service"}
        path = webhook["clientConfig"]["service"].get("path", "")
        return {
            **webhook,
            "clientConfig": {**client, "url": f"https://127.0.0.1:{self.port}{path}"},
        }
