"""cli.desk.state: what of a reading is shown, and that nothing unread is good news."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cli.desk.reading import (
    DeskCluster,
    DeskReading,
    DeskSource,
    LastAnswer,
    LedgerSeen,
    VolumesSeen,
)
from cli.desk.state import page_state
from core.availability.lease import Lease
from core.incidents.joining import Pause
from core.incidents.record import Incident, State
from core.rotation.run_record import Options, Phase, RunState, open_run
from core.volumes.sizing import GIB
from core.volumes.views import FillSample
from core.zones.incident import ZoneIncident, ZoneState
from handlers.store.volume_records import Memory
from tests import desk_data
from tests.every_case import every_case

NOW = 1_795_168_800.0
CLUSTER = DeskCluster("prod", "prod-orders", "us-east-1", 14_400.0, 730.0, {"broker": 3.6})
WELL = {"status": "healthy", "message": "All 9 parts are healthy.", "at": "now", "parts": []}
OUT = desk_data.incident("i-0a", 10, "us-east-1a", 4, NOW - 190)
HOLDING = desk_data.incident("i-0b", 20, "us-east-1b", 3, NOW - 150)
FROZEN = ZoneIncident(
    key="person:use1-az3",
    source="person",
    state=ZoneState.FROZEN,
    opened_at=NOW - 60,
    said_at=NOW - 60,
    zone_id="use1-az3",
    zone="us-east-1b",
)


def reading(*incidents: Incident, **ledger: Any) -> DeskReading:
    """Return a reading of this very second in which everything was read."""
    seen = LedgerSeen(incidents=incidents, **ledger)
    values = {DeskSource.LEDGER: seen, DeskSource.VOLUMES: VolumesSeen(), DeskSource.HEALTH: WELL}
    return DeskReading(
        CLUSTER, {source: LastAnswer(value, NOW) for source, value in values.items()}
    )


def verdict(of: DeskReading, now: float = NOW) -> tuple[str, str, str]:
    found = page_state(of, now)["verdict"]
    return found["tone"], found["title"], " ".join(found["sentences"])


def test_a_cluster_where_nothing_happens_is_calm() -> None:
    assert verdict(reading()) == ("calm", "Nobody is out", "")


def test_who_is_out_and_how_many_wait_is_the_title() -> None:
    assert verdict(reading(OUT, HOLDING))[:2] == ("busy", "Broker 10 is out, 1 more waits")


def test_a_used_lease_is_somebody_out_whatever_became_of_the_incident() -> None:
    lease = Lease("i-0z", NOW - 1, node_id=30, out_at=NOW - 900)
    assert verdict(reading(leases=(lease,)))[1] == "Node 30 (i-0z) is out"


def test_before_the_ledger_was_read_nobody_can_tell() -> None:
    shown = page_state(DeskReading(CLUSTER), NOW)
    assert shown["verdict"]["tone"] == "unknown"
    assert shown["incidents"] is shown["waits"] is shown["health"] is None


@every_case("source", list(DeskSource))
@every_case("failed", ["throttled", ""], ids=["failed", "too old"])
def test_what_was_not_read_is_never_calm(source: DeskSource, failed: str) -> None:
    old = replace(reading().answer(source), read_at=NOW - 3600)
    before = replace(reading(), answers={**reading().answers, source: old})
    seen = before.update(source, LastAnswer(failed=failed)) if failed else before
    tone, _, said = verdict(seen)
    assert tone == "unknown"
    assert source.capitalize() in said
    assert failed in said


def test_a_reading_that_fails_keeps_the_one_before_it_and_says_it_is_old() -> None:
    seen = reading(OUT).update(DeskSource.LEDGER, LastAnswer(failed="The ledger says nothing."))
    tone, title, said = verdict(seen)
    assert (tone, title) == ("unknown", "As last read: Broker 10 is out")
    assert "The ledger says nothing." in said
    assert page_state(seen, NOW)["incidents"]


@pytest.mark.parametrize(
    "incident",
    [
        replace(HOLDING, pages=("hold_limit",)),
        replace(HOLDING, state=State.RETAINED, reason="Kept: the hook was abandoned."),
    ],
    ids=["paged", "retained"],
)
def test_what_needs_a_person_is_an_alarm(incident: Incident) -> None:
    tone, _, said = verdict(reading(incident))
    assert tone == "alarm"
    assert incident.reason in said


def test_a_run_that_stopped_and_a_cluster_that_is_ill_are_alarms() -> None:
    run = replace(open_run([], Options(), "ada", NOW), state=RunState.STOPPED, reason="No way.")
    assert verdict(reading(run=run)) == ("alarm", "Nobody is out", "The rotation stopped: No way.")
    ill = reading().update(DeskSource.HEALTH, LastAnswer({**WELL, "status": "unknown"}, NOW))
    assert verdict(ill)[0] == "alarm"


def test_a_waiting_node_names_everything_in_its_way() -> None:
    lease = Lease("i-0a", NOW + 60, node_id=10, out_at=NOW - 60)
    seen = reading(
        OUT,
        replace(HOLDING, held_until=NOW + 60, reason="Partition t-0 has no margin."),
        leases=(lease,),
        zones=(FROZEN,),
        pause=Pause("ada", "disks", NOW - 5),
    )
    (wait,) = page_state(seen, NOW)["waits"]
    names = ("the pause", "a person's hold", "zone us-east-1b", "broker 10, us-east-1a")
    assert (wait["who"], wait["behind"]) == ("broker 20, us-east-1b", names)
    assert wait["why"][-1] == "Partition t-0 has no margin."


def test_with_nothing_in_its_way_a_node_waits_for_its_next_step() -> None:
    (wait,) = page_state(reading(HOLDING), NOW)["waits"]
    assert wait["behind"] == ("Kafka's consent",)


def test_a_runs_nodes_wait_for_those_who_are_away() -> None:
    turns = [
        desk_data.turn(10, "us-east-1a", "i-0a", phase=Phase.LEAVING, began_at=NOW - 3600),
        desk_data.turn(20, "us-east-1b", "i-0b", reason="Zone us-east-1b is frozen."),
    ]
    shown = page_state(reading(run=open_run(turns, Options(), "ada", NOW)), NOW)
    (wait,) = shown["waits"]
    assert (wait["behind"], wait["why"]) == (("broker 10",), ("Zone us-east-1b is frozen.",))
    assert shown["run"]["wishes"] == ["rotation-pause"]
    assert shown["costs"][-1]["usd"] == "$3.60 for 1 h"


def test_an_incident_shows_its_way_and_what_may_be_wished_of_it() -> None:
    shown = page_state(reading(replace(OUT, hooks={"drain": "secret-token"})), NOW)
    (found,) = shown["incidents"]
    assert [step["state"] for step in found["way"]][-3:] == ["draining", "gating", "released"]
    assert found["wishes"] == ["hold", "release"]
    assert "secret" not in json.dumps(shown)


def test_a_retained_instance_can_be_released_and_not_held() -> None:
    (found,) = page_state(reading(replace(HOLDING, state=State.RETAINED)), NOW)["incidents"]
    assert found["wishes"] == ["release"]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [({"data-0": 100}, "Full in"), ({}, "Nobody knows")],
    ids=["size known", "size unknown"],
)
def test_a_volumes_forecast_is_said_or_that_nobody_knows(sizes: dict[str, int], said: str) -> None:
    samples = tuple(FillSample(NOW - 3600 * h, (60 - h / 2) * GIB) for h in range(48, -1, -1))
    seen = VolumesSeen({"sizes_gib": sizes}, {"data-0": Memory(samples=samples)})
    shown = page_state(reading().update(DeskSource.VOLUMES, LastAnswer(seen, NOW)), NOW)
    (claim,) = shown["volumes"]["claims"]
    assert claim["forecast"].startswith(said)


def test_an_unknown_price_is_said() -> None:
    seen = replace(reading(), cluster=replace(CLUSTER, monthly_usd=None))
    assert page_state(seen, NOW)["costs"][0]["usd"].startswith("unknown")
