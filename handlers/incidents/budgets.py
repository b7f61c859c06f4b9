"""Takes labels off Kafka's pods that no lease stands for any more.

The sweep looks, the loop acts: what is wrong is told of recorded state, read anew, and never of how
long something has lasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from aws_lambda_powertools import Logger

from core.errors import Conflict
from core.incidents.observation import PodView
from core.incidents.opening import wrongly_open
from handlers.adapters.apart import take_each
from handlers.adapters.kubernetes import Nodes
from handlers.store.ledger import Ledger

logger = Logger(service="stillwater", child=True)


def strays(pods: Sequence[PodView], ledger: Ledger, now: float) -> tuple[tuple[str, str], ...]:
    """Return the pods, each with its label's incident, that nobody lets leave.

    `pods` were read before: a label that is seen was written under a lease that is as old.
    """
    open_ids = [incident.id for incident in ledger.open_incidents()]
    return tuple(wrongly_open(pods, ledger.leases(), open_ids, now))


def restore(nodes: Nodes, ledger: Ledger, now: float) -> None:
    """Take every stray label off; who changes a pod at this moment is left to the next look."""
    found = strays(nodes.kafka_pods(), ledger, now)
    take_each(partial(_keep, nodes, pod, incident_id) for pod, incident_id in found)


def _keep(nodes: Nodes, pod: str, incident_id: str) -> None:
    logger.warning("A pod was left open to leave.", pod=pod, incident_id=incident_id)
    try:
        nodes.keep(pod, incident_id)
    except Conflict as conflict:
        logger.info("The pod has just changed.", pod=pod, error=str(conflict))
