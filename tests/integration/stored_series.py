"""What kubelets, EBS driver and probe would have been scraped of, put into Prometheus's storage.

The twin has neither, so promtool writes the blocks: two days of room by the hour and an hour of
both by the minute. Nothing has to be waited for, and Prometheus reads them as it reads its own.
"""

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.settings.prometheus import ATTEMPTS, FAILED
from local.tools.build import tool_path

GIB, MIB, HOUR, MINUTE = 1024**3, 1024**2, 3600, 60
# What a second of each of the driver's counters adds to it.
RATES = {
    "exceeded_iops_seconds": 0.0,
    "exceeded_tp_seconds": 0.25,
    "ec2_exceeded_iops_seconds": 0.0,
    "ec2_exceeded_tp_seconds": 0.0,
    "read_ops": 100.0,
    "write_ops": 900.0,
    "read_bytes": 10.0 * MIB,
    "write_bytes": 90.0 * MIB,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A claim as its kubelet tells of it; the file system keeps a GiB for itself."""

    claim: str
    used_gib: int
    size_gib: int = 100
    cluster: str = "prod"

    def bytes_of(self, metric: str) -> int:
        taken = {"capacity": 1, "available": 1 + self.used_gib}[metric]
        return (self.size_gib - taken) * GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """A volume as the EBS driver's node tells of it."""

    volume_id: str
    rates: Mapping[str, float] = field(default_factory=lambda: RATES)
    cluster: str = "prod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """What the probe of a Kafka cluster counts in a second."""

    cluster: str
    attempts: float
    failed: float


def exposition(
    now: int, rooms: Iterable[Room], loads: Iterable[Busy], probes: Iterable[Attempted] = ()
) -> Iterator[str]:
    """Yield the series as OpenMetrics, a metric after the other."""
    hours = range(now - 48 * HOUR, now - HOUR, HOUR)
    minutes = range(now - HOUR, now + 1, MINUTE)
    rooms, loads = list(rooms), list(loads)
    for name in ("capacity", "available"):
        metric = f"kubelet_volume_stats_{name}_bytes"
        yield f"# TYPE {metric} gauge"
        for room in rooms:
            named = f'namespace="kafka",persistentvolumeclaim="{room.claim}"'
            series = f'{metric}{{cluster="{room.cluster}",{named}}} {room.bytes_of(name)}'
            yield from (f"{series} {at}" for at in (*hours, *minutes))
    for name in RATES:
        metric = f"aws_ebs_csi_{name}"
        yield f"# TYPE {metric} counter"
        for busy in loads:
            if name not in busy.rates:
                continue
            named = f'instance_id="i-1",volume_id="{busy.volume_id}"'
            series = f'{metric}_total{{cluster="{busy.cluster}",{named}}}'
            rate = busy.rates[name]
            yield from (f"{series} {rate * (at - minutes[0])} {at}" for at in minutes)
    probes = list(probes)
    for total, rates in (
        (ATTEMPTS, [probe.attempts for probe in probes]),
        (FAILED, [probe.failed for probe in probes]),
    ):
        yield f"# TYPE {total.removesuffix('_total')} counter"
        for probe, rate in zip(probes, rates, strict=True):
            series = f'{total}{{namespace="kafka",cluster="{probe.cluster}"}}'
            yield from (f"{series} {rate * (at - minutes[0])} {at}" for at in minutes)
    yield "# EOF"


def store(home: Path, lines: Iterable[str]) -> list[str]:
    """Write series below a directory; return the command that serves them, but for its address."""
    scraped, config = home / "scraped.om", home / "prometheus.yml"
    scraped.write_text("\n".join(lines) + "\n")
    config.write_text("scrape_configs: []\n")
    blocks = ["tsdb", "create-blocks-from", "openmetrics", str(scraped), str(home / "data")]
    made = subprocess.run(
        [tool_path("promtool"), *blocks], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return [
        str(tool_path("prometheus")),
        f"--config.file={config}",
        f"--storage.tsdb.path={home / 'data'}",
    ]
