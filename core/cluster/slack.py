"""Where incidents are told: one channel of a Slack workspace."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from core.cluster.fields import Frozen

# Slack's id of a channel, at the end of its "About" page: names can be changed, ids cannot.
ChannelId = Annotated[str, StringConstraints(pattern=r"^[CG][A-Z0-9]{8,20}$")]
SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9/_+=.@-]{1,255}$")]
ApiUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+/$", max_length=200)]


class Slack(Frozen):
    """The channel, and the Secrets Manager secret that holds the app's bot token."""

    channel: ChannelId
    """Slack's id of the channel, at the end of its "About" page."""
    secret_name: SecretName
    """The Secrets Manager secret that holds the app's bot token, and nothing else."""
    api_url: ApiUrl = "https://slack.com/api/"
    """Slack's Web API; GovSlack's is `https://slack-gov.com/api/`."""
