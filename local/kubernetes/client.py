"""Reaches the API server for the twin's parts: kubeconfigs, and lists that are kept current."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import urllib3
import yaml

from infra.eks.access import connect
from infra.eks.api import Api, ApiError, Object
from local.place import Place

__all__ = ["Api", "ApiError", "Informer", "Object", "administrator", "key_of"]

# Of a pod, all of whose containers have ended.
ENDED_PHASES = ("Succeeded", "Failed")
OnEvent = Callable[[str, Object], None]
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.1, 2.0
LOG = logging.getLogger(__name__)


def administrator(place: Place) -> Api:
    """Return a client of a twin's API server that may do everything."""
    return connect([place.path("kubeconfig")])[1]


def key_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return (namespace, name) of an object; the namespace is empty for cluster-wide ones."""
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class _ExpiredError(Exception):
    """The watch's place in history is gone; only a new list tells what happened since."""


class Informer:
    """A local, current copy of one list, kept by list and watch in a daemon thread.

    `objects` is replaced, never changed in place: a reader may iterate over what it got without
    a lock. `on_event` hears ADDED, MODIFIED and DELETED in order, one at a time; after a lost
    watch it hears what the new list shows to have happened in between.
    """

    def __init__(
        self, api: Api, path: str, on_event: OnEvent | None = None, **query: object
    ) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self._api, self._path, self._on_event, self._query = api, path, on_event, query
        self._synced = threading.Event()
        self._stopped = threading.Event()
        self._version: str | None = None
        self._response: urllib3.BaseHTTPResponse | None = None
        self._last_error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"informer {path}", daemon=True)
        self._thread.start()

    def wait_synced(self, timeout_seconds: float = 10) -> None:
        """Return once the first list has been taken in; raise ApiError when it takes too long."""
        if not self._synced.wait(timeout_seconds):
            raise ApiError(
                0,
                "Timeout",
                f"The list {self._path} was not read within {timeout_seconds:.0f} s; "
                f"the last error was: {self._last_error or 'none, the server is slow'}",
            )

    def stop(self, timeout_seconds: float = 2) -> None:
        """End the watch and its thread."""
        self._stopped.set()
        response = self._response
        if response is not None:
            with suppress(Exception):
                response.shutdown()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        pause_seconds = FIRST_RETRY_SECONDS
        while not self._stopped.is_set():
            try:
                if self._version is None:
                    self._version = self._list()
                self._watch(self._version)
                pause_seconds = FIRST_RETRY_SECONDS
            except _ExpiredError:
                self._version = None
            except (ApiError, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                if self._stopped.is_set():
                    return
                self._last_error = error
                if isinstance(error, ApiError) and error.status >= 400:
                    self._version = None
                self._stopped.wait(pause_seconds)
                pause_seconds = min(pause_seconds * 2, LAST_RETRY_SECONDS)

    def _list(self) -> str:
        listed = self._api.get(self._path, **self._query)
        kind = {
            "apiVersion": listed["apiVersion"],
            "kind": str(listed["kind"]).removesuffix("List"),
        }
        fresh = {key_of(item): {**kind, **item} for item in listed["items"]}
        known = self.objects
        for key in known.keys() - fresh.keys():
            self._take("DELETED", known[key])
        for key, item in fresh.items():
            if key not in known or known[key]["metadata"]["uid"] != item["metadata"]["uid"]:
                self._take("ADDED", item)
            elif known[key]["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                self._take("MODIFIED", item)
        self._synced.set()
        return str(listed["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> None:
        """Take in events after `version`, and remember the version each one leads to."""
        query = {**self._query, "resourceVersion": version, "allowWatchBookmarks": True}
        with self._api.watch(self._path, **query) as response:
            self._response = response
            if self._stopped.is_set():  # stop() may have looked before there was a response
                return
            for line in _lines(response):
                if self._stopped.is_set():
                    return
                event = json.loads(line)
                item = event["object"]
                if event["type"] == "ERROR":
                    if item.get("code") == 410:
                        raise _ExpiredError
                    raise ApiError(item.get("code", 0), item.get("reason", ""), str(item))
                if event["type"] != "BOOKMARK":
                    self._take(event["type"], item)
                self._version = item["metadata"]["resourceVersion"]

    def _take(self, event: str, item: Object) -> None:
        remaining = {key: value for key, value in self.objects.items() if key != key_of(item)}
        self.objects = remaining if event == "DELETED" else {**remaining, key_of(item): item}
        if self._on_event is None:
            return
        try:
            self._on_event(event, item)
        except Exception:
            # One failing reaction must not end the stream of events for good.
            LOG.exception("The reaction to %s %s %s failed.", event, self._path, key_of(item))


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    pending = b""
    for chunk in response.stream(65536):
        *complete, pending = (pending + chunk).split(b"\n")
        yield from (line for line in complete if line)


@contextmanager
def tolerating(*statuses: int) -> Iterator[None]:
    """Let a refusal with one of these statuses end the block, and no more."""
    try:
        yield
    except ApiError as error:
        if error.status not in statuses:
            raise


def find(api: Api, path: str) -> Object | None:
    """Return an object, or None where the API has none at this path."""
    with tolerating(404):
        return api.get(path)
    return None


def has_condition(item: Mapping[str, Any], condition: str = "Ready", status: str = "True") -> bool:
    """Say whether an object reports a condition, by itself that it is Ready."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(c.get("type") == condition and c.get("status") == status for c in conditions)


def write_kubeconfig(path: Path, user: str, cluster: Mapping[str, str], **credentials: str) -> Path:
    """Write how a user reaches a cluster to a file that nobody else reads."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "twin", "cluster": dict(cluster)}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "twin", "context": {"cluster": "twin", "user": user}}],
        "current-context": "twin",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path
