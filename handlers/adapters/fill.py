"""Asks the brokers how full their volumes are: DescribeLogDirs.

Since KIP-827 a broker tells the size of the file system below a log directory and what is free of
it. That needs no agent and no Prometheus; controllers, which are no brokers, do not tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kafka.errors import KafkaError

from core.availability.wholeness import KafkaRequest
from handlers.adapters.calls import known_shape
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_reading import (
    Wire,
    brokers_there,
    log_dirs_request,
    raise_where_refused,
)

# Strimzi mounts volume n of every node there.
LOG_DIRECTORY = re.compile(r"/var/lib/kafka/data-(?P<number>\d+)/")


@dataclass(frozen=True, slots=True)
class FillView:
    """What one log directory holds; the file system's figures where the broker tells them."""

    logs_bytes: int
    total_bytes: int | None = None
    usable_bytes: int | None = None

    def used_bytes(self, volume_bytes: int) -> int:
        """Return what is used of a volume.

        The file system's word, where it is the volume's own: one of another size is not, as for
        logs in a directory beside other things; then the logs alone count.
        """
        if self.total_bytes is None or self.usable_bytes is None:
            return self.logs_bytes
        if not 0.8 * volume_bytes <= self.total_bytes <= 1.05 * volume_bytes:
            return self.logs_bytes
        # What a file system keeps for itself is gone as well: it is missing from the total.
        return volume_bytes - self.usable_bytes


class Fills(Protocol):
    """What λ volumes asks of Kafka."""

    def fills(self) -> Mapping[tuple[int, int], FillView]:
        """Return what every broker's volumes hold, by node id and volume number."""


class KafkaFills(KafkaAdmin):
    """Asks every broker that is there."""

    @known_shape("Kafka")
    def fills(self) -> Mapping[tuple[int, int], FillView]:
        return self._ask(_fills)


def _fills(wire: Wire) -> Mapping[tuple[int, int], FillView]:
    found = {}
    ids = brokers_there(wire)
    answers = wire.ask_each([(broker_id, log_dirs_request()) for broker_id in ids])
    for broker_id, answer in zip(ids, answers, strict=True):
        if isinstance(answer, KafkaError):
            continue  # one that is frozen says nothing of its fill, and is another alert's
        raise_where_refused(answer.error_code, KafkaRequest.DESCRIBE_LOG_DIRS)
        # A directory that failed says nothing of its fill either.
        for each in (d for d in answer.results if not d.error_code):
            named = LOG_DIRECTORY.search(f"{each.log_dir}/")
            if named is not None:
                found[broker_id, int(named["number"])] = _fill(each)
            elif len(answer.results) == 1:
                # Mounted elsewhere, as on the twin: one directory is the one volume.
                found[broker_id, 0] = _fill(each)
    return found


def _fill(directory: Any) -> FillView:
    logs = sum(
        partition.partition_size for topic in directory.topics for partition in topic.partitions
    )
    total, usable = directory.total_bytes, directory.usable_bytes
    if total is None or usable is None or total < 0 or usable < 0:
        return FillView(logs)
    return FillView(logs, total, usable)
