"""The calls of the adapters for EKS on a twin's API server, as its administrator."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from core.ground.errors import Conflict
from local.kubernetes.client import Api, ApiError, find
from tests.integration.waiting import until

Json = dict[str, Any]


@dataclass(frozen=True)
class Administrator:
    """Stands in the place of handlers.adapters.eks.EksApi, whose caller is a function's role."""

    api: Api

    def find(self, path: str) -> Json | None:
        return find(self.api, path)

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


@contextlib.contextmanager
def namespace(api: Api, name: str) -> Iterator[str]:
    """Make a namespace that takes pods, for the block; yield its path."""
    path = f"/api/v1/namespaces/{name}"
    api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    until(lambda: find(api, f"{path}/serviceaccounts/default"), "the namespace takes pods")
    try:
        yield path
    finally:
        # By force: nobody is left on an ended node to report that its pods have stopped.
        api.delete(f"{path}/pods", {"gracePeriodSeconds": 0})
        api.delete(path)
        until(lambda: find(api, path) is None, "the namespace is gone")
