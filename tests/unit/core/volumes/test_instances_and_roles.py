"""What a pool's role and its instances allow: controllers only grow, a burst is named."""

from __future__ import annotations

from core.cost import pricing
from core.ground.instances import table
from core.volumes.deciding import DecisionKind, VolumeDecision, decide
from core.volumes.sizing import MIB, Gp3, Performance, Policy, instance_ceiling
from core.volumes.views import BrokerAbsence, Load, VolumeSet
from tests.unit.core.volumes.views import (
    FAST,
    NOW,
    fill_forecast,
    quiet_hours,
    throttled_load,
    view,
    volume_set,
)

BOOK = pricing.book("us-east-1")
CONTROLLER = Policy(apply=True, grow_only=True, usd_per_minute_saved=10.0)


def first(of: VolumeSet) -> VolumeDecision:
    return decide(of, BOOK, NOW)[0]


def test_a_controllers_volume_grows_by_its_own_fill() -> None:
    full = volume_set(view(forecast=fill_forecast(0.9)), policy=CONTROLLER)
    assert first(full).kind is DecisionKind.GROW


def test_a_controllers_volume_is_neither_raised_nor_lowered_nor_made_ready_for_a_rotation() -> None:
    rotation = BrokerAbsence(
        pod="orders-controller-a-0", append_bytes_per_s=110 * MIB, away_seconds=300
    )
    busy = volume_set(view(load=throttled_load(instance=0.9)), policy=CONTROLLER, rotation=rotation)
    assert first(busy).kind is DecisionKind.KEEP
    quiet = view(FAST, load=Load(hours=quiet_hours(30)))
    assert first(volume_set(quiet, asked=FAST, policy=CONTROLLER)).kind is DecisionKind.KEEP


def test_a_controllers_volume_still_gets_what_the_spec_asks_for() -> None:
    asked = volume_set(view(), spec=FAST, policy=CONTROLLER)
    assert first(asked).target == Gp3(100, FAST.performance)


def test_the_cap_is_what_an_instance_sustains_unless_the_pool_may_burst() -> None:
    small = table().types["r7g.xlarge"]
    assert instance_ceiling(small) == Performance(6000, 149)
    assert instance_ceiling(small, bursting=True) == Performance(40_000, 1192)
    full = view(Gp3(100, Performance(6000, 149)), load=throttled_load(), instance_type="r7g.xlarge")
    asked = Gp3(100, Performance(6000, 149))
    sustained = first(volume_set(full, asked=asked))
    assert (sustained.kind, sustained.refused_by) == (DecisionKind.REFUSE, "instance")
    bursting = first(volume_set(full, asked=asked, policy=Policy(apply=True, may_burst=True)))
    assert bursting.kind is DecisionKind.RAISE


def test_a_burst_is_named_beside_what_is_sustained() -> None:
    bound = view(load=throttled_load(instance=0.5), instance_type="r7g.xlarge")
    assert (
        "r7g.xlarge sustains 6000 IOPS and 149 MiB/s (40000 and 1192 for 30 minutes in 24 hours)"
        in first(volume_set(bound)).reason
    )


def test_a_type_that_sustains_its_most_is_said_to_burst_nowhere() -> None:
    assert not table().types["r7g.16xlarge"].bursts
    bound = view(load=throttled_load(instance=0.5), instance_type="r7g.16xlarge")
    assert "minutes in 24 hours" not in first(volume_set(bound)).reason


def test_no_type_of_the_table_bursts_below_what_it_sustains() -> None:
    for each in table().types.values():
        assert each.ebs_burst_iops >= each.ebs_iops, each.name
        assert each.ebs_burst_mb_per_s >= each.ebs_mb_per_s, each.name


def test_a_run_of_several_nodes_pays_once_for_all_of_them() -> None:
    policy = Policy(apply=True, usd_per_minute_saved=0.001)
    one = BrokerAbsence(pod="p", append_bytes_per_s=80 * MIB, away_seconds=400, measured=5)
    assert first(volume_set(policy=policy, rotation=one)).kind is DecisionKind.KEEP
    many = BrokerAbsence(
        pod="p", append_bytes_per_s=80 * MIB, away_seconds=400, nodes=9, measured=5
    )
    found = first(volume_set(policy=policy, rotation=many))
    assert found.kind is DecisionKind.ROTATION
    assert "9 nodes, each away for 400 s, measured of 5 earlier departures" in found.reason
