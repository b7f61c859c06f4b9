"""Describes how a cluster is operated: who is told, when planned work may be done, every timeout.

The functions' memory is as the spec says, or as its brokers ask for.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from core.cluster.fields import EachOnce, Frozen, Seconds, is_loopback
from core.ground.constants import CONTROLLED_SHUTDOWN_SECONDS, RUNBOOKS
from core.ground.window import Window

if TYPE_CHECKING:
    from core.cluster.spec import ClusterSpec


# RFC 5321, section 4.5.3.1.
LOCAL_PART_LIMIT, ADDRESS_LIMIT = 64, 254
# What SNS takes is ASCII alone: words with single dots between them, and a host of two parts.
_WORD = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_PART = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = re.compile(rf"(?P<local>{_WORD}(\.{_WORD})*)@({_PART}\.)+(?!\d+$){_PART}")


def _email_address(value: str) -> str:
    found = _EMAIL.fullmatch(value)
    if found is None:
        raise ValueError(
            f"{value!r} is not an email address that SNS takes; write one such as "
            "oncall@example.org"
        )
    if len(found["local"]) > LOCAL_PART_LIMIT or len(value) > ADDRESS_LIMIT:
        raise ValueError(
            f"{value!r} is longer than mail goes, {LOCAL_PART_LIMIT} characters before the @ and "
            f"{ADDRESS_LIMIT} in all; name a shorter one"
        )
    return value


EmailAddress = Annotated[str, AfterValidator(_email_address)]
TopicArn = Annotated[
    str, StringConstraints(pattern=r"^arn:aws:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$")
]


# RFC 3986 has none of these signs, and Prometheus reads {{ as the beginning of an expression.
_NEVER = r"\s\x00-\x1f\x7f\"<>\\^`{|}\ufffe\uffff"
PageAddress = Annotated[
    str, StringConstraints(pattern=rf"^[^{_NEVER}]+[^/{_NEVER}]$", max_length=400)
]


class Alerts(Frozen):
    """CloudWatch's alarms, which watch what Prometheus cannot: the toolkit itself."""

    enabled: bool = True
    """Whether alarms are made at all."""
    email: Annotated[tuple[EmailAddress, ...], Field(max_length=20), EachOnce] = ()
    """Addresses to tell; AWS asks each once whether it wants to hear."""
    sns_topic_arn: TopicArn | None = None
    """A topic that exists already, in this region, whose policy lets CloudWatch publish; null: one
    is made, encrypted with a key of its own.
    """
    runbooks_url: PageAddress = RUNBOOKS
    """Put before `/<page>.md` in every alarm and alert, whose descriptions have 1,024 characters:
    where your people read docs/runbooks.
    """

    @field_validator("runbooks_url")
    @classmethod
    def _leads_to_a_page(cls, value: str) -> str:
        scheme, colon, rest = value.partition(":")
        if colon and "/" not in scheme:
            on_the_web = scheme.lower() in {"http", "https"} and re.match(r"//[^/:?#]", rest)
            if not on_the_web:
                raise ValueError(f"{value} is not the address of a page; write https:// or a path")
        return value

    def elsewhere(self, region: str) -> list[str]:
        """Return a clause, without the full stop, where the topic is of another region."""
        topic = self.sns_topic_arn
        if topic is None or topic.split(":")[3] == region:
            return []
        problem = (
            f"alerts.sns_topic_arn {topic} is in {topic.split(':')[3]}, and an alarm of {region} "
            f"may only tell a topic of {region}; name one there"
        )
        return [problem]

    @model_validator(mode="after")
    def _subscribers_need_our_topic(self) -> Self:
        if self.sns_topic_arn is not None and self.email:
            raise ValueError(
                "email needs a topic that is made here, and sns_topic_arn names "
                f"{self.sns_topic_arn}; subscribe the addresses there, or remove one of the two"
            )
        return self


# Slack's id of a channel, at the end of its "About" page: names can be changed, ids cannot.
ChannelId = Annotated[str, StringConstraints(pattern=r"^[CG][A-Z0-9]{8,20}$")]
SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9/_+=.@-]{1,512}$")]
_URL = re.compile(r"https?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?(?:/[\w.~-]+)*/")


