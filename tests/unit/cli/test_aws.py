"""cli.aws: a session's clients, which many threads ask for at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cli.aws import Clients


class Session:
    """Makes clients, and fails where two are made at a time, as boto3's sometimes does."""

    def __init__(self) -> None:
        self.made: list[tuple[str, Any]] = []
        self._alone = threading.Lock()

    def client(self, service: str, **given: Any) -> Any:
        if not self._alone.acquire(blocking=False):
            raise KeyError("credential_provider")
        try:
            time.sleep(0.001)
            self.made.append((service, given))
            return object()
        finally:
            self._alone.release()


def test_a_client_is_made_once_and_alone_however_many_threads_ask() -> None:
    session = Session()
    clients = Clients(session.client)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(clients, ["ec2", "eks", "ec2", "s3"] * 4))
    assert sorted(service for service, _ in session.made) == ["ec2", "eks", "s3"]
    assert len(set(found)) == 3


def test_what_is_asked_for_otherwise_is_another_client() -> None:
    clients = Clients(Session().client)
    assert clients("s3") is clients("s3")
    assert clients("s3", region="eu-west-1") is not clients("s3")
