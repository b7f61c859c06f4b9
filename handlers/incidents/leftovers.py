"""Takes off nodes and pods what incidents that are over have left there.

Frees nodes that are kept from Cluster Autoscaler for an incident that is over.

An incident frees its own with its last decision. An invocation that was slower than the one which
made that may mark one after it; the sweep looks, and the loop acts.

Takes labels off Kafka's pods that no lease stands for any more.

The sweep looks, the loop acts: what is wrong is told of recorded state, read anew, and never of how
long something has lasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from aws_lambda_powertools import Logger

from core.errors import Conflict
from core.incidents.consenting import wrongly_open
from core.incidents.observation import NodeView, PodView
from handlers.adapters.calls import take_each
from handlers.adapters.kubernetes import Nodes
from handlers.store.ledger import Ledger

logger = Logger(service="stillwater", child=True)


def kept_in_vain(nodes: Sequence[NodeView], ledger: Ledger) -> tuple[NodeView, ...]:
    """Return the nodes that are kept for an incident which the ledger has as over."""
    kept = ((node, ledger.get(node.spare_for)) for node in nodes if node.spare_for is not None)
    return tuple(node for node, incident in kept if incident is not None and not incident.open)


def free(nodes: Nodes, ledger: Ledger) -> None:
    """Free every node that is kept in vain."""
    take_each(partial(_free, nodes, node) for node in kept_in_vain(nodes.nodes(), ledger))


def _free(nodes: Nodes, node: NodeView) -> None:
    logger.warning("A node was left kept.", node=node.name, incident_id=node.spare_for)
    nodes.mark_spare(node.name, None)


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
