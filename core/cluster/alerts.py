"""Describes who is told when something is wrong, and where they read what to do."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from core.cluster.fields import Frozen

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
    email: Annotated[tuple[EmailAddress, ...], Field(max_length=20)] = ()
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
        twice = sorted({each for each in self.email if self.email.count(each) > 1})
        if twice:
            raise ValueError(f"email names {', '.join(twice)} twice; name each once")
        if self.sns_topic_arn is not None and self.email:
            raise ValueError(
                f"email subscribes to a topic that is made here, and sns_topic_arn names "
                f"{self.sns_topic_arn}, which is somebody else's; subscribe the addresses there, "
                f"or remove one of the two"
            )
        return self
