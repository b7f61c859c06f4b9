"""Three zones with one broker each, ids 10, 20, 30, and their Kafka when all of it is well."""

from core.views import ClusterView, PartitionView
from tests.unit.views import kafka_view

# A test that wants two brokers to a zone adds the second ones.
ZONES = {10: "us-east-1a", 20: "us-east-1b", 30: "us-east-1c"}


def healthy_kafka(*, out: int | tuple[int, ...] = ()) -> ClusterView:
    """Return three brokers and three controllers; who is `out` is fenced and in no ISR."""
    gone = frozenset({out} if isinstance(out, int) else out)
    alive = tuple(b for b in ZONES if b not in gone)
    return kafka_view(
        ZONES,
        *(
            PartitionView(topic, p, in_sync[0], replicas, in_sync, 2)
            for topic, row in _topics().items()
            for p in range(3)
            if (replicas := _rotate_row(row, p))
            if (in_sync := tuple(b for b in replicas if b in alive))
        ),
        fenced=gone,
    )


def _rotate_row(row: tuple[int, ...], number: int) -> tuple[int, ...]:
    """Let each broker of a row be preferred in turn, where there are two to a zone."""
    start = number % len(row) if len(ZONES) > 3 else 0
    return row[start:] + row[:start]


def _topics() -> dict[str, tuple[int, ...]]:
    """A topic over the first broker of each zone, another over the second of each."""
    names = {0: "t", 1: "second"}
    return {names[n]: row for n in names if (row := tuple(b for b in sorted(ZONES) if b % 10 == n))}