def _is_an_api(value: str) -> str:
    """Return a URL that a token may be sent to."""
    if _URL.fullmatch(value) is None:
        raise ValueError(
            f"{value!r} is no address of an API; write https://, a host, a path and a slash at its "
            f"end, such as https://slack.com/api/"
        )
    parts = urlsplit(value)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError(f"{value} sends the bot's token in clear text; write https://")
    return value


ApiUrl = Annotated[str, Field(max_length=200), AfterValidator(_is_an_api)]


class Slack(Frozen):
    """The channel, and the Secrets Manager secret that holds the app's bot token."""

    channel: ChannelId
    """Slack's id of the channel, at the end of its "About" page."""
    secret_name: SecretName
    """The Secrets Manager secret, under AWS's own key, that holds the app's bot token alone."""
    api_url: ApiUrl = "https://slack.com/api/"
    """Slack's Web API; GovSlack's is `https://slack-gov.com/api/`."""


Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class Maintenance(Frozen):
    """The window for what can wait: rotations, and nodes that AWS will take later."""

    days: Annotated[tuple[Day, ...], Field(min_length=1), EachOnce] = (
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
    )
    """The days on which it opens, in UTC."""
    start_utc: Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    """When it opens, as in 03:00."""
    duration_minutes: Annotated[int, Field(ge=30, le=1440)] = 120
    """How long it stays open; a replacement that has begun is not stopped at its end."""

    @property
    def start_minute(self) -> int:
        """Return when it opens, in minutes after midnight."""
        hours, _, minutes = self.start_utc.partition(":")
        return int(hours) * 60 + int(minutes)

    @property
    def window(self) -> Window:
        """Return the window as decisions know it."""
        return Window(
            days=frozenset(self.days),
            start_minute=self.start_minute,
            duration_minutes=self.duration_minutes,
        )


