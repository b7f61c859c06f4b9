"""Measures a drainer's wait for the eviction gate's answer, at 3 brokers and at 200.

    python -m bench.gate [BROKERS ...]

Over HTTPS as the API server asks, with readings of Kafka over the real protocol (fake brokers of
4,000 replicas each, in a process of their own); Kubernetes, AWS and the ledger are in memory, so
their own milliseconds are not in it. `waiting`: another broker is out, and everybody is told for
whom. `no_room`: no replacement is there, on a reading of at most its age. `admitted`: the lease is
taken and Kafka read once more. Writes out/bench/gate.json.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import logging
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import quantiles
from typing import Any, cast

import urllib3
from uvicorn import Server

from bench import record
from bench.reading import REPLICAS_PER_BROKER, fake_kafka
from core.gate import PATH
from core.ground.errors import StillwaterError
from core.incidents.observation import GroupView, InstanceView, NodeView, PodView
from core.incidents.record import State
from handlers.adapters.kafka import KafkaAdmin
from handlers.eviction.certificate import issue
from handlers.eviction.gate import Gate, Recent, RecentKafka
from handlers.eviction.server import Counts, application
from handlers.gate import server_of
from handlers.incidents.observe import Sources
from handlers.incidents.reception import Reception
from handlers.store.documents import Freezes
from handlers.store.ledger import Ledger
from tests.unit.handlers.fakes import TAG, WHOSE, FakeCluster
from tests.unit.handlers.in_memory import FakeQueue, MemoryLedger, MemoryRecords
from tests.unit.policies import policy_with

BROKERS = (3, 200)
AGE_SECONDS = 2.0
ASKED, ADMITTED, MOST_ASKS = 200, 100, 10
HOST, TOKEN = "127.0.0.1", "bench"


@dataclass
class GateClient:
    """A gate that is served, and what it stands on."""

    ledger: MemoryLedger
    pods: Sequence[str]
    url: str
    http: urllib3.PoolManager

    def ask(self, pod: str) -> tuple[bool, float]:
        """Return the answer and the seconds it took."""
        request = {
            "uid": "bench",
            "operation": "CREATE",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "subResource": "eviction",
            "name": pod,
            "namespace": "kafka",
            "userInfo": {"username": "bench"},
        }
        began = time.monotonic()
        answer = self.http.request("POST", self.url, json={"request": request}).json()
        return bool(answer["response"]["allowed"]), time.monotonic() - began

    def back(self) -> None:
        """Let whoever is out be back: the lease is free again, and the incident over."""
        for lease in self.ledger.leases():
            self.ledger.drop_lease(lease.holder, ended=True)
        for incident in self.ledger.open_incidents():
            if incident.state is State.DRAINING:
                self.ledger.put(replace(incident, state=State.RIDDEN_THROUGH))


def main(arguments: Sequence[str]) -> None:
    """Measure, write down."""
    logging.disable(logging.INFO)
    rows: list[dict[str, Any]] = []
    for brokers in [int(each) for each in arguments] or BROKERS:
        with fake_kafka(brokers) as (address, _):
            rows += _rows(brokers, address)
    summary = {
        f"{row['way']}_{key}_{row['brokers']}": row[key] for row in rows for key in ("p50", "p99")
    }
    parameters = {"replicas_per_broker": REPLICAS_PER_BROKER, "reading_age_s": AGE_SECONDS}
    record.write("gate", parameters, rows, summary)


def _rows(brokers: int, address: str) -> Iterator[dict[str, Any]]:
    for way, measure in (
        ("waiting", _waiting),
        ("no_room", _no_room),
        ("admitted", _time_admissions),
    ):
        with serve_gate(address, spares=way != "no_room") as gate:
            milliseconds = [1000 * seconds for seconds in measure(gate)]
        row = {"brokers": brokers, "way": way, "asked": len(milliseconds), **medians(milliseconds)}
        row |= {"max": round(max(milliseconds), 1), "load_average": record.load_average()}
        print(json.dumps(row))
        yield row


def medians(milliseconds: Sequence[float]) -> dict[str, float]:
    cuts = quantiles(milliseconds, n=100, method="inclusive")
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1)}


def _waiting(gate: GateClient) -> Iterator[float]:
    first, *others = gate.pods
    let_through(gate, first)
    for number in range(ASKED):
        allowed, seconds = gate.ask(others[number % len(others)])
        assert not allowed
        yield seconds


def _no_room(gate: GateClient) -> Iterator[float]:
    for _ in range(ASKED):
        allowed, seconds = gate.ask(gate.pods[0])
        assert not allowed
        yield seconds


def _time_admissions(gate: GateClient) -> Iterator[float]:
    # The first time the fakes put the answers about a broker together, in Python and for longer
    # than Kafka takes: that time is nobody's.
    for first in (True, False):
        for number in range(ADMITTED):
            took = let_through(gate, gate.pods[number % len(gate.pods)])
            gate.back()
            yield from () if first else took


def let_through(gate: GateClient, pod: str) -> list[float]:
    """Ask as a drainer does until it is let through; return how long every answer took."""
    took = []
    for _ in range(MOST_ASKS):
        allowed, seconds = gate.ask(pod)
        took.append(seconds)
        if allowed:
            return took
    raise StillwaterError(f"{pod} was not let through in {MOST_ASKS} asks: {took}")


@contextlib.contextmanager
def serve_gate(address: str, *, spares: bool) -> Iterator[GateClient]:
    """Serve a gate over TLS before a cluster of that size."""
    ledger, ids = MemoryLedger(), sorted(brokers_at(address))
    gate = gate_before(address, ids, ledger, spares=spares)
    with tempfile.TemporaryDirectory() as directory:
        certificate = Path(directory, "certificate.pem")
        trusting = write_certificate(certificate)
        server, port = server_before(gate, certificate)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    with urllib3.PoolManager(ssl_context=trusting, timeout=30) as http:
        yield GateClient(
            ledger, [pod_of(id_) for id_ in ids], f"https://{HOST}:{port}{PATH}/{TOKEN}", http
        )
    server.should_exit = True
    thread.join(10)


def write_certificate(path: Path) -> ssl.SSLContext:
    """Write a server's key and certificate into a file; return what trusts it."""
    issued = issue([HOST], dt.datetime.now(dt.UTC))
    path.write_bytes(issued.key + issued.certificate)
    return ssl.create_default_context(cadata=issued.authorities.decode())


