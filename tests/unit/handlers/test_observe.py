from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.incidents.record import State
from handlers.incidents.observe import observe
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.fakes import OLD, group_of, node_named
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce


@pytest.fixture
def station() -> Station:
    return announce(Station())


def seen(station: Station, **changes: Any) -> Any:
    incident = replace(station.incident(), **changes)
    return observe(incident, station.loop.sources, station.now)


def test_everything_is_read_at_one_moment(station: Station) -> None:
    station.ledger.take_lease("i-0z", station.now, 60)
    station.announce(hook_event("drain", instance_id="i-0b", zone="us-east-1b"))
    found = seen(station, state=State.HOLDING)
    assert found.now == station.now
    assert found.instance.instance_id == OLD
    assert found.lifecycle_state == "Terminating:Wait"
    assert found.group.name == group_of("us-east-1a")
    assert len(found.nodes) == len(found.pods) == 3
    assert found.attachments[node_named(OLD)] == ("pvc-10",)
    assert found.kafka is not None
    assert found.lease_holder == "i-0z"
    assert found.leaving == {"i-0b"}
    assert found.blind == ""


@pytest.mark.parametrize("state", [State.OPENED, State.REPLACING])
def test_kafka_is_left_alone_where_its_answer_decides_nothing(
    station: Station, state: State
) -> None:
    station.cluster.kafka = None
    found = seen(station, state=state)
    assert found.kafka is None
    assert found.kafka_silence == "Kafka was not asked."


def test_a_silent_kafka_leaves_only_its_part_out(station: Station) -> None:
    station.cluster.kafka = None
    found = seen(station, state=State.GATING)
    assert found.kafka_silence == "No Kafka broker could be asked: refused."
    assert found.blind == ""
    assert found.pods


def test_aws_out_of_reach_makes_a_blind_observation(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    def throttled(instance_id: str) -> None:
        raise ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "DescribeInstances")

    monkeypatch.setattr(station.cluster, "instance", throttled)
    assert "Throttling" in seen(station).blind


def test_a_lease_that_has_expired_has_no_holder(station: Station) -> None:
    station.ledger.take_lease("i-0z", station.now - 60, 60)
    assert seen(station).lease_holder is None
