"""The results of parsing: what was announced about which instance, volume, zone or group."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypedDict

from core.ground.fields import LONGEST_FIELD, Fields, digest, display_text, epoch, readable, text

# The clocks of AWS's services and of Lambda's machines, which keep time by NTP.
CLOCKS_APART_SECONDS = 300.0


class Kind(StrEnum):
    """What was announced about an instance; one decision per kind (docs/reference/announcements).

    VOLUME_PROBLEM is announced about a volume; it becomes one of the instance the volume is on.
    ROTATION is said by a run of ours (core.rotation.run_record), SICK_NODE by the sweep
    (core.incidents.sweep), EVICTION by whoever drains in the cluster (core.gate), none of them
    ever by AWS.

    A later one governs an earlier one: what was planned becomes a termination, what was a
    termination becomes a two-minute warning.
    """

    ASG_LAUNCH = "asg_launch"
    STATE_CHANGE = "state_change"
    REBALANCE = "rebalance"
    EVICTION = "eviction"
    INSTANCE_ISSUE = "instance_issue"
    INSTANCE_STORE_DEGRADED = "instance_store_degraded"
    VOLUME_PROBLEM = "volume_problem"
    SCHEDULED_CHANGE = "scheduled_change"
    SICK_NODE = "sick_node"
    ROTATION = "rotation"
    ASG_TERMINATE = "asg_terminate"
    CAPACITY_RESERVATION = "capacity_reservation"
    SPOT_INTERRUPTION = "spot_interruption"


# The machine goes in minutes: nobody waits for another one first.
URGENT = frozenset({Kind.SPOT_INTERRUPTION, Kind.CAPACITY_RESERVATION})
# Something is wrong with the machine, which stays: whatever else is announced, it is not over.
ISSUES = frozenset({Kind.INSTANCE_ISSUE, Kind.INSTANCE_STORE_DEGRADED, Kind.VOLUME_PROBLEM})


class ZoneSource(StrEnum):
    """Who said something about a zone."""

    AUTOSHIFT = "autoshift"  # AWS moves traffic away; a FIS experiment plays the same
    MANUAL_SHIFT = "manual_shift"  # somebody of the account does
    PRACTICE_RUN = "practice_run"  # a rehearsal, which says nothing about the zone's health
    HEALTH_ISSUE = "health_issue"


class VolumeChange(StrEnum):
    """What happened to an EBS volume."""

    LOST = "lost"
    DEGRADED = "degraded"
    IMPAIRED = "impaired"  # a Health issue of another code
    STALLED_IO = "stalled_io"
    ATTACH_FAILED = "attach_failed"
    CREATE_FAILED = "create_failed"
    MODIFICATION_STARTED = "modification_started"  # `optimizing`: the new size is usable already
    MODIFICATION_COMPLETED = "modification_completed"
    MODIFICATION_FAILED = "modification_failed"

    @property
    def harmful(self) -> bool:
        """Say whether a broker on this volume is in danger."""
        return self in _HARMFUL


_HARMFUL = frozenset(
    {
        VolumeChange.LOST,
        VolumeChange.DEGRADED,
        VolumeChange.IMPAIRED,
        VolumeChange.STALLED_IO,
        VolumeChange.ATTACH_FAILED,
    }
)


class GroupChange(StrEnum):
    """What an Auto Scaling group did, or could not do."""

    LAUNCHED = "launched"
    LAUNCH_FAILED = "launch_failed"
    TERMINATED = "terminated"
    TERMINATE_FAILED = "terminate_failed"
    REFRESH_STARTED = "refresh_started"
    REFRESH_CHECKPOINT = "refresh_checkpoint"
    REFRESH_SUCCEEDED = "refresh_succeeded"
    REFRESH_FAILED = "refresh_failed"
    REFRESH_CANCELLED = "refresh_cancelled"
    ROLLBACK_STARTED = "rollback_started"
    ROLLBACK_SUCCEEDED = "rollback_succeeded"
    ROLLBACK_FAILED = "rollback_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Announced:
    """What every announcement says about itself."""

    event_id: str
    # Equal for duplicates and for other deliveries of the same announcement. The two hooks of a
    # terminating instance are two announcements: each has its own lifecycle token.
    dedupe_key: str
    account: str | None
    region: str | None
    occurred_at: float | None  # epoch seconds
    body: str  # the EventBridge or bare ASG JSON as received, unwrapped from SNS: what NTH reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption(_Announced):
    """One announcement about one instance."""

    kind: Kind
    instance_id: str
    group: str | None = None
    hook: str | None = None
    lifecycle_token: str | None = None
    instance_state: str | None = None  # state changes
    event_type: str | None = None  # Health: its eventTypeCode; a volume's problem: what it is
    due_at: float | None = None  # epoch seconds: Health's start, a reservation's end
    party: str | None = None  # a run's: whose nodes may be out together (core.availability.lease)
    image_id: str | None = None  # a run's: what the root volume is replaced with, in place
    ahead: bool = False  # a run's: only its replacement is to be made ready, its turn comes later
    disruption: str | None = None  # Karpenter's: why it ends the node (core.incidents.learn)
    # Epoch seconds: Health's last word, so that an older update which comes late moves nothing.
    updated_at: float | None = None
    closed: bool = False  # Health: called off or done
    # What all words about one event share: Health's ARN, or EC2's id where its list says so.
    health_event: str | None = None

    def announced_at(self, now: float) -> float:
        """Return when AWS said it; a clock ahead of ours must not postpone a heartbeat."""
        return now if self.occurred_at is None else min(self.occurred_at, now)

    def said_at(self, now: float) -> float:
        """Return when AWS last said something about what it schedules.

        A clock ahead of ours orders its own words; one that is wrong must not outlive the mistake.
        """
        if self.updated_at is None:
            return self.announced_at(now)
        return min(self.updated_at, now + CLOCKS_APART_SECONDS)

    def is_outdated(self, known_at: float | None, now: float) -> bool:
        """Say whether a word about a schedule is older than the one known."""
        if known_at is None:
            return False
        said_at = self.said_at(now)
        # Of two words of one moment the end counts: it is not followed by a beginning.
        return said_at < known_at or (said_at == known_at and not self.closed)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeNotice(_Announced):
    """One announcement about one EBS volume."""

    volume_id: str
    change: VolumeChange
    cause: str = ""  # AWS's words, where it has any
    instance_id: str | None = None  # where AWS names the instance beside the volume
    event_type: str | None = None  # Health's eventTypeCode, or the alarm's name
    over: bool = False  # the problem has ended: Health closed it, the alarm is OK again


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneNotice(_Announced):
    """One announcement about Availability Zones: that one is in trouble, or that it is over.

    AWS names a zone by its id, which is the same in every account; which of the account's zone
    names that is must be asked (DescribeAvailabilityZones). What is told to an account alone may
    use its name instead, until it is heard (handlers.incidents.desk). A word of Health's may
    name no zone, as its last one often does, or several: who hears it knows the event by `key`.
    """

    key: str  # what all words about one trouble share: Health's eventArn, ARC's shift
    zone_ids: tuple[str, ...]  # in trouble, or shifted away from: use1-az1
    over: bool  # it has ended; otherwise it began, or goes on
    source: ZoneSource
    healthy_ids: tuple[str, ...] = ()  # zones the same word calls healthy
    # Epoch seconds: AWS's own time of this word, by which an older one is recognised.
    updated_at: float | None = None
    until: float | None = None  # epoch seconds; None: until its end is announced
    resource: str | None = None  # the load balancer or group that is shifted, where one is
    event_type: str | None = None  # the detail-type, or Health's eventTypeCode
    said: str = ""  # the beginning of AWS's text, where it has one


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNotice(_Announced):
    """What an Auto Scaling group says it did, or could not do."""

    group: str
    what: GroupChange
    instance_id: str | None = None
    zone: str | None = None  # a zone's name
    cause: str = ""  # AWS's words: why the group did it, or why it could not
    activity_id: str | None = None  # of the scaling activity or the instance refresh

    @property
    def sentence(self) -> str:
        return f"{self.group}: {self.what.value}. {self.cause}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory(_Announced):
    """Something a person must hear of, which no rule answers; told once for each key.

    `subjects` are what it names, as it names them; empty: nobody in particular.
    """

    sentence: str
    subjects: tuple[str, ...] = ()
    due_at: float | None = None  # epoch seconds: when AWS acts, where it says so


@dataclass(frozen=True, slots=True)
class Ignored:
    """A message that asks for nothing, with the reason in a sentence."""

    reason: str
    body: str


Announcement = Interruption | VolumeNotice | ZoneNotice | GroupNotice | Advisory


class Identity(TypedDict):
    """The fields of an announcement that come from its frame."""

    event_id: str
    account: str | None
    region: str | None
    occurred_at: float | None
    body: str


@dataclass(frozen=True)
class Envelope:
    """One message: its frame, its detail (of a bare lifecycle action: itself), its bytes."""

    frame: Fields
    detail: Fields
    body: str

    @cached_property
    def source(self) -> str | None:
        return text(self.frame, "source")

    @cached_property
    def detail_type(self) -> str | None:
        return text(self.frame, "detail-type")

    @cached_property
    def event_id(self) -> str:
        """Return EventBridge's id, a direct notification's request, or a digest of the bytes."""
        return text(self.frame, "id") or text(self.detail, "RequestId") or digest(self.body)

    @property
    def identity(self) -> Identity:
        return Identity(
            event_id=self.event_id,
            account=text(self.frame, "account") or text(self.detail, "AccountId"),
            region=text(self.frame, "region"),
            occurred_at=epoch(self.frame.get("time", self.frame.get("Time"))),
            body=self.body,
        )

    @property
    def resources(self) -> tuple[str, ...]:
        """Return the resources named; a reservation's warning names its one as plain text."""
        named = self.frame.get("resources")
        listed = named if isinstance(named, list) else [named]
        return tuple(readable(v)[:LONGEST_FIELD] for v in listed if isinstance(v, str))

    @property
    def name(self) -> str:
        """Name the message by its source and detail-type, to start a sentence."""
        if self.source is None and self.detail_type is None:
            return "A message without source and detail-type"
        return f"The event {display_text(self.detail_type)} of source {display_text(self.source)}"

    def ignored(self, reason: str) -> Ignored:
        return Ignored(reason, self.body)

    def says(self, what: str) -> Ignored:
        """Ignore the message for what it says or lacks: the sentence begins with its name."""
        return Ignored(f"{self.name} {what}", self.body)
