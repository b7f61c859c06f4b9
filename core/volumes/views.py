"""Holds what is seen of the volumes and what a policy allows: all that a decision rests on.

Strimzi sizes volumes by pool: a KafkaNodePool's entry is one size and one class for the claims of
all its nodes. So the unit of every decision is that entry, a set of volumes; the fullest, the
busiest and the one with the fewest modifications left speak for all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from core.volumes.forecast import FillForecast
from core.volumes.ledger import History
from core.volumes.limits import INCLUDED, Gp3, Performance
from core.volumes.policy import Policy


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour of a volume's load, at its highest."""

    at: float
    iops: float
    bytes_per_s: float
    exceeded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked of a volume; None is what nobody measured."""

    # Shares of the last minutes in which more was asked than the volume, or its instance, gives.
    volume_exceeded_share: float | None = None
    instance_exceeded_share: float | None = None
    iops_p999: float | None = None
    bytes_per_s_p999: float | None = None
    # What is on record of the hours before.
    hours: tuple[Hour, ...] = ()


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a volume, as a sentence, and what to do about it."""

    kind: str
    sentence: str
    remedy: str
    # Whether nothing may be changed before it is mended.
    blocks: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeView:
    """One claim of a set, its EBS volume, and where it is attached."""

    claim: str
    pod: str
    volume_id: str
    # EC2's word for it.
    actual: Gp3
    # The claim's: asked for, and given.
    requested_gib: int
    given_gib: int
    wanted_class: str
    given_class: str
    instance_type: str | None
    history: History
    forecast: FillForecast | None = None
    load: Load = field(default_factory=Load)
    # What Kubernetes or EC2 says is wrong with it: (what, remedy).
    troubles: tuple[Trouble, ...] = ()

    @property
    def held_gib(self) -> int:
        """Return the largest size that its claim or EC2 says it has, or is to get."""
        return max(self.requested_gib, self.given_gib, self.actual.size_gib)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAbsence:
    """A broker of the set that is about to be away, and what it has to catch up with."""

    pod: str
    append_bytes_per_s: float
    away_seconds: float
    over: bool = False
    # How many nodes of the set are still to go; they catch up one after another.
    nodes: int = 1
    # On how many earlier departures `away_seconds` rests; 0: on none, it is assumed.
    measured: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeSet:
    """The volumes of one number of one KafkaNodePool."""

    pool: str
    number: int
    # As the KafkaNodePool asks for them now, and as the ClusterSpec does: it is never less.
    asked: Gp3
    spec: Gp3
    volumes: tuple[VolumeView, ...]
    policy: Policy
    # The other volumes of its nodes.
    beside: tuple[Performance, ...] = ()
    rotation: BrokerAbsence | None = None
    # Classes that exist, by what they give; None: nobody asked which.
    classes: frozenset[Performance] | None = None
    # Somebody's reason to leave it alone; empty where there is none.
    frozen: str = ""
    # Strimzi's sentence, where its operator ignores changes of the pool's storage.
    ignored: str = ""
    # Whether a Prometheus is asked of them, beside brokers and CloudWatch.
    prometheus: bool = False

    @property
    def name(self) -> str:
        return f"volume {self.number} of pool {self.pool}"

    @property
    def held_gib(self) -> int:
        return max((volume.held_gib for volume in self.volumes), default=0)

    @property
    def floor(self) -> Performance:
        return self.spec.performance if self.spec.performance.covers(INCLUDED) else INCLUDED
