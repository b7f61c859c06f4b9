"""Who is told when something is wrong, and where they read what to do."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from core.cluster.fields import Frozen

EmailAddress = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")]
TopicArn = Annotated[
    str, StringConstraints(pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$")
]


class Alerts(Frozen):
    """CloudWatch's alarms, which watch what Prometheus cannot: the toolkit itself."""

    enabled: bool = True
    # Each is asked once, by AWS, whether it wants to hear.
    email: Annotated[tuple[EmailAddress, ...], Field(max_length=20)] = ()
    # A topic that exists already and whose policy lets CloudWatch publish; None: one is made,
    # encrypted with a key of its own.
    sns_topic_arn: TopicArn | None = None
    # Put before `<alert>.md` in every alarm and alert: the address of docs/runbooks where your
    # people read it.
    runbooks_url: Annotated[str, StringConstraints(pattern=r"^\S+[^/\s]$")] = "docs/runbooks"

    @model_validator(mode="after")
    def _subscribers_need_our_topic(self) -> Self:
        if self.sns_topic_arn is not None and self.email:
            raise ValueError(
                f"email subscribes to a topic that is made here, and sns_topic_arn names "
                f"{self.sns_topic_arn}, which is somebody else's; subscribe the addresses there, "
                f"or remove one of the two"
            )
        return self
