"""core.cluster.estimate: a month at list price, and what a broker is for a load."""

import dataclasses
import math
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from core.cluster import ClusterSpec, estimate, parse
from core.cluster.estimate import CANDIDATES, CATCHING_UP, ClientLoad, Usage, size
from core.cost import pricing
from core.ground.errors import InvalidInput
from infra.eks.launch import ROOT_SIZE_GIB
from infra.network import INTERFACES
from tests.every_case import every_case

BOOK = pricing.book("us-east-1")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


def a_spec(**changes: Any) -> ClusterSpec:
    pools = [
        {
            "name": "broker",
            "role": "broker",
            "instance_type": "r7g.xlarge",
            "first_node_id": 10,
            "volumes": [{"size_gib": 500, "iops": 4000, "throughput_mib_per_s": 250}],
        },
        {
            "name": "controller",
            "role": "controller",
            "instance_type": "m7g.large",
            "first_node_id": 0,
            "node_ids_per_zone": 1,
            "volumes": [{"size_gib": 20}],
        },
    ]
    spec = {
        "name": "orders",
        "environment": "try",
        "region": "us-east-1",
        "availability_zones": ZONES,
        "pools": pools,
    }
    return parse({**spec, **changes})


def dollars(spec: ClusterSpec, usage: Usage | None = None) -> dict[str, str]:
    """Return the dollars of each line but Stillwater's own, which test_own.py has."""
    lines = estimate.monthly(spec, BOOK, usage).lines
    return {
        f"{line.component}: {line.what}": str(line.usd)
        for line in lines
        if line.component != "Stillwater"
    }


def test_what_is_billed_for_being_there_is_what_a_hand_computes() -> None:
    # hours: 3 x 730 = 2190; IOPS: 3 x (4000 - 3000); throughput: 3 x (250 - 125) / 1024 x 40.96.
    assert dollars(a_spec()) == {
        "pool broker: 3 r7g.xlarge": "469.10",  # 2190 x 0.2142 = 469.098
        "pool broker: 3 root volumes": "12.00",  # 3 x 50 x 0.08
        "pool broker: 3 gp3 volumes": "120.00",  # 3 x 500 x 0.08
        "pool broker: IOPS above 3000": "15.00",  # 3000 x 0.005
        "pool broker: throughput above 125 MiB/s": "15.00",  # 375 x 0.04
        "pool controller: 3 m7g.large": "178.70",  # 2190 x 0.0816 = 178.704
        "pool controller: 3 root volumes": "12.00",
        "pool controller: 3 gp3 volumes": "4.80",  # 3 x 20 x 0.08
        "system nodes: 3 m7i.large": "220.75",  # 2190 x 0.1008 = 220.752
        "system nodes: 3 root volumes": "12.00",
        "EKS: control plane": "73.00",  # 730 x 0.1
        "EKS: key of Kubernetes' secrets": "1.00",
        "alerts: key of the topic": "1.00",
        "network: 3 NAT gateways": "98.55",  # 2190 x 0.045
        "network: 3 public addresses": "10.95",  # 2190 x 0.005
        "load balancer: one NLB": "16.43",  # 730 x 0.0225 = 16.425
        "snapshots: 7 of each volume, changed blocks": "39.00",  # half of 1560 GiB x 0.05
        "logs: of the control plane": "7.60",  # 0.5 x 30.4167 x 0.5 = 7.604
        "logs: kept 90 days": "1.35",  # 0.5 x 90 x 0.03
    }


@pytest.mark.parametrize(
    ("zones", "replicas", "readers", "crossings"),
    [
        (1, 3, 5, "0"),  # nothing leaves the only zone
        (3, 3, 0, "10/3"),  # in: 2 x 2/3; replicas: 2
        (3, 1, 1, "8/3"),  # in and out, no replica
        (2, 4, 0, "3"),  # in: 1; replicas: 2 of 3 elsewhere
    ],
)
def test_crossings_by_hand_agree(zones: int, replicas: int, readers: int, crossings: str) -> None:
    top, _, bottom = crossings.partition("/")
    found = sum(estimate.crossings_per_produced_byte(zones, replicas, Decimal(readers)))
    assert abs(found - Decimal(top) / Decimal(bottom or 1)) < Decimal("1e-20")


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 20))
def test_a_byte_never_crosses_more_than_it_moves(zones: int, replicas: int, readers: int) -> None:
    found = sum(estimate.crossings_per_produced_byte(zones, replicas, Decimal(readers)))
    assert 0 <= found <= 2 * (1 + readers) + replicas - 1


