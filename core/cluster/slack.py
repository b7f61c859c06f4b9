"""Describes where incidents are told: one channel of a Slack workspace."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from core.cluster.fields import Frozen, is_loopback

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
