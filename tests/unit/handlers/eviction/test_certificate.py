"""A certificate is renewed in time, trusted before it is shown, and one for both replicas."""

import base64
import datetime as dt
import re
import ssl
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from cryptography import x509

from core.gate import EVICTIONS, KNOWN, PATH
from core.ground.errors import Conflict, StillwaterError
from handlers.eviction.certificate import (
    NAMED_EVERY,
    RENEWED_BEFORE,
    VALID,
    WEBHOOKS,
    Keeper,
    is_due,
    issue,
)

NOW = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
HOSTS = ["stillwater-gate.kube-system.svc"]
SECRET = "/api/v1/namespaces/kube-system/secrets/stillwater-gate"
WEBHOOK = f"{WEBHOOKS}/stillwater-gate"


class Server:
    """Two objects of an API server; a change of another version is refused."""

    def __init__(self) -> None:
        asking = [{"name": name, "clientConfig": {}} for name in (EVICTIONS, "nodes")]
        self.objects: dict[str, dict[str, Any]] = {
            SECRET: {"metadata": {"resourceVersion": "1"}},
            WEBHOOK: {"metadata": {"name": "stillwater-gate"}, "webhooks": asking},
        }
        self.before_merge = lambda: None

    def find(self, path: str) -> dict[str, Any] | None:
        return self.objects.get(path)

    def merge(self, path: str, body: dict[str, Any]) -> None:
        self.before_merge()
        known = self.objects[path]["metadata"]["resourceVersion"]
        if body["metadata"]["resourceVersion"] != known:
            raise Conflict("changed")
        data = {**self.objects[path].get("data", {}), **body["data"]}
        changed = {"metadata": {"resourceVersion": str(int(known) + 1)}, "data": data}
        self.objects[path] = changed

    def apply(self, path: str, body: dict[str, Any], *, manager: str) -> dict[str, Any]:
        del manager
        self.objects[path] = {**self.objects[path], "webhooks": body["webhooks"]}
        return self.objects[path]

    def stored(self, name: str) -> bytes:
        return base64.b64decode(self.objects[SECRET]["data"][name])

    def trusted(self) -> bytes:
        told = {each["clientConfig"]["caBundle"] for each in self.objects[WEBHOOK]["webhooks"]}
        (bundle,) = told
        return base64.b64decode(bundle)

    def tokens(self) -> list[str]:
        return self.stored("tokens").decode().split()

    def asked_with(self) -> str:
        """Return the token of the path that each webhook asks at."""
        told = {e["clientConfig"]["service"]["path"] for e in self.objects[WEBHOOK]["webhooks"]}
        (path,) = told
        prefix, _, token = path.rpartition("/")
        assert prefix == PATH
        return str(token)

    def known(self) -> list[Any]:
        """Return what the gate has added to each webhook."""
        return [each.get("matchConditions") for each in self.objects[WEBHOOK]["webhooks"]]


def keeper(server: Server, pods: Callable[[], Iterable[str]] | None = None) -> Keeper:
    return Keeper(server, secret_path=SECRET, webhook="stillwater-gate", hosts=HOSTS, pods=pods)


def test_a_certificate_is_due_a_month_before_its_end_and_for_another_name() -> None:
    made = issue(HOSTS, NOW).certificate
    last = NOW + VALID - RENEWED_BEFORE
    assert not is_due(made, HOSTS, last - dt.timedelta(hours=1))
    assert is_due(made, HOSTS, last)
    assert is_due(made, ["another.svc"], NOW)
    assert is_due(b"", HOSTS, NOW)


def test_what_is_renewed_is_trusted_first_and_shown_next() -> None:
    server = Server()
    held = keeper(server)
    context = held.context(NOW)
    first = server.stored("tls.crt")
    later = NOW + VALID - RENEWED_BEFORE
    shown: list[str] = []
    held._show = lambda _, issued: shown.append(issued.certificate.decode())
    held.refresh(context, later)
    renewed = server.stored("tls.crt")
    assert renewed != first
    assert len(x509.load_pem_x509_certificates(server.trusted())) == 2
    assert shown == []
    held.refresh(context, later)
    assert shown == [renewed.decode()]


