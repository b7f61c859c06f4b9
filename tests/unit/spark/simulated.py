"""A plain Python twin of brokers that rotate: counters second by second, and what is true of them.

No formula: a broker that is away misses what is appended, one that is back copies as fast as it
may until nothing is missing. What the jobs make of its samples is held against what it did.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.events import Kind
from core.incidents.record import Forwarding, Incident, State, Transition
from core.settings.facts import Facts, Pool, Volume
from handlers.incidents.broom import archive_key, archive_line

CLUSTER, ARCHIVE_NAME = "harbour", "prod-harbour"
STEP_SECONDS = 5
BEFORE_SECONDS, AFTER_SECONDS = 600, 900
GIB = 1024**3
FACTS = Facts(
    cluster=CLUSTER, archive_name=ARCHIVE_NAME, region="us-east-1", zones=3, replication_factor=3,
    retention_seconds=3 * 86_400, resync_within_seconds=600,
    pools=(Pool("broker", True, "r7g.2xlarge", 3, (Volume(4000, 6000, 200),)),),
)  # fmt: skip


@dataclass(frozen=True)
class Rotation:
    """One broker that is away for a while."""

    node_id: int
    stopped_at: float
    away_seconds: int
    append_bytes_per_s: float = 30e6
    copy_bytes_per_s: float = 200 * 1024**2
    held_bytes: float = 900.0 * GIB

    @property
    def pool(self) -> str:
        return f"broker-{'abc'[(self.node_id // 10 - 1) % 3]}"

    @property
    def pod(self) -> str:
        return f"{CLUSTER}-{self.pool}-{self.node_id}"


@dataclass(frozen=True)
class ExpectedReport:
    """What happened, by counting."""

    catch_up_seconds: int
    moved_bytes: float


def live(rotation: Rotation) -> tuple[dict[str, list[tuple[float, float]]], ExpectedReport]:
    """Run one rotation a second at a time; return its counters and what was true."""
    append = rotation.append_bytes_per_s
    produced = replicated = missing = moved = 0.0
    caught_up_after = 0
    is_back = True
    points: dict[str, list[tuple[float, float]]] = {
        "bytesin": [], "replicationbytesin": [], "short": []
    }  # fmt: skip
    for second in range(-BEFORE_SECONDS, rotation.away_seconds + AFTER_SECONDS):
        is_away = 0 <= second < rotation.away_seconds
        if second == 0:
            is_back = False
        if is_away:
            produced = replicated = 0.0
            missing += append
        elif not is_back:
            missing += append
            copied = min(missing, rotation.copy_bytes_per_s)
            missing -= copied
            moved += copied
            replicated += copied
            if missing < 1:
                is_back = True
                caught_up_after = second - rotation.away_seconds + 1
        else:
            # A third of its partitions it leads, the others it follows.
            produced += append / 3
            replicated += append * 2 / 3
        at = rotation.stopped_at + second
        if second % STEP_SECONDS == 0:
            if not is_away:
                points["bytesin"].append((at, produced))
                points["replicationbytesin"].append((at, replicated))
            points["short"].append((at, 0.0 if is_back else 50.0))
    return points, ExpectedReport(caught_up_after, moved)


def series(rotation: Rotation) -> Iterator[dict[str, Any]]:
    """Yield what Prometheus would remember of a rotation."""
    points, _ = live(rotation)
    own = {"cluster": CLUSTER, "pool_name": rotation.pool, "pod": rotation.pod}
    topic = "kafka_server_brokertopicmetrics"
    for name in ("bytesin", "replicationbytesin"):
        yield _series(f"{topic}_{name}persec_total", own, points[name])
        # One per topic stands beside a broker's own: twice the bytes, for who adds both up.
        yield _series(f"{topic}_{name}persec_total", {**own, "topic": "orders"}, points[name])
    size = [(at, rotation.held_bytes / 2) for at, _ in points["bytesin"]]
    for partition in "01":
        labels = {**own, "topic": "orders", "partition": partition}
        yield _series("kafka_log_log_size", labels, size)
    partitions = [(at, 600.0) for at, _ in points["bytesin"]]
    yield _series("kafka_server_replicamanager_partitioncount", own, partitions)
    for other in (1, 2):
        leader = {**own, "pod": f"{CLUSTER}-broker-z-{1000 + rotation.node_id * 10 + other}"}
        name = "kafka_server_replicamanager_underreplicatedpartitions"
        yield _series(name, leader, points["short"])
    claim = {"persistentvolumeclaim": f"data-0-{rotation.pod}"}
    yield _series("kubelet_volume_stats_used_bytes", claim, [size[0], size[-1]], 2.0)


def load(rotation: Rotation) -> Iterator[dict[str, Any]]:
    """Yield what the EBS driver counts of a broker's volume, quiet and steady."""
    labels = {"volume_id": f"vol-{rotation.node_id:017d}"}
    times = [rotation.stopped_at + second for second in range(-BEFORE_SECONDS, 0, STEP_SECONDS)]
    rates = {"read_ops": 50, "write_ops": 400, "read_bytes": 1e6, "write_bytes": 3e7}
    for name, rate in rates.items():
        points = [(at, rate * (at - times[0])) for at in times]
        yield _series(f"aws_ebs_csi_{name}_total", labels, points)


def _series(
    name: str, labels: dict[str, str], points: Sequence[tuple[float, float]], factor: float = 1.0
) -> dict[str, Any]:
    values = [[at, repr(value * factor)] for at, value in points]
    return {"metric": {"__name__": name, **labels}, "values": values}


def write_metrics(path: Path, result: Sequence[dict[str, Any]]) -> Path:
    """Write an answer of the range-query API."""
    answer = {"status": "success", "data": {"resultType": "matrix", "result": list(result)}}
    path.write_text(json.dumps(answer))
    return path


def write_history(folder: Path, rotations: Sequence[Rotation]) -> Path:
    """File each rotation as the sweep does."""
    for number, rotation in enumerate(rotations):
        incident = incident_of(rotation, f"i-{number:04d}")
        path = folder / archive_key(incident)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(archive_line(incident, ARCHIVE_NAME) + "\n")
    return folder


def incident_of(rotation: Rotation, instance_id: str) -> Incident:
    _, truth = live(rotation)
    back_at = rotation.stopped_at + rotation.away_seconds + truth.catch_up_seconds
    opened = Transition(rotation.stopped_at - 60, State.OPENED, "interruption", "announced")
    closed = Transition(back_at + 30, State.RELEASED, "tick", "gone")
    return Incident(
        id=instance_id, instance_id=instance_id, kind=Kind.ASG_TERMINATE, state=State.RELEASED,
        opened_at=opened.at, announced_at=opened.at, announcements=("a",),
        zone=f"us-east-1{rotation.pool[-1]}", pool="broker", node_id=rotation.node_id,
        forwarded=Forwarding(first_at=rotation.stopped_at, last_at=rotation.stopped_at),
        broker_back_at=back_at, transitions=(opened, closed),
    )  # fmt: skip


def at(month: int, day: int, hour: int = 9) -> float:
    return datetime(2026, month, day, hour, tzinfo=UTC).timestamp()
