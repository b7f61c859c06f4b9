"""The twin's network load balancer: a TCP proxy that forwards to healthy targets only.

It listens on the NLB's address at every listener's port, and takes the targets and what the health
checks say of them from the twin's AWS. Like AWS it fails open: with no healthy target at all, it
forwards to every registered one. Ports named in the twin's file `nlb.paused`, one a line, carry
nothing while they stand there: connections stay, as in a network that has stopped. Run it as
`python -m local.nlb` with STILLWATER_TWIN set.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import signal
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import urllib3

from local.environment import FORWARDING_PATH
from local.place import Place, dial

POLL_SECONDS = 0.2
CONNECT_SECONDS = 3.0
CHUNK_BYTES = 65536
PAUSED = "nlb.paused"
LOG = logging.getLogger(__name__)

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Backends:
    """Where one listener may forward to, and which connections it may keep."""

    # New connections go here, in turn.
    open_to: tuple[Address, ...] = ()
    # A connection to any other target is cut: unhealthy, or deregistered and drained.
    keeps: frozenset[Address] = frozenset()


def backends(targets: Iterable[Mapping[str, Any]]) -> Backends:
    """Decide where a listener forwards to, from its targets' states."""
    by_state: dict[str, list[Address]] = {}
    for target in targets:
        by_state.setdefault(str(target["state"]), []).append((target["id"], int(target["port"])))
    healthy = by_state.get("healthy", [])
    registered = [*healthy, *by_state.get("initial", []), *by_state.get("unhealthy", [])]
    open_to = healthy or registered
    # Draining targets keep what they have; fail-open keeps what it opened.
    return Backends(tuple(open_to), frozenset([*open_to, *by_state.get("draining", [])]))


@dataclass(slots=True)
class NlbListener:
    """One listening port and the connections that came through it."""

    port: int
    server: asyncio.Server | None = None
    backends: Backends = Backends()
    turn: itertools.count[int] = field(default_factory=itertools.count)
    flows: dict[asyncio.Task[None], Address] = field(default_factory=dict)
    # Set while the port carries anything.
    open: asyncio.Event = field(default_factory=asyncio.Event)

    def choose(self) -> Address | None:
        targets = self.backends.open_to
        return targets[next(self.turn) % len(targets)] if targets else None

    def update(self, fresh: Backends) -> None:
        """Take new targets; cut connections to those that may keep none."""
        self.backends = fresh
        for flow, target in list(self.flows.items()):
            if target not in fresh.keeps:
                flow.cancel()


class Proxy:
    """All listeners of the twin's one NLB address."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._dial = partial(dial, place)
        self._pool = urllib3.PoolManager(retries=False, timeout=5.0)
        self.listeners: dict[int, NlbListener] = {}

    async def run(self, ended: asyncio.Event) -> None:
        """Follow AWS until told to end."""
        while not ended.is_set():
            try:
                await self.apply(await asyncio.to_thread(self._forwarding))
            except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
                LOG.warning("the targets are not known now: %s", error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), POLL_SECONDS)
        for port in list(self.listeners):
            await self._close(port)

    def _forwarding(self) -> list[dict[str, Any]]:
        response = self._pool.request("GET", self.place.url("moto") + FORWARDING_PATH)
        found: list[dict[str, Any]] = json.loads(response.data)
        return found

    async def apply(self, forwarding: Iterable[Mapping[str, Any]]) -> None:
        """Listen where AWS has listeners, and nowhere else."""
        wanted = {int(entry["port"]): backends(entry["targets"]) for entry in forwarding}
        for port in self.listeners.keys() - wanted.keys():
            await self._close(port)
        for port, fresh in wanted.items():
            if port not in self.listeners:
                await self._open(port)
            self.listeners[port].update(fresh)
        self.pause(paused_ports(self.place))

    def pause(self, ports: Collection[int]) -> None:
        """Let these ports carry nothing, and all others what comes."""
        for port, listener in self.listeners.items():
            if port in ports:
                listener.open.clear()
            else:
                listener.open.set()

    async def _open(self, port: int) -> None:
        listener = self.listeners[port] = NlbListener(port)
        listener.server = await asyncio.start_server(
            partial(self._carry, listener), self.place.nlb_host, port
        )
        LOG.info("listening on %s:%d", self.place.nlb_host, port)

    async def _close(self, port: int) -> None:
        listener = self.listeners.pop(port)
        if listener.server is not None:
            listener.server.close()
        listener.update(Backends())

    async def _carry(
        self, listener: NlbListener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await listener.open.wait()
        target = listener.choose()
        where = None if target is None else self._dial(*target)
        flow = asyncio.current_task()
        if target is None or where is None or flow is None:
            writer.transport.abort()
            return
        listener.flows[flow] = target
        try:
            await self._forward(where, reader, writer, listener.open)
        except (OSError, TimeoutError):
            pass
        except asyncio.CancelledError:
            LOG.info("a connection to %s:%d was cut", *target)
        finally:
            del listener.flows[flow]
            writer.transport.abort()

    async def _forward(
        self,
        where: Address,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        gate: asyncio.Event,
    ) -> None:
        """Carry one connection; the broker sees the NLB's address, as without client IP kept."""
        there_reader, there_writer = await asyncio.wait_for(
            asyncio.open_connection(*where, local_addr=(self.place.nlb_host, 0)), CONNECT_SECONDS
        )
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(_pour(reader, there_writer, gate))
                ways.create_task(_pour(there_reader, writer, gate))
        except* OSError:
            pass
        finally:
            there_writer.transport.abort()


async def _pour(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: asyncio.Event
) -> None:
    while data := await source.read(CHUNK_BYTES):
        await gate.wait()
        sink.write(data)
        await sink.drain()
    with contextlib.suppress(OSError):
        sink.write_eof()


def paused_ports(place: Place) -> frozenset[int]:
    """Return the ports that somebody has paused."""
    with contextlib.suppress(FileNotFoundError):
        return frozenset(int(line) for line in place.path(PAUSED).read_text().split())
    return frozenset()


async def serve(place: Place) -> None:
    """Run until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await Proxy(place).run(ended)


def main() -> None:
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(message)s"
    )
    asyncio.run(serve(Place.load()))


if __name__ == "__main__":
    main()
