"""Names what the functions count in CloudWatch, once for who counts and for who alarms.

The handlers write these as embedded metrics; infra.alerts.alarms and infra.alerts.dashboards read
them. Every one is a count, and carries one dimension, `cluster`, whose value is the prefix
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
# Alarms on these call a person, so each is written down at once and not when a function ends.
CALLING = frozenset({INCIDENTS_RETAINED, INCIDENTS_LOST, PAGES_SENT})
# Slack could not be told, or not yet: the story was put back on its queue.
STORIES_DELAYED = "StoriesDelayed"
# The public webhook turned a caller away: by token, size or shape.
WEBHOOKS_REFUSED = "WebhooksRefused"
# How the cluster did when λ health was asked: 0 healthy, 1 impaired, 2 unhealthy or unknown.
CLUSTER_HEALTH = "ClusterHealth"
# A node pool's volumes were changed.
VOLUMES_CHANGED = "VolumesChanged"
# A change was wanted and not made: no modification left, too dear, beyond what a policy allows.
VOLUMES_OUT_OF_SLOTS = "VolumesOutOfSlots"
VOLUMES_REFUSED = "VolumesRefused"
# More is asked than the instance gives its volumes.
VOLUMES_INSTANCE_BOUND = "VolumesInstanceBound"
# A volume is not what its claim and class say.
VOLUMES_DRIFTED = "VolumesDrifted"
# A change was asked for and does not come about.
VOLUMES_STUCK = "VolumesStuck"
# How full volumes are, or what is asked of them, nobody says.
VOLUMES_UNKNOWN = "VolumesUnknown"

ALL = (
    INCIDENTS_OPENED,
    INCIDENTS_RETAINED,
    INCIDENTS_LOST,
    DECISIONS_MADE,
    LEDGER_ERRORS,
    PAGES_SENT,
    STORIES_DELAYED,
    WEBHOOKS_REFUSED,
    CLUSTER_HEALTH,
    VOLUMES_CHANGED,
    VOLUMES_OUT_OF_SLOTS,
    VOLUMES_REFUSED,
    VOLUMES_INSTANCE_BOUND,
    VOLUMES_DRIFTED,
    VOLUMES_STUCK,
    VOLUMES_UNKNOWN,
)