def test_two_replicas_that_renew_at_once_show_the_same() -> None:
    server = Server()
    other = keeper(server)

    def meanwhile() -> None:
        server.before_merge = lambda: None
        other.context(NOW)

    server.before_merge = meanwhile
    assert isinstance(keeper(server).context(NOW), ssl.SSLContext)
    trusted = x509.load_pem_x509_certificates(server.trusted())[0]
    stored = x509.load_pem_x509_certificate(server.stored("tls.crt"))
    stored.verify_directly_issued_by(trusted)


def test_the_api_server_asks_at_a_path_that_is_told_to_it_alone() -> None:
    server = Server()
    held = keeper(server)
    held.context(NOW)
    token = server.asked_with()
    # The API server takes no other letters in a path.
    assert re.fullmatch("[0-9a-f]{48}", token)
    assert held.admits(token)
    assert not any(held.admits(other) for other in ("", token[:-1], token + "x", "é" + token))


def test_each_replica_knows_a_path_before_the_api_server_asks_there() -> None:
    server = Server()
    held, beside = keeper(server), keeper(server)
    context = held.context(NOW)
    beside.context(NOW)
    first = server.asked_with()
    seen = {first}
    for turn in range(1, 4):
        before = server.asked_with()
        held.refresh(context, NOW + turn * VALID)
        # The other replica has not looked at the Secret since.
        assert beside.admits(server.asked_with())
        assert held.admits(before)
        beside.refresh(context, NOW + turn * VALID)
        seen.add(server.asked_with())
    assert len(seen) == 4
    assert not held.admits(first)


def test_a_certificate_of_before_the_tokens_is_replaced_with_them() -> None:
    server = Server()
    keeper(server).context(NOW)
    del server.objects[SECRET]["data"]["tokens"]
    held = keeper(server)
    held.refresh(held.context(NOW), NOW)
    assert held.admits(server.asked_with())
    assert len(server.tokens()) == 3


def test_a_secret_that_is_missing_is_said() -> None:
    server = Server()
    del server.objects[SECRET]
    with pytest.raises(StillwaterError, match="A Secret is missing"):
        keeper(server).context(NOW)


def named(*pools: str) -> list[Any]:
    expression = f"request.name.matches('^({'|'.join(pools)})-[0-9]+$')"
    return [[{"name": KNOWN, "expression": expression}], None]


def test_of_a_kafka_that_exists_the_pools_that_there_are_are_asked_about_and_no_more() -> None:
    server, pods = Server(), ["orders-a-0", "orders-a-1"]
    held = keeper(server, lambda: pods)
    context = held.context(NOW)
    assert server.known() == named("orders-a")
    pods.append("orders-b-2")
    held.refresh(context, NOW + NAMED_EVERY / 2)
    assert server.known() == named("orders-a")
    held.refresh(context, NOW + NAMED_EVERY)
    assert server.known() == named("orders-a", "orders-b")
    assert server.trusted()


def test_where_the_pools_cannot_be_read_what_was_known_is_kept() -> None:
    server = Server()

    def unread() -> list[str]:
        raise StillwaterError("The Kubernetes API answered 403.")

    keeper(server, unread).context(NOW)
    assert server.known() == [None, None]  # nothing is known: every name that fits is asked about
    keeper(server, lambda: ["orders-a-0"]).context(NOW)
    for nothing in (unread, list):
        later = keeper(server, nothing)
        context = later.context(NOW)
        later.refresh(context, NOW + VALID)  # a renewed certificate writes the webhook
        assert server.known() == named("orders-a")


def test_a_webhook_that_names_its_pools_already_is_left_as_it_is() -> None:
    server = Server()
    keeper(server).context(NOW)
    assert server.known() == [None, None]