class Timings(Frozen):
    """Every timeout in the system; core.timing holds the inequalities between them."""

    # Kafka.
    controlled_shutdown_seconds: Seconds = CONTROLLED_SHUTDOWN_SECONDS
    """How long a stopping broker takes at most to hand over its leaders (KafkaBroker.shutdown)."""
    pod_grace_seconds: Seconds = 330
    """How long a Kafka pod has between SIGTERM and SIGKILL."""
    broker_session_timeout_seconds: Seconds = 9
    """How long the controllers wait for a broker's heartbeat before they fence it."""
    broker_heartbeat_interval_seconds: Seconds = 2
    """How often a broker sends it."""
    post_condition_hold_seconds: Seconds = 30
    """How long a broker must have been back in every ISR before it counts as back."""
    post_condition_wait_seconds: Seconds = 1800
    """How long its return may take before its old instance is retained and a page is sent."""
    broker_connections_max_idle_seconds: Seconds = 240
    """When a broker closes an idle connection."""
    client_connections_max_idle_seconds: Seconds = 240
    """When a client does: Connect's workers are set to it, yours should be."""
    node_shutdown_seconds: Seconds = 420
    """How long a node that shuts down waits for its pods; kubelet's shutdownGracePeriod."""
    # Node termination handler.
    nth_drain_timeout_seconds: Seconds = 420
    """How long a node's drain may take."""
    nth_visibility_timeout_seconds: Annotated[int, Field(ge=1, le=119)] = 110
    """When a message that NTH works on is delivered again; NTH asks for fewer than 120."""
    nth_max_receive_count: Annotated[int, Field(ge=1, le=1000)] = 40
    """Deliveries before a message goes to the dead-letter queue."""
    nth_queue_retention_seconds: Annotated[int, Field(ge=60, le=1_209_600)] = 3_600
    """How long NTH's queue keeps a drain that was forwarded to it. One that is still wanted then is
    forwarded again; one that is not can do nothing any more. On the direct route AWS says it only
    once, and the queue keeps it as long as the queue of announcements does.
    """
    # Lifecycle hooks.
    hook_heartbeat_timeout_seconds: Annotated[int, Field(ge=30, le=7200)] = 900
    """How long a lifecycle hook waits for a heartbeat before it gives up, and the instance is
    retained.
    """
    hook_heartbeats: Annotated[int, Field(ge=1, le=1000)] = 60
    """How many heartbeats a hook may get; times the above, how long it can be kept waiting."""
    hold_limit_seconds: Seconds = 14_400
    """How long a node may be held before it is retained and a page is sent."""
    planned_margin_seconds: Seconds = 21_600
    """How long before AWS's own time a scheduled replacement begins at the latest."""
    # Load balancer.
    nlb_health_interval_seconds: Annotated[int, Field(ge=5, le=300)] = 5
    """How often the load balancer checks a target."""
    nlb_health_timeout_seconds: Annotated[int, Field(ge=2, le=120)] = 5
    """How long a check may take."""
    nlb_healthy_threshold: Annotated[int, Field(ge=2, le=10)] = 2
    """Checks in a row that turn a target healthy or unhealthy."""
    nlb_registration_seconds: Seconds = 300
    """How long registering a target may take; minutes, on AWS."""
    nlb_idle_timeout_seconds: Annotated[int, Field(ge=60, le=6000)] = 350
    """When the load balancer forgets an idle connection without telling either end."""
    nlb_deregistration_seconds: Annotated[int, Field(ge=0, le=3600)] = 30
    """How long a removed target's connections live on. By then the broker has ended them itself;
    what is left points at a dead address.
    """
    lbc_requeue_seconds: Seconds = 5
    """How often the load balancer controller asks for a pending target's health."""
    lbc_max_backoff_seconds: Seconds = 30
    """How far its retries may space out."""
    # Strimzi.
    strimzi_operation_timeout_seconds: Seconds = 600
    """How long Strimzi waits for a pod to become Ready, or for a new broker without a node. It then
    fails the reconciliation and tries again.
    """
    # Connect.
    connect_probe_timeout_seconds: Seconds = 12
    """How long Connect's probes wait. GET /health answers 500 and 503 only after its own 10 s
    (KIP-1017).
    """
    # Our own Lambdas and queues.
    lambda_timeout_seconds: Annotated[int, Field(ge=1, le=900)] = 60
    """How long a function may run."""
    queue_visibility_timeout_seconds: Annotated[int, Field(ge=1, le=43_200)] = 360
    """When a message that a function has not finished is delivered again."""
    events_queue_retention_seconds: Annotated[int, Field(ge=60, le=1_209_600)] = 345_600
    """How long the queue of announcements keeps a message."""
    tick_interval_seconds: Annotated[int, Field(ge=1, le=900)] = 15
    """How often an open incident is looked at."""

    def nth_retention_seconds(self, drain_route: str) -> int:
        """Return how long NTH's queue keeps a message on a route."""
        if drain_route == "direct":
            return max(self.nth_queue_retention_seconds, self.events_queue_retention_seconds)
        return self.nth_queue_retention_seconds


# Lambda gives processor time by memory; below this the imports alone take seconds.
LEAST_MIB = 512
STEP_MIB = 64
# A function with everything it imports, and what a plan of all brokers takes for each of them
# with 4,000 replicas (`python -m bench.reading`, and half as much again).
BEFORE_READING_MIB, MIB_PER_BROKER = 200, 2.0


class FunctionMemory(Frozen):
    """The functions that act on what AWS announces."""

    memory_mib: Annotated[int | None, Field(ge=LEAST_MIB, le=10_240)] = None
    """Each function's memory; Lambda gives processor time in proportion. The default is 200 MiB and
    2 for each broker, and at least 512 MiB.
    """


def memory_mib(spec: ClusterSpec) -> int:
    """Return the memory of each function of a cluster."""
    if spec.functions.memory_mib is not None:
        return spec.functions.memory_mib
    needed = BEFORE_READING_MIB + spec.brokers * MIB_PER_BROKER
    return max(LEAST_MIB, math.ceil(needed / STEP_MIB) * STEP_MIB)
