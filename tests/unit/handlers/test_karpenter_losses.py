"""A machine of Karpenter's that dies without a word: its NodeClaim stands, its Node may be gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.events import Kind
from core.incidents.observation import Condition
from core.incidents.record import State
from tests.unit.handlers.asking import Door
from tests.unit.handlers.fakes import NEW, OLD, TAG, node_named
from tests.unit.handlers.karpenter_machines import bring_node, claim_of, end, of_karpenter


@pytest.fixture
def door() -> Door:
    return of_karpenter(Door())


def dies(door: Door, *, state: str | None, node: bool, tagged: bool = True) -> None:
    cluster = door.station.cluster
    if tagged:
        for id_, instance in cluster.instances.items():
            cluster.instances[id_] = replace(instance, tags={TAG: ""})
    if state is None:
        del cluster.instances[OLD]
    else:
        cluster.instances[OLD] = replace(cluster.instances[OLD], state=state)
    if not node:
        del cluster.node_views[OLD]


@pytest.mark.parametrize("tagged", [True, False], ids=["tagged", "untagged"])
@pytest.mark.parametrize("node", [True, False], ids=["node", "no_node"])
@pytest.mark.parametrize("state", ["stopped", "shutting-down", "terminated", None])
def test_a_machine_that_ended_without_a_word_gets_an_incident(
    door: Door, state: str | None, *, node: bool, tagged: bool
) -> None:
    dies(door, state=state, node=node, tagged=tagged)
    station = door.station
    assert station.broom.sweep(station.now)["opened"] == 1
    assert station.incident().kind is Kind.STATE_CHANGE
    assert station.broom.sweep(station.now)["opened"] == 0


def test_its_broker_is_followed_home_and_keeps_everybody_else_until_then(door: Door) -> None:
    dies(door, state="terminated", node=False)
    station = door.station
    station.broom.sweep(station.now)
    door.tick_until(State.GATING)
    incident = station.incident()
    assert (incident.node_name, incident.node_id, incident.zone) == (
        node_named(OLD),
        10,
        "us-east-1a",
    )
    assert incident.lost_at is not None
    assert not door.ask(20, dry_run=True).allowed
    bring_node(door, NEW)
    door.evicted(10, NEW)
    door.tick_until(State.LOST)
    # Karpenter takes minutes to find a claim without an instance.
    station.now += 60
    assert station.broom.sweep(station.now)["opened"] == 0


@pytest.mark.parametrize("state", ["pending", "running"])
def test_a_machine_that_may_run_is_none(door: Door, state: str) -> None:
    dies(door, state=state, node=False)
    assert door.station.broom.sweep(door.station.now)["opened"] == 0


def test_a_machine_whose_node_never_joined_is_karpenters_to_try_again(door: Door) -> None:
    """EC2 may not show an instance in its first seconds."""
    launched = {"Launched": Condition(holds=True)}
    door.station.cluster.node_claims = (claim_of(conditions=launched),)
    dies(door, state=None, node=False)
    assert door.station.broom.sweep(door.station.now)["opened"] == 0


def test_the_system_pools_machines_are_left_to_karpenter(door: Door) -> None:
    door.station.cluster.node_claims = (claim_of(pool="system"),)
    dies(door, state="terminated", node=False)
    assert door.station.broom.sweep(door.station.now)["opened"] == 0


def test_a_machine_that_karpenter_has_ended_itself_is_no_loss(door: Door) -> None:
    """Its claim waits for EC2's word for minutes, and the broker is home already."""
    station = door.station
    bring_node(door, NEW)
    door.evicted(10, NEW)
    dies(door, state="terminated", node=False)
    end_without_node = claim_of(deleted=True, deleted_at=station.now - 300)
    kept = [c for c in station.cluster.node_claims or () if c.instance_id != OLD]
    station.cluster.node_claims = (*kept, end_without_node)
    assert station.broom.sweep(station.now)["opened"] == 0


def test_a_claim_that_ends_with_its_broker_lost_is_followed_by_the_claims_word(door: Door) -> None:
    """Karpenter hears of the loss first, and deletes the claim: its Node is gone by then."""
    end(door, claim_of(deleted=True, deleted_at=door.station.now - 10))
    dies(door, state="terminated", node=False)
    station = door.station
    assert station.broom.sweep(station.now)["opened"] == 1
    door.tick_until(State.GATING)
    assert station.incident().node_id == 10
    assert station.incident().lost_at is not None
