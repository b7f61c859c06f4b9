"""Reads one KafkaRebalance and decides what comes next: propose, wait, approve, stop, or done.

Cruise Control moves the partitions, and Strimzi's operator speaks for it: a KafkaRebalance's state
is the type of its condition, and an annotation says what is wanted of it (KafkaRebalanceState and
KafkaRebalanceAnnotation, io.strimzi:api 1.2.0). A rotation and a rebalance never go on together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from core.availability.operator import NOT_READY, REBALANCING
from core.cost import economics
from core.cost.pricing import BYTES_PER_GIB, PriceBook
from core.ground.fields import epoch
from core.ground.naming import REBALANCE_TEMPLATE_ANNOTATION
from core.ground.words import listing, span

MIB = 1024**2
TOLD_SECONDS = 3600.0  # an end is told for so long, in case the first message about it got lost
Mode = Literal["add-brokers", "remove-brokers"]
PROPOSED, DONE, STOPPED = "ProposalReady", "Ready", "Stopped"


class Step(StrEnum):
    """What is to be done now; the words are those of the annotation `strimzi.io/rebalance`."""

    CREATE = "create"
    WAIT = "wait"
    APPROVE = "approve"
    STOP = "stop"
    REFRESH = "refresh"
    DONE = "done"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One KafkaRebalance; `moved_bytes` None: there is no proposal yet."""

    name: str
    state: str
    reason: str = ""
    mode: str = "full"
    brokers: tuple[int, ...] = ()
    throttle_bytes_per_s: int | None = None
    moved_bytes: int | None = None
    replicas: int = 0
    load_config_map: str | None = None
    uid: str = ""
    since: float | None = None

    def is_news(self, now: float) -> bool:
        """Say whether there may be something to tell: it goes on, or ended a moment ago."""
        return self.is_open or now - (self.since or 0.0) < TOLD_SECONDS

    @property
    def is_open(self) -> bool:
        """Say whether a person may want to know of it: it is neither done nor stopped."""
        return self.state not in {DONE, STOPPED}

    @property
    def sentence(self) -> str:
        """Say how far it is."""
        size = ""
        if self.moved_bytes is not None:
            size = f", {self.replicas} replicas, {self.moved_bytes / BYTES_PER_GIB:,.1f} GiB"
        why = f": {self.reason}" if self.reason else ""
        return f"KafkaRebalance {self.name}: {self.state}{size}{why}"


def read_rebalance(item: Mapping[str, Any]) -> Rebalance | None:
    """Read a KafkaRebalance, None of a template; raises what a wrong shape raises."""
    if (item["metadata"].get("annotations") or {}).get(REBALANCE_TEMPLATE_ANNOTATION) == "true":
        return None
    spec, status = item.get("spec") or {}, item.get("status") or {}
    held = [each for each in status.get("conditions") or () if each.get("status") == "True"]
    condition = held[0] if held else {"type": "New"}
    result = status.get("optimizationResult") or {}
    moved = result.get("dataToMoveMB")
    return Rebalance(
        name=str(item["metadata"]["name"]),
        state=str(condition["type"]),
        reason=str(condition.get("message") or ""),
        mode=str(spec.get("mode") or "full"),
        brokers=tuple(spec.get("brokers") or ()),
        throttle_bytes_per_s=spec.get("replicationThrottle"),
        moved_bytes=None if moved is None else int(moved) * MIB,
        replicas=int(result.get("numReplicaMovements") or 0),
        load_config_map=result.get("afterBeforeLoadConfigMap"),
        uid=str(item["metadata"].get("uid") or ""),
        since=epoch(condition.get("lastTransitionTime")),
    )


def next_step(found: Rebalance | None, *, rotating: bool, agreed: bool) -> Step:
    """Return what to do with a rebalance; `rotating`: a rotation run goes on."""
    if found is None:
        return Step.WAIT if rotating else Step.CREATE
    steps = {
        DONE: Step.DONE,
        NOT_READY: Step.FAIL,
        REBALANCING: Step.STOP if rotating else Step.WAIT,
        STOPPED: Step.WAIT if rotating else Step.REFRESH,
        PROPOSED: Step.APPROVE if agreed and not rotating else Step.WAIT,
    }
    return steps.get(found.state, Step.WAIT)


def told(found: Rebalance, book: PriceBook) -> Iterator[str]:
    """Yield what is said of a rebalance: how far it is, and of a proposal what it comes to."""
    yield f"{found.sentence}."
    if found.state == PROPOSED:
        yield from plan(found, book)


def plan(
    found: Rebalance,
    book: PriceBook,
    after_bytes: Mapping[int, float] | None = None,
    disk_bytes: Mapping[int, float] | None = None,
) -> Iterator[str]:
    """Yield a proposal as a person reads it: brokers, bytes, hours, dollars, disks.

    `after_bytes` are those on each broker's disks afterwards, `disk_bytes` their sizes.
    """
    moved = found.moved_bytes or 0
    verb = {"add-brokers": "onto brokers", "remove-brokers": "off brokers"}.get(found.mode)
    where = f" {verb} {listing(list(map(str, found.brokers)))}" if verb else ""
    yield f"{found.replicas} replicas with {moved / BYTES_PER_GIB:,.1f} GiB move{where}."
    if found.throttle_bytes_per_s and found.brokers:
        seconds = moved / found.throttle_bytes_per_s / len(found.brokers)
        rate = found.throttle_bytes_per_s / MIB
        yield f"That takes about {span(seconds)}, with {rate:,.0f} MiB/s for each of them."
    elif not found.throttle_bytes_per_s:
        yield "No throttle is set: clients share the network and the disks with it."
    if book.find("inter_zone_gib") is None:
        yield f"The cost between zones is unknown: {book.unknown(['inter_zone_gib'])}"
    else:
        usd = economics.crossing_usd(moved, book).quantize(Decimal("0.01"))
        yield f"Traffic between zones costs {usd:,} USD at most."
    filled = {
        broker: used / size
        for broker, used in (after_bytes or {}).items()
        if (size := (disk_bytes or {}).get(broker))
    }
    if filled:
        fullest = max(filled, key=lambda broker: filled[broker])
        yield f"Afterwards broker {fullest} has the fullest disks, {filled[fullest]:.0%}."


def disk_after(load: str) -> dict[int, float]:
    """Read Strimzi's brokerLoad.json: broker -> bytes afterwards; empty where it is none."""
    try:
        return {
            int(broker): float(each["diskUsedMB"]["after"]) * MIB
            for broker, each in json.loads(load).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
