"""Describes who is told when something is wrong, where, and when planned work may be done."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from core.cluster.fields import EachOnce, Frozen, is_loopback
from core.ground.window import Window

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
            f"{value!r} is no email address that SNS takes; write one such as oncall@example.org"
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
    runbooks_url: PageAddress = "docs/runbooks"
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
                raise ValueError(f"{value} is no address of a page; write https:// or a path")
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
                f"email subscribes to a topic that is made here, and sns_topic_arn names "
                f"{self.sns_topic_arn}, which is somebody else's; subscribe the addresses there, "
                f"or remove one of the two"
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
        raise ValueError(
            f"{value} sends the bot's token where everybody on the way can read it; write https://"
        )
    return value


ApiUrl = Annotated[str, Field(max_length=200), AfterValidator(_is_an_api)]


class Slack(Frozen):
    """The channel, and the Secrets Manager secret that holds the app's bot token."""

    channel: ChannelId
    """Slack's id of the channel, at the end of its "About" page."""
    secret_name: SecretName
    """The Secrets Manager secret that holds the app's bot token, and nothing else."""
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
