"""Serves a FakeKafka over TCP, one port per broker: real frames, so a client cannot tell.

    python -m tests.fake_brokers BROKERS REPLICAS_PER_BROKER

Prints the first broker's address, then serves until its input ends; for each line that comes in, it
prints the bytes it has sent.
"""

from __future__ import annotations

import asyncio
import gc
import json
import struct
import sys
from collections.abc import Mapping
from typing import Any

from kafka.protocol import admin
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from tests.fake_kafka import RESPONSES, FakeKafka, FakePartition, api_versions

PARTITIONS_PER_TOPIC = 100
HOST = "127.0.0.1"
NOW_MS = 1_000_000
REQUESTS = {
    "ApiVersions": ApiVersionsRequest,
    "Metadata": MetadataRequest,
    **{
        call: getattr(admin, f"{call}Request")
        for call in RESPONSES
        if call not in {"ApiVersions", "Metadata"}
    },
}
BY_KEY = {request.API_KEY: (call, request) for call, request in REQUESTS.items()}


class FakeBrokers:
    """Answers frames; equal questions to one broker are answered from memory."""

    def __init__(self, kafka: FakeKafka) -> None:
        self.kafka, self.sent = kafka, 0
        self._answers: dict[tuple[int, bytes], bytes] = {}

    async def serve(self) -> None:
        """Open a port for each broker; from then on answers name them."""
        for broker in self.kafka.brokers:
            server = await asyncio.start_server(self._of(broker), HOST, 0)
            self.kafka.ports[broker] = server.sockets[0].getsockname()[1]

    def _of(self, broker: int) -> Any:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    frame = self._answer(await reader.readexactly(size), broker)
                    self.sent += len(frame) + 4
                    writer.write(struct.pack(">i", len(frame)) + frame)
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        return connected

    def _answer(self, frame: bytes, broker: int) -> bytes:
        key, version, correlation, name = struct.unpack_from(">hhih", frame)
        call, request = BY_KEY[key]
        flexible = request.flexible_version_q(version)
        body = frame[10 + max(name, 0) + flexible :]
        # ApiVersions answers without tags, whatever its version: the client knows none yet.
        tags = b"\0" if flexible and call != "ApiVersions" else b""
        known = (broker, frame[:4] + body)
        if known not in self._answers:
            self._answers[known] = self._response_bytes(call, request, version, body, broker)
        return struct.pack(">i", correlation) + tags + self._answers[known]

    def _response_bytes(
        self, call: str, request: Any, version: int, body: bytes, broker: int
    ) -> bytes:
        if call == "ApiVersions":
            return bytes(api_versions(self.kafka).encode(version=version))
        received = request.decode(body, version=version)
        return self.kafka.responding(call, received, broker, version)


class Spread(FakeKafka):
    """A large cluster whose log directories are looked up, not searched for."""

    index: Mapping[int, dict[str, list[int]]]

    def replicas_on(self, broker: int) -> dict[str, list[int]]:
        return self.index[broker]


def spread_brokers(brokers: int, replicas_per_broker: int) -> Spread:
    """Return brokers in three zones (id modulo 3), each partition with a replica in each zone."""
    zones = [[b for b in range(brokers) if b % 3 == zone] for zone in range(3)]
    topics: dict[str, list[FakePartition]] = {}
    index: dict[int, dict[str, list[int]]] = {b: {} for b in range(brokers)}
    for place in range(brokers * replicas_per_broker // 3):
        topic = f"topic-{place // PARTITIONS_PER_TOPIC:05d}"
        order = [zones[(place + k) % 3] for k in range(3)]
        row = tuple(
            zone[(place // 3 + k * (place // 97)) % len(zone)] for k, zone in enumerate(order)
        )
        partitions = topics.setdefault(topic, [])
        for broker in row:
            index[broker].setdefault(topic, []).append(len(partitions))
        partitions.append(FakePartition(row, row, row[0]))
    found = Spread(
        topics=topics,
        brokers=dict.fromkeys(range(brokers), False),
        voters=dict.fromkeys((1000, 1001, 1002), NOW_MS),
        leader=1001,
        observers=dict.fromkeys(range(brokers), NOW_MS),
    )
    found.index = index
    return found


async def _main(brokers: int, replicas: int) -> None:
    serving = FakeBrokers(spread_brokers(brokers, replicas))
    # What Python's collector takes to look at all of them is no time of Kafka's.
    gc.freeze()
    await serving.serve()
    _say(f"{HOST}:{serving.kafka.ports[0]}")
    while await asyncio.to_thread(sys.stdin.readline):
        _say(json.dumps({"sent": serving.sent}))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2])))
