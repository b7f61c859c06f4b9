"""Who is told when something is wrong, and where they read what to do."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from core.cluster.fields import Frozen

# SNS takes ASCII alone; `!-?A-~` is what prints and is no @.
EmailAddress = Annotated[
    str, StringConstraints(pattern=r"^[!-?A-~]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$")
]
TopicArn = Annotated[
    str, StringConstraints(pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$")
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
    runbooks_url: Annotated[str, StringConstraints(pattern=r"^\S+[^/\s]$", max_length=400)] = (
        "docs/runbooks"
    )
    """Put before `/<page>.md` in every alarm and alert, whose descriptions have 1,024 characters:
    where your people read docs/runbooks.
    """

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
