"""Frees nodes that are kept from Cluster Autoscaler for an incident that is over.

An incident frees its own with its last decision. An invocation that was slower than the one which
made that may mark one after it; the sweep looks, and the loop acts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from aws_lambda_powertools import Logger

from core.incidents.observation import NodeView
from core.incidents.sweep import kept_for_incidents
from handlers.adapters.apart import take_each
from handlers.adapters.kubernetes import Nodes
from handlers.store.ledger import Ledger

logger = Logger(service="stillwater", child=True)


def kept_in_vain(nodes: Sequence[NodeView], ledger: Ledger) -> tuple[NodeView, ...]:
    """Return the nodes that are kept for an incident which the ledger has as over."""
    kept = ((node, ledger.get(node.spare_for or "")) for node in kept_for_incidents(nodes))
    return tuple(node for node, incident in kept if incident is not None and not incident.open)


def free(nodes: Nodes, ledger: Ledger) -> None:
    """Free every node that is kept in vain."""
    take_each(partial(_free, nodes, node) for node in kept_in_vain(nodes.nodes(), ledger))


def _free(nodes: Nodes, node: NodeView) -> None:
    logger.warning("A node was left kept.", node=node.name, incident_id=node.spare_for)
    nodes.mark_spare(node.name, None)