def test_the_questions_have_the_answers_that_a_hand_computes() -> None:
    load = Usage(produce_mib_per_s=Decimal(10), readers=Decimal(2))
    hours = {"instance_hour_1y:r7g.xlarge": "0.1", "instance_hour_1y:m7g.large": "0.05"}
    hours["instance_hour_1y:m7i.large"] = "0.06"
    day = BOOK.price("nat_hour").as_of
    committed = {item: pricing.Price(item, Decimal(usd), "", day) for item, usd in hours.items()}
    book = dataclasses.replace(BOOK, prices={**BOOK.prices, **committed})
    now = estimate.monthly(a_spec(), book, load).total
    assert now is not None
    found = {each.name: each.usd for each in estimate.answers(a_spec(), book, load)}
    assert found["per_broker"] == round(now / 3, 2)
    assert found["per_mib_per_s"] == round(now / 10, 2)
    # A byte crosses 2/3 in the place of 4 times, billed twice: 25,664.0625 x 10/3 x 2 x 0.01; and
    # no capacity unit.
    assert found["in_own_zone"] == now - Decimal("1710.94") - Decimal("461.95")
    # 2190 h x (0.2142 - 0.1 + 0.0816 - 0.05 + 0.1008 - 0.06), each line rounded before.
    assert found["committed_1y"] == now - Decimal("868.55") + 2190 * Decimal("0.21")
    assert found["committed_3y"] is None
    on_disks = found["local_disks_broker"]
    assert on_disks is not None
    # i4g.xlarge, 3 x 730 x 0.30888, in the place of 469.10 and its volumes' 150; the rotations'
    # copies are the rest.
    assert on_disks > now - Decimal("619.10") + 2190 * Decimal("0.30888")


def test_interface_endpoints_cost_each_service_in_each_zone() -> None:
    lines = dollars(a_spec(network={"interface_endpoints": True}))
    assert lines["network: 13 interface endpoints in 3 zones"] == "284.70"  # 39 x 730 x 0.01


def test_somebody_elses_network_costs_its_owner() -> None:
    subnets = {zone: f"subnet-0123456{index}" for index, zone in enumerate(ZONES)}
    existing = {"vpc_id": "vpc-01234567", "private_subnet_ids": subnets}
    lines = dollars(a_spec(network={"existing": existing}))
    assert not [line for line in lines if line.startswith("network")]


def test_what_is_switched_off_costs_nothing() -> None:
    off = {"kubernetes": {"control_plane_logs": []}, "alerts": {"enabled": False}}
    lines = dollars(a_spec(snapshots=None, **off))
    assert not [line for line in lines if line.startswith(("snapshots", "logs", "alerts"))]


