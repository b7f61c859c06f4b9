import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pytest

from local.kubernetes.client import Api, ApiError, Informer, Object, key_of


def _item(name: str, version: int, uid: str = "u") -> Object:
    metadata = {"name": name, "namespace": "n", "resourceVersion": str(version), "uid": uid}
    return {"metadata": metadata}


class Response:
    """A watch that says what it was given, in pieces that respect no line, then ends."""

    def __init__(self, events: list[Object]) -> None:
        text = "".join(json.dumps(event) + "\n" for event in events).encode()
        self._pieces = [text[i : i + 7] for i in range(0, len(text), 7)]

    def stream(self, _amount: int) -> Iterator[bytes]:
        yield from self._pieces

    def shutdown(self) -> None:
        """Nothing blocks here."""


class FakeApi:
    """An API whose lists and watches follow a script; past its end, watches block until closed."""

    def __init__(self, lists: list[list[Object] | Exception], watches: list[list[Object]]) -> None:
        self._lists, self._watches = lists, watches
        self.watched_from: list[str] = []
        self.finished = threading.Event()
        self.closed = threading.Event()

    def get(self, _path: str, **_query: object) -> Object:
        answer = self._lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {
            "apiVersion": "v1",
            "kind": "PodList",
            "metadata": {"resourceVersion": "10"},
            "items": answer,
        }

    @contextmanager
    def watch(self, _path: str, **query: object) -> Iterator[Response]:
        self.watched_from.append(str(query["resourceVersion"]))
        if not self._watches:
            self.finished.set()
            self.closed.wait(10)
            yield Response([])
            return
        yield Response(self._watches.pop(0))


def _run(api: FakeApi, on_event: Any = None) -> Informer:
    informer = Informer(cast("Api", api), "/api/v1/pods", on_event)
    assert api.finished.wait(10)
    informer._stopped.set()
    api.closed.set()
    informer.stop()
    return informer


def test_an_informer_resumes_a_watch_that_ended_where_it_was() -> None:
    heard: list[tuple[str, str]] = []
    api = FakeApi(
        [[_item("a", 5)]],
        [
            [{"type": "ADDED", "object": _item("b", 11)}],
            [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "30"}}}],
        ],
    )
    informer = _run(api, lambda event, item: heard.append((event, item["metadata"]["name"])))
    assert api.watched_from == ["10", "11", "30"]
    assert heard == [("ADDED", "a"), ("ADDED", "b")]
    assert set(informer.objects) == {("n", "a"), ("n", "b")}
    assert informer.objects["n", "a"]["kind"] == "Pod"


def test_an_informer_whose_place_in_history_is_gone_hears_the_difference_once() -> None:
    heard: list[tuple[str, str]] = []
    first = [_item("kept", 1), _item("changed", 2), _item("gone", 3), _item("replaced", 4, "u1")]
    second = [_item("kept", 1), _item("changed", 8), _item("replaced", 9, "u2"), _item("new", 9)]
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    api = FakeApi([first, second], [[gone]])
    informer = _run(api, lambda event, item: heard.append((event, item["metadata"]["name"])))
    assert heard[4:] == [
        ("DELETED", "gone"),
        ("MODIFIED", "changed"),
        ("ADDED", "replaced"),
        ("ADDED", "new"),
    ]
    assert {name for _, name in informer.objects} == {"kept", "changed", "replaced", "new"}


def test_a_reaction_that_fails_does_not_end_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def fail_once(_event: str, item: Mapping[str, Any]) -> None:
        heard.append(item["metadata"]["name"])
        if len(heard) == 1:
            raise RuntimeError("no")

    _run(FakeApi([[_item("a", 1), _item("b", 2)]], []), fail_once)
    assert heard == ["a", "b"]
    assert "The reaction to ADDED /api/v1/pods ('n', 'a') failed" in caplog.text


def test_an_informer_keeps_trying_after_errors() -> None:
    refused = ApiError(0, "Unreachable", "The API server did not answer.")
    api = FakeApi([refused, [_item("a", 1)]], [])
    assert set(_run(api).objects) == {("n", "a")}


def test_a_list_that_never_comes_is_explained_by_the_last_error() -> None:
    forbidden = ApiError(403, "Forbidden", "GET /api/v1/pods was refused (403): not yours")
    informer = Informer(cast("Api", FakeApi([forbidden] * 50, [])), "/api/v1/pods")
    with pytest.raises(
        ApiError, match=r"not read within 0 s; the last error was: GET .* not yours"
    ):
        informer.wait_synced(0.3)
    informer.stop()


def test_objects_handed_out_do_not_change_under_the_reader() -> None:
    seen: list[Mapping[tuple[str, str], Object]] = []
    holder: list[Informer] = []
    ready = threading.Event()

    def keep(_event: str, _item: Object) -> None:
        ready.wait(10)
        seen.append(holder[0].objects)

    api = FakeApi([[_item("a", 1), _item("b", 2)]], [])
    informer = Informer(cast("Api", api), "/api/v1/pods", keep)
    holder.append(informer)
    ready.set()
    assert api.finished.wait(10)
    informer._stopped.set()
    api.closed.set()
    informer.stop()
    assert [len(objects) for objects in seen] == [1, 2]


def test_the_key_of_a_cluster_wide_object_has_no_namespace() -> None:
    assert key_of({"metadata": {"name": "node-1"}}) == ("", "node-1")
