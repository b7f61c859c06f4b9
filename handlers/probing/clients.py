"""Produces and reads back as any application does: acks=all, retries, one topic, no group.

What a client library hides from an application is hidden from the probe, too: a leader that moves
is a retry, and no failed attempt as long as it ends in time.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from aws_lambda_powertools import Logger
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from handlers.probing.attempts import Attempts

logger = Logger(service="stillwater", child=True)
PERIOD_SECONDS = 1.0
POLL_MS = 250
# Attempts that no client came to send; they fail by their own time limit.
MOST_WAITING = 1000


class Clients:
    """A producer and a consumer over the partitions of every broker."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        partitions: Mapping[int, int],
        attempts: Attempts,
        limit_seconds: float,
    ) -> None:
        self._topic, self._partitions, self._attempts = topic, partitions, attempts
        self._brokers = {partition: broker for broker, partition in partitions.items()}
        # Records of a probe before this one are not ours.
        self._run = f"{time.time():.3f}"
        self._waiting: queue.Queue[tuple[int, int]] = queue.Queue(MOST_WAITING)
        limit_ms = int(limit_seconds * 1000)
        self._producer = KafkaProducer(
            **settings,
            acks="all",
            enable_idempotence=False,
            request_timeout_ms=limit_ms,
            delivery_timeout_ms=limit_ms,
            max_block_ms=limit_ms,
        )
        self._consumer = KafkaConsumer(**settings, group_id=None, enable_auto_commit=False)
        mine = [TopicPartition(topic, partition) for partition in self._brokers]
        self._consumer.assign(mine)
        self._consumer.seek_to_end(*mine)
        # Asked now: what is produced from here on is read.
        for each in mine:
            self._consumer.position(each)

    def start(self) -> None:
        """Send and read in threads of their own, which end with the process."""
        for work in (self._send, self._read):
            threading.Thread(target=work, daemon=True, name=work.__name__).start()

    def attempt(self, number: int, now: float) -> None:
        """Begin an attempt with every broker."""
        for broker in self._partitions:
            self._attempts.begin(broker, number, now)
            try:
                self._waiting.put_nowait((broker, number))
            except queue.Full:
                logger.warning("An attempt waits for nobody to send it.", broker=broker)

    def _send(self) -> None:
        while True:
            broker, number = self._waiting.get()
            try:
                sent = self._producer.send(
                    self._topic,
                    value=f"{self._run} {number}".encode(),
                    partition=self._partitions[broker],
                )
            except KafkaError as error:
                logger.warning("A record was not taken.", broker=broker, error=repr(error))
                continue
            sent.add_callback(partial(self._on_acknowledgement, broker, number))
            sent.add_errback(partial(self._on_refusal, broker))

    def _on_acknowledgement(self, broker: int, number: int, _metadata: Any) -> None:
        self._attempts.note_acked(broker, number, time.monotonic())

    @staticmethod
    def _on_refusal(broker: int, error: BaseException) -> None:
        logger.warning("A record was not acknowledged.", broker=broker, error=repr(error))

    def _read(self) -> None:
        while True:
            try:
                found = self._consumer.poll(timeout_ms=POLL_MS)
            except KafkaError as error:
                logger.warning("Nothing was read.", error=repr(error))
                continue
            now = time.monotonic()
            for record in (each for records in found.values() for each in records):
                run, _, number = record.value.decode(errors="replace").partition(" ")
                if run == self._run and number.isdecimal():
                    self._attempts.read(self._brokers[record.partition], int(number), now)


def run(
    attempt: Callable[[int, float], None],
    attempts: Attempts,
    over: Callable[[], bool],
    pause: Callable[[float], Any] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Begin an attempt a second until it is over; none is left out because one was slow."""
    number, due = 0, clock()
    while not over():
        while due <= clock():
            attempt(number, due)
            number, due = number + 1, due + PERIOD_SECONDS
        attempts.expire(clock())
        pause(max(0.0, due - clock()))


def brokers_changed(known: Iterable[int], now: Iterable[int]) -> bool:
    """Say whether a broker has joined that no partition is led by."""
    return not set(now) <= set(known)