def test_every_missing_price_is_named_once_with_its_share_and_the_rest_is_summed() -> None:
    without = dict(BOOK.prices)
    for item in ("gp3_gib_month", "nat_hour"):
        del without[item]
    found = estimate.monthly(a_spec(), dataclasses.replace(BOOK, prices=without))
    share = 1 - (found.total or 0) / (estimate.monthly(a_spec(), BOOK).total or 1)
    assert found.unpriced.endswith(f"In us-east-1 that is {share:.1%} of this cluster's cost.")
    assert found.unpriced.startswith(
        "The shipped price file has no price for gp3_gib_month, nat_hour in us-east-1; "
    )
    assert {line.item for line in found.lines if line.usd is None} == {"gp3_gib_month", "nat_hour"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"readers": Decimal(-1)}, "readers is -1: it must be 0 or more"),
        ({"filled": Decimal(2)}, "filled is 2: it is a share of the volumes, between 0 and 1"),
        ({"filled": Decimal("nan")}, "filled is NaN: it is not a number"),
    ],
)
def test_a_use_that_cannot_be_is_a_sentence(wrong: dict[str, Decimal], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Usage(**wrong)


def test_an_estimate_says_how_old_its_prices_are() -> None:
    days = estimate.monthly(a_spec(), BOOK).prices_as_of
    assert days is not None
    assert [str(day) for day in days] == ["2024-09-30", "2026-11-29"]


def test_what_infra_builds_is_what_is_counted() -> None:
    assert estimate.ROOT_VOLUME_GIB == ROOT_SIZE_GIB
    assert len(INTERFACES) == estimate.INTERFACE_SERVICES


LOAD = ClientLoad(zones=3, brokers=3, produce_mib_per_s=60, readers=2, retention_hours=24)


def test_the_guides_example_is_an_r7g_xlarge() -> None:
    assert (LOAD.written_mib_per_s, LOAD.sent_mib_per_s) == (60, 90)
    found = size(LOAD)
    expected = ("r7g.xlarge", 125, 3000)
    assert (found.instance.name, found.throughput_mib_per_s, found.iops) == expected


@settings(max_examples=50)
@given(
    zones=st.integers(3, 6),
    each=st.integers(1, 6),  # one more of each has its listener still
    produce=st.floats(0.01, 3000),
    readers=st.floats(0, 10),
    hours=st.integers(1, 1000),
)
def test_a_broker_carries_its_load_or_the_answer_says_what_to_change(
    zones: int, each: int, produce: float, readers: float, hours: int
) -> None:
    load = ClientLoad(zones, zones * each, produce, readers, hours)
    try:
        found = size(load)
    except InvalidInput as error:
        (problem,) = error.problems
        event(problem.rpartition(": ")[2])
        return
    assert found.instance.ebs_mib_per_s >= CATCHING_UP * load.written_mib_per_s
    assert found.size_gib * 1024 >= load.written_mib_per_s * hours * 3600
    more = size(replace(load, brokers=load.brokers + zones))
    assert CANDIDATES.index(more.instance.name) <= CANDIDATES.index(found.instance.name)


@every_case(
    ("changed", "sentence"),
    [
        ({"zones": 2}, "2 availability zones: 3 replicas need 3"),
        ({"zones": 1}, "1 availability zone: 3 replicas need 3"),
        ({"brokers": 48}, "ask for 45 at most"),
        ({"brokers": 5}, "5 brokers cannot stand evenly in 3 availability zones: ask for 6"),
        ({"brokers": 0}, "ask for 3"),
        ({"produce_mib_per_s": math.nan}, "nan produced MiB/s: it must be a number above 0"),
        ({"produce_mib_per_s": 0}, "0 produced MiB/s"),
        ({"readers": -1}, "-1 consumer groups"),
        ({"retention_hours": 0}, "0 hours of retention"),
        ({"retention_hours": 10_000}, "A gp3 volume has at most 65,536"),
    ],
)
def test_a_load_that_cannot_be_is_one_sentence(changed: dict[str, float], sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        size(replace(LOAD, **changed))
    assert sentence in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(("zones", "most"), [(3, 45), (4, 44), (5, 40), (6, 42)])
def test_as_many_brokers_as_have_listeners_beside_the_spare_ones(zones: int, most: int) -> None:
    assert size(replace(LOAD, zones=zones, brokers=most)).size_gib > 0
    with pytest.raises(InvalidInput, match=f"ask for {most} at most"):
        size(replace(LOAD, zones=zones, brokers=most + zones))


@every_case("zones", [3, 4])
@every_case(("produced", "hours"), [(5000, 1), (900, 24), (300, 720), (20, 9000)])
def test_the_brokers_that_a_refusal_names_suffice(zones: int, produced: float, hours: int) -> None:
    load = ClientLoad(zones=zones, brokers=zones, produce_mib_per_s=produced, retention_hours=hours)
    with pytest.raises(InvalidInput) as caught:
        size(load)
    named = re.search(r"name (\d+) brokers or more", str(caught.value))
    if named is None:
        assert "too few; make it several Kafkas" in str(caught.value)
        with pytest.raises(InvalidInput):
            size(replace(load, brokers=45 if zones == 3 else 44))
        return
    size(replace(load, brokers=int(named[1])))
    with pytest.raises(InvalidInput):
        size(replace(load, brokers=int(named[1]) - zones))
