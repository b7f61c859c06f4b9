"""Writes what a desk has to show, through the gateways that the functions write with.

A broker is out, one waits for it, one is held by a person; a rotation runs, a zone is frozen, and
a volume fills up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cli.target import Cluster
from core.events import Kind
from core.incidents.record import Incident, Replacement, State, Transition
from core.rotation.run_record import NodeTurn, Note, Options, Phase, open_run
from core.volumes.sizing import GIB
from core.volumes.views import FillSample, History
from handlers.store import volume_records
from handlers.store.documents import Freezes, Runs
from handlers.store.table import Records
from handlers.store.volume_records import PLAN, Memory

WALK = (
    (State.OPENED, 0.0, "AWS announced asg_terminate for instance {}."),
    (State.REPLACING, 4.0, "Node ip-10-0-1-17 boots; its volume driver is awaited."),
    (State.HOLDING, 88.0, "Node ip-10-0-1-17 is Ready in {zone}; Kafka is asked."),
    (State.DRAINING, 131.0, "Broker {node} may leave: every partition keeps two in-sync replicas."),
)
TTL_SECONDS = 300.0


def incident(
    instance: str, node: int, zone: str, steps: int, opened_at: float, **changed: Any
) -> Incident:
    """Return an incident that has gone so many steps of its way."""
    walked = tuple(
        Transition(opened_at + after, state, "tick", said.format(instance, zone=zone, node=node))
        for state, after, said in WALK[:steps]
    )
    made = Incident(
        id=instance,
        instance_id=instance,
        kind=Kind.ASG_TERMINATE,
        state=walked[-1].state,
        opened_at=opened_at,
        announced_at=opened_at,
        announcements=(f"asg_terminate:{instance}",),
        group=f"local-orders-broker-{zone[-1]}",
        zone=zone,
        pool="broker",
        node_id=node,
        role="broker",
        node_name=f"ip-10-0-{node}-4.ec2.internal",
        pod_name=f"orders-broker-{zone[-1]}-{node}",
        reason=walked[-1].reason,
        transitions=walked,
    )
    return replace(made, **changed)


def turn(node: int, zone: str, instance: str, **changed: Any) -> NodeTurn:
    """Return one node's turn."""
    return NodeTurn(
        node_id=node,
        pod=f"orders-broker-{zone[-1]}-{node}",
        role="broker",
        pool="broker",
        zone=zone,
        instance_id=instance,
        why="Its AMI is older than the launch template's.",
        expected_seconds=420.0,
        **changed,
    )


def write(desk: Cluster, now: float) -> None:
    """Fill an environment's ledger with a busy moment."""
    ledger = desk.ledger
    out = "i-0a1b2c3d4e5f60718"
    ready = Replacement(node="ip-10-0-1-17.ec2.internal", ready_at=now - 100)
    ledger.put(incident(out, 10, "us-east-1a", 4, now - 190, replacement=ready))
    ledger.take_lease(out, now - 60, TTL_SECONDS, node_id=10)
    ledger.begin_drain(out, now - 59, TTL_SECONDS, node_id=10)
    waiting = incident("i-0b77c1d2e3f405162", 20, "us-east-1b", 3, now - 150)
    reason = (
        "Broker 20 may not leave: partition payments-7 would keep 1 in-sync replica of "
        "min.insync.replicas 2 while broker 10 is away."
    )
    ledger.put(replace(waiting, reason=reason))
    held = incident("i-0c99d8e7f6a5b4c3d", 30, "us-east-1c", 3, now - 700)
    ledger.put(replace(held, held_until=now + 5000))
    records = Records(desk.table, desk.spec.region, client=desk.client("dynamodb"))
    name = desk.spec.name
    Freezes(records, name).freeze(
        "use1-az3", "us-east-1c", now - 800, now + 9000, "ada", "packet loss seen by two teams"
    )
    turns = (
        turn(
            40,
            "us-east-1a",
            "i-0d",
            phase=Phase.DONE,
            began_at=now - 1500,
            released_at=now - 1320,
            done_at=now - 1130,
        ),
        turn(
            50,
            "us-east-1b",
            "i-0e",
            phase=Phase.RETURNING,
            began_at=now - 900,
            released_at=now - 560,
            reason="12 of 214 partitions are not back in sync; 3.1 GiB are left.",
        ),
        turn(60, "us-east-1c", "i-0f", reason="Zone us-east-1c is frozen (person)."),
    )
    run = open_run(turns, Options(), "ada", now - 1530)
    said = "Broker 50 catches up; broker 60 waits."
    Runs(records, name).put(
        replace(run, reason=said, notes=(*run.notes, Note(now - 500, "rotate", said)))
    )
    _write_volumes(records, now)


def _write_volumes(records: Records, now: float) -> None:
    claims = {
        f"data-0-orders-broker-{zone}-{node}": (f"vol-0{node}", full)
        for zone, node, full in (("a", 10, 0.58), ("b", 20, 0.61), ("c", 30, 0.86))
    }
    for volume_id, full in claims.values():
        samples = tuple(
            FillSample(now - hour * 3600, (full - 0.0007 * hour) * 2000 * GIB)
            for hour in range(72, -1, -1)
        )
        history = History(known_since=now - 90_000, looked_at=now - 40)
        volume_records.write(records, volume_id, Memory(history=history, samples=samples))
    plan = {
        "at": now - 40,
        "mode": "advise",
        "above_spec_usd": "18.40",
        "planned_usd": "61.20",
        "unknown": [],
        "volumes": {claim: volume_id for claim, (volume_id, _) in claims.items()},
        "sizes_gib": dict.fromkeys(claims, 2000),
        "decisions": [
            {
                "pool": "broker",
                "volume": 0,
                "kind": "grow",
                "reason": "data-0-orders-broker-c-30 has too little room; 2,600 GiB last 30 days.",
                "applied": False,
                "emergency": False,
            }
        ],
    }
    records.write(PLAN, plan, 0)
