"""A small Kafka in memory, and the client that the adapters take for kafka-python's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.errors import KafkaError

from handlers.adapters import kafka
from tests.fake_kafka import FakeKafka, FakePartition

NOW_MS = 1_795_213_465_721


def three_brokers(**changed: Any) -> FakeKafka:
    """Return three brokers, three controllers and two topics, everything in sync."""

    def spread(count: int) -> list[FakePartition]:
        ids = (1, 2, 3)
        rows = [tuple(ids[(n + k) % 3] for k in range(3)) for n in range(count)]
        return [FakePartition(row, row, row[0]) for row in rows]

    return FakeKafka(
        topics={"orders": spread(4), "payments": spread(2)},
        brokers={1: False, 2: False, 3: False},
        voters={10: NOW_MS - 400, 11: NOW_MS, 12: NOW_MS - 494},
        leader=11,
        observers={1: NOW_MS - 200, 2: NOW_MS - 300, 3: NOW_MS - 100},
        **changed,
    )


class FakeClient:
    """Stands where kafka-python's client does: requests and responses go through real bytes."""

    def __init__(self, cluster: FakeKafka) -> None:
        self.cluster, self.closed = cluster, False

    def ask(self, request: Any, broker: int | None = None) -> Any:
        return self.cluster.answer(request, broker)

    def ask_undecoded(self, requests: Sequence[Any], broker: int) -> list[bytes]:
        return [self.cluster.encode_response(request, broker) for request in requests]

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> Iterator[Any]:
        return (self._asked(broker, request) for broker, request in requests)

    def _asked(self, broker: int, request: Any) -> Any:
        try:
            return self.ask(request, broker)
        except KafkaError as error:
            return error

    def close(self) -> None:
        self.closed = True


@contextmanager
def answering(cluster: FakeKafka) -> Iterator[FakeClient]:
    """Have KafkaAdmin ask this cluster, whatever the address."""
    with pytest.MonkeyPatch.context() as patched:
        client = FakeClient(cluster)
        patched.setattr(kafka, "WireAdmin", lambda **_: client)
        patched.setattr(kafka, "_knock", lambda _: None)
        yield client