def server_before(gate: Gate, certificate: Path) -> tuple[Server, int]:
    """Return a gate's server, which is to be started, and its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    return server_of(application(gate, Counts(), TOKEN.__eq__), context, HOST, port), port


def gate_before(address: str, ids: Sequence[int], ledger: Ledger, *, spares: bool) -> Gate:
    """Return a gate before a cluster whose brokers stand on a node each."""
    recent, cluster = Recent(AGE_SECONDS), cast("Any", FakeCluster())
    for node_id in ids:
        _stand(cluster, node_id, spares=spares)
    records, kafka = MemoryRecords(), RecentKafka(recent, [address])
    return Gate(
        sources=Sources(cluster, cluster, kafka, ledger, Freezes(records, "orders")),
        reception=Reception(ledger, cluster, FakeQueue(), WHOSE, records),
        forget_readings=recent.forget,
        policy=policy_with(isr_margin=0),
        namespace="kafka",
        cluster="orders",
        operators=frozenset(),
        lease_seconds=30,
    )


def brokers_at(address: str) -> frozenset[int]:
    """Return the brokers, once the fakes have filled their memory of what they answer.

    Of a reading about broker 0 another one tells the pages.
    """
    found = frozenset[int]()
    for about in (1, 0):
        while True:
            with contextlib.suppress(StillwaterError):
                view = KafkaAdmin([address]).read({about})
                if not view.doubts:
                    found = view.brokers
                    break
    return found


def pod_of(node_id: int) -> str:
    return f"orders-broker-{node_id}"


def _stand(cluster: FakeCluster, node_id: int, *, spares: bool) -> None:
    """Place a broker on a node of a zone of its own group, and a node beside it that is free."""
    zone = f"us-east-1{'abc'[node_id % 3]}"
    group = f"group-{node_id}"
    names = [f"i-{node_id}", *([f"i-{node_id}-spare"] if spares else [])]
    for instance_id in names:
        cluster.instances[instance_id] = InstanceView(
            instance_id=instance_id,
            state="running",
            zone=zone,
            private_dns_name=f"node-{instance_id}",
            group=group,
            tags={TAG: ""},
        )
        cluster.node_views[instance_id] = NodeView(
            name=f"node-{instance_id}",
            instance_id=instance_id,
            zone=zone,
            pool=group,
            ready=True,
            schedulable=True,
            csi_ready=True,
        )
    cluster.groups[group] = GroupView(
        name=group, desired=1, maximum=2, instances=dict.fromkeys(names, "InService")
    )
    cluster.pods[node_id] = PodView(
        name=pod_of(node_id),
        node_id=node_id,
        role="broker",
        node_name=f"node-i-{node_id}",
        ready=True,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
