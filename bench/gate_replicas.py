"""Measures drainers' waits while both replicas of the eviction gate are killed in the middle.

    python -m bench.gate_replicas [BROKERS ...]

Two replicas, a process each, over one ledger in a third, before a Kafka of that size. In each round
two drainers ask at the same time, one each replica; both are killed a moment later, two others take
their places, and both drainers ask again until they are let through. Written down is how long each
answer took, and each end of a connection that was cut: none may reach the API server's own
timeout, and nobody may be let through beside another. Writes out/bench/gate_replicas.json.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

import urllib3

from bench import record
from bench.gate import (
    BROKERS,
    HOST,
    TOKEN,
    GateClient,
    brokers_at,
    gate_before,
    medians,
    pod_of,
    server_before,
    write_certificate,
)
from bench.reading import fake_kafka
from core.gate import PATH, TIMEOUT_SECONDS, let_through
from core.ground.errors import StillwaterError
from core.incidents.record import UNDRAINED
from tests.unit.handlers.in_memory import MemoryLedger

REPLICA = "replica"
REPLICAS = 2
ROUNDS = 8
# Spread over what an admission takes, so that each of its steps is cut off in some round.
MOMENTS_SECONDS = 0.25
AGAIN_SECONDS = 0.1
MOST_ASKS = 200
_KEY = b"bench"


class _OneAtATime:
    """A ledger whose writes are conditional for whoever asks from wherever."""

    def __init__(self) -> None:
        self._ledger, self._lock = MemoryLedger(), threading.Lock()

    def __getattr__(self, name: str) -> Any:
        def called(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                return getattr(self._ledger, name)(*arguments, **named)

        return called


class _Shared(BaseManager):
    pass


_LEDGER = _OneAtATime()
_ASKED = [name for name in vars(MemoryLedger) if not name.startswith("_")]
_Shared.register("ledger", callable=lambda: _LEDGER, exposed=_ASKED)


@dataclass
class _Stage:
    """Kafka, the ledger, the certificate, and the replicas that stand now."""

    kafka: str
    ledger: Any
    ledger_port: int
    certificate: Path
    http: urllib3.PoolManager
    pods: Sequence[str]
    replicas: list[subprocess.Popen[str]] = field(default_factory=list)
    doors: list[GateClient] = field(default_factory=list)

    def stand(self) -> None:
        """Start both replicas, and wait until they serve."""
        command = [sys.executable, "-m", "bench.gate_replicas", REPLICA]
        command += [self.kafka, str(self.ledger_port), str(self.certificate), str(len(self.pods))]
        self.replicas = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(REPLICAS)
        ]
        self.doors = []
        for each in self.replicas:
            assert each.stdout is not None
            url = f"https://{HOST}:{each.stdout.readline().strip()}{PATH}/{TOKEN}"
            self.doors.append(GateClient(self.ledger, self.pods, url, self.http))

    def kill(self) -> None:
        for each in self.replicas:
            each.send_signal(signal.SIGKILL)
            each.wait()

    def out(self) -> list[str]:
        return [lease.holder for lease in self.ledger.leases() if lease.out_at is not None]

    def follow(self) -> None:
        """Record what a replica let through and did not live to record, as λ tick does."""
        for lease in self.ledger.leases():
            incident = self.ledger.get(lease.holder)
            if incident is not None and incident.state in UNDRAINED and lease.forwarded_at:
                said = "It was let through by a gate that died over it."
                self.ledger.put(let_through(incident, said, lease.forwarded_at))


def main(arguments: Sequence[str]) -> None:
    """Measure, write down; `replica` is what this program runs twice."""
    logging.disable(logging.INFO)
    if arguments[:1] == [REPLICA]:
        _serve(*arguments[1:])
        return
    rows = []
    for brokers in [int(each) for each in arguments] or BROKERS:
        with fake_kafka(brokers) as (address, _), _stage(address) as stage:
            rows.append(_row(brokers, stage))
            print(json.dumps(rows[-1]))
    summary = {f"{key}_{row['brokers']}": row[key] for row in rows for key in ("p50", "p99", "max")}
    parameters = {"rounds": ROUNDS, "replicas": REPLICAS, "api_server_timeout_s": TIMEOUT_SECONDS}
    record.write("gate_replicas", parameters, rows, summary)


def _row(brokers: int, stage: _Stage) -> dict[str, Any]:
    answered, cut = list[float](), list[float]()
    for number in range(ROUNDS):
        stage.stand()
        pair = [stage.pods[(2 * number + k) % len(stage.pods)] for k in range(REPLICAS)]
        with ThreadPoolExecutor(REPLICAS) as drainers:
            asking = [
                drainers.submit(_once, door, pod)
                for door, pod in zip(stage.doors, pair, strict=True)
            ]
            time.sleep(MOMENTS_SECONDS * (number + 1) / ROUNDS)
            stage.kill()
            for each in asking:
                allowed, seconds = each.result()
                (cut if allowed is None else answered).append(seconds)
        stage.stand()
        stage.follow()
        answered += _until_all_went(stage, pair)
        stage.kill()
    longest = max([*answered, *cut])
    if longest >= TIMEOUT_SECONDS:
        raise StillwaterError(f"An answer took {longest:.1f} s: the API server gives up before.")
    return {
        "brokers": brokers,
        "asked": len(answered) + len(cut),
        "cut_off": len(cut),
        **medians([1000 * each for each in answered]),
        "max": round(1000 * longest, 1),
        "load_average": record.load_average(),
    }


def _until_all_went(stage: _Stage, pods: Sequence[str]) -> Iterator[float]:
    """Ask for both in turn until both have gone, one after the other."""
    left = list(pods)
    for number in range(MOST_ASKS):
        if not left:
            return
        pod = left[number % len(left)]
        allowed, seconds = _once(stage.doors[number % REPLICAS], pod)
        yield seconds
        if len(stage.out()) > 1:
            raise StillwaterError(f"Two are out at the same time: {stage.out()}.")
        if allowed:
            left.remove(pod)
            stage.doors[0].back()
        else:
            time.sleep(AGAIN_SECONDS)
    raise StillwaterError(f"{left} were not let through in {MOST_ASKS} asks.")


def _once(door: GateClient, pod: str) -> tuple[bool | None, float]:
    """Return the answer and the seconds it took; None: the connection was cut."""
    began = time.monotonic()
    try:
        return door.ask(pod)
    except urllib3.exceptions.HTTPError:
        return None, time.monotonic() - began


@contextlib.contextmanager
def _stage(kafka: str) -> Iterator[_Stage]:
    ids = sorted(brokers_at(kafka))
    with _Shared((HOST, 0), _KEY) as shared, tempfile.TemporaryDirectory() as directory:
        certificate = Path(directory, "certificate.pem")
        trusting = write_certificate(certificate)
        stage = _Stage(
            kafka=kafka,
            ledger=shared.ledger(),  # type: ignore[attr-defined]  # registered above
            ledger_port=_port(shared),
            certificate=certificate,
            http=urllib3.PoolManager(ssl_context=trusting, timeout=30, retries=False),
            pods=[pod_of(each) for each in ids],
        )
        try:
            yield stage
        finally:
            stage.kill()


def _port(shared: _Shared) -> int:
    assert isinstance(shared.address, tuple)
    return shared.address[1]


def _serve(kafka: str, ledger_port: str, certificate: str, brokers: str) -> None:
    shared = _Shared((HOST, int(ledger_port)), _KEY)
    shared.connect()
    ledger = shared.ledger()  # type: ignore[attr-defined]  # registered above
    gate = gate_before(kafka, range(int(brokers)), ledger, spares=True)
    server, port = server_before(gate, Path(certificate))
    threading.Thread(target=_tell_when_started, args=(server, port), daemon=True).start()
    asyncio.run(server.serve())


def _tell_when_started(server: Any, port: int) -> None:
    while not server.started:
        time.sleep(0.01)
    print(port, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
