"""Nodes of the provisioned cluster are terminated, one and two at a time, as the demo does it."""

from __future__ import annotations

import pytest

from core import naming
from core.incidents import State
from local import demo, journal, result
from tests.integration.cluster import BROKERS, Cluster, quiet

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
# Not every state must be seen: a replacement may be Ready before the first look at it.
ORDER = (
    State.OPENED,
    State.REPLACING,
    State.HOLDING,
    State.DRAINING,
    State.GATING,
    State.RELEASED,
)


def test_a_brokers_node_dies_under_load_and_nothing_is_lost(cluster: Cluster) -> None:
    with cluster.under_load() as load:
        rotation = demo.terminate(cluster.twin)
        demo.follow(cluster.twin, str(cluster.outputs["ledger_table"]), rotation, quiet())
        seen = load.finish()
        back_at = result.back_in_isr_at(cluster.twin, rotation)
    print(seen, back_at, [(t.state, t.at - rotation.terminated_call_at) for t in rotation.transitions])
