"""What the functions count in CloudWatch: one source of the names for who counts and who alarms.

The handlers write these as embedded metrics; infra.alarms and infra.dashboards read them. Every
one is a count, and carries one dimension, `cluster`, whose value is the prefix
(`<environment>-<name>`): two environments of one account may have a cluster of the same name.
"""

from __future__ import annotations

NAMESPACE = "Stillwater"
CLUSTER_DIMENSION = "cluster"

# An incident became known, whoever told of it.
INCIDENTS_OPENED = "IncidentsOpened"
# One of the side exits: the instance was kept, with whatever runs on it.
INCIDENTS_RETAINED = "IncidentsRetained"
# The other one: the instance ended before its broker could leave.
INCIDENTS_LOST = "IncidentsLost"
# A turn of the loop came to an answer.
DECISIONS_MADE = "DecisionsMade"
# The ledger refused or did not answer; a lost race (a failed condition) is none.
LEDGER_ERRORS = "LedgerErrors"
# Somebody was called.
PAGES_SENT = "PagesSent"
# Slack could not be told, or not yet: the story was put back on its queue.
STORIES_DELAYED = "StoriesDelayed"
# The public webhook turned a caller away: by token, size or shape.
WEBHOOKS_REFUSED = "WebhooksRefused"

ALL = (
    INCIDENTS_OPENED,
    INCIDENTS_RETAINED,
    INCIDENTS_LOST,
    DECISIONS_MADE,
    LEDGER_ERRORS,
    PAGES_SENT,
    STORIES_DELAYED,
    WEBHOOKS_REFUSED,
)
