"""What the functions ask of the services that bill each call, beside core.cluster.own's figures.

The functions' own code speaks to moto's DynamoDB; request units follow from the bytes of each item.
A function that begins to ask more, or less, fails here: set the figure anew, and `make docs`.
"""

import json
import math
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, cast

import botocore.client
import pytest

from core.cluster import own
from core.cost import pricing
from core.ground.constants import LOOKS_PER_LOAD, schedule_minutes
from core.settings.volumes import PoolSettings, VolumeSettings
from core.volumes.sizing import Policy
from core.volumes.views import FillSample, Hour
from handlers.adapters.claims import ClaimView
from handlers.adapters.volumes import CloudWatchLoads, FillView
from handlers.examiner import Examiner
from handlers.store import volume_records
from handlers.store.documents import Freezes, Runs
from handlers.store.ledger import Ledger
from handlers.store.table import Records
from handlers.store.volume_records import HOUR_SECONDS, HOURS_KEPT, Memory
from handlers.volume.steward import Departing, Lookout, Sources, Steward
from tests.unit.handlers.fakes import NEW, three_brokers
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.tables import REGION, TABLE
from tests.unit.handlers.test_health import examiner  # noqa: F401 - a fixture
from tests.unit.handlers.test_volumes import LOOK, NOW, SPEC, OneVolume
from tests.unit.handlers.walks import drain_node

pytestmark = pytest.mark.usefixtures("quiet")
READ_BYTES, WRITE_BYTES = 4096, 1024
INDEXED = "incident#"


@dataclass
class Bill:
    """The calls so far, and DynamoDB's request units as its pages count them."""

    calls: Counter[str] = field(default_factory=Counter)
    reads: float = 0.0
    writes: int = 0

    def add(self, operation: str, asked: dict[str, Any], answer: dict[str, Any]) -> None:
        self.calls[operation] += 1
        if operation == "GetItem":
            self.reads += _units(answer.get("Item", {}), READ_BYTES)
        elif operation == "Query":
            self.reads += _units(answer["Items"], READ_BYTES) / 2
        elif operation == "PutItem":
            indexed = asked["Item"]["pk"]["S"].startswith(INDEXED)
            self.writes += _units(asked["Item"], WRITE_BYTES) * (2 if indexed else 1)

    def begin(self) -> None:
        self.calls, self.reads, self.writes = Counter(), 0.0, 0


def _units(items: Any, unit: int) -> int:
    size = len(json.dumps(items, default=lambda packed: "x" * len(packed)))
    return max(1, math.ceil(size / unit))


@pytest.fixture
def bill(aws: None, monkeypatch: pytest.MonkeyPatch) -> Bill:
    real: Any = botocore.client.BaseClient._make_api_call
    counted = Bill()

    def counting(client: Any, operation: str, asked: dict[str, Any]) -> Any:
        answer = real(client, operation, asked)
        counted.add(operation, asked, answer)
        return answer

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", counting)
    return counted


def a_station(**given: Any) -> Station:
    """Return the functions over fakes, their ledger and records in DynamoDB."""
    ledger = cast("Any", Ledger(TABLE, "orders", REGION))
    return Station(ledger=ledger, records=cast("Any", Records(TABLE, REGION)), **given)


@pytest.mark.parametrize("brokers", [3, 6])
def test_an_idle_sweep_reads_what_is_counted_however_many_brokers(
    bill: Bill, brokers: int, request: pytest.FixtureRequest
) -> None:
    # The fixture puts the second three into the zones.
    cluster = three_brokers() if brokers == 3 else request.getfixturevalue("six").cluster
    station = a_station(cluster=cluster)
    station.sweep()  # The first remembers where the next begins.
    bill.begin()
    assert station.broom.sweep(station.now + 60)["looked_at"] == brokers
    assert (bill.reads, bill.writes) == (own.READS["sweep"], 0)
    assert bill.calls.keys() == {"GetItem", "Query"}
    assert station.ticks.sent == []


def test_an_examination_reads_what_is_counted(
    bill: Bill,
    examiner: Examiner,  # noqa: F811
) -> None:
    records = Records(TABLE, REGION)
    ledger, freezes = Ledger(TABLE, "orders", REGION), Freezes(records, "orders")
    assert replace(examiner, ledger=ledger, freezes=freezes).answer(NOW)["statusCode"] == 200
    assert (bill.reads, bill.writes) == (own.READS["health"], 0)
    assert bill.calls.keys() == {"GetItem", "Query"}


def test_an_incident_to_its_end_asks_no_more_than_its_ticks_are_counted_with(bill: Bill) -> None:
    station = a_station()
    drain_node(station)
    station.cluster.place_pod(10, NEW)
    station.cluster.kafka = healthy_kafka()
    while station.incident().open:
        station.tick()
    ticks = len(station.ticks.sent)
    # What was announced is written down, too; and what costs half of what is counted is news.
    assert own.TICK_READS / 2 < bill.reads / ticks <= own.TICK_READS
    assert own.TICK_WRITES / 2 < bill.writes / ticks <= own.TICK_WRITES
    # Each tick asks for the next, beside those that the announcements asked for; nobody is called.
    assert bill.calls["PutItem"] <= 3 * ticks
    assert station.ticks.pages == []


@dataclass
class Volumes(OneVolume):
    """As many brokers with a volume each, on a machine each; CloudWatch says that all are idle."""

    number: int = 3
    asked_of_cloudwatch: int = 0

    def claims(self) -> tuple[ClaimView, ...]:
        (one,) = super().claims()
        return tuple(
            replace(one, name=f"data-0-{pod}", pod=pod, volume_id=f"vol-{n}")
            for n in range(self.number)
            for pod in [f"orders-broker-a-{n}"]
        )

    def volumes(self, ids: Any) -> Any:
        found = super().volumes(ids)
        return {id_: replace(each, instance_id=f"i-{id_}") for id_, each in found.items()}

    def fills(self) -> dict[tuple[int, int], FillView]:
        return {(n, 0): FillView(int(self.used)) for n in range(self.number)}

    def get_metric_data(self, **query: Any) -> dict[str, Any]:
        asked = [each["Id"] for each in query["MetricDataQueries"]]
        self.asked_of_cloudwatch += len(asked)
        idle = {"Timestamps": [query["StartTime"]], "Values": [0.0]}
        return {"MetricDataResults": [{"Id": id_, **idle} for id_ in asked]}


def two_weeks(seed: int) -> Memory:
    """Return a volume's record when it has all that it keeps."""
    chance = random.Random(seed)  # noqa: S311
    begins = [NOW - NOW % HOUR_SECONDS - HOUR_SECONDS * n for n in range(HOURS_KEPT + 1, 1, -1)]
    return Memory(
        samples=tuple(FillSample(at + chance.random(), chance.random() * 1e11) for at in begins),
        hours=tuple(
            Hour(at, chance.random() * 1e3, chance.random() * 1e8, exceeded=False) for at in begins
        ),
    )


@pytest.mark.parametrize("number", [3, 12])
def test_an_hour_of_looks_at_volumes_asks_what_is_counted(number: int, bill: Bill) -> None:
    world, records = Volumes(number=number), Records(TABLE, REGION)
    for seed, claim in enumerate(world.claims()):
        volume_records.write(records, claim.volume_id, two_weeks(seed))
    policy = PoolSettings(Policy(apply=False), (SPEC,))
    lookout = Lookout(
        cast("Any", world),
        Sources(
            cast("Any", world), cast("Any", world), CloudWatchLoads(REGION, client=world), None
        ),
        Departing(Ledger(TABLE, "orders", REGION), Runs(records, "orders"), records),
        records,
        VolumeSettings(applies=False, frozen=False, budget_usd=None, pools={"broker-a": policy}),
    )
    steward = Steward(lookout, pricing.book(REGION))
    bill.begin()
    looks = 60 // schedule_minutes("volumes")
    assert looks * LOOK == HOUR_SECONDS
    for _ in range(looks):
        steward.turn(world.now)
        world.now += LOOK
    assert bill.reads == looks * (own.READS["volumes"] + number * own.VOLUME_READS)
    written = looks * own.WRITES["volumes"] + number * own.VOLUME_WRITES_PER_HOUR
    assert 0.9 * float(written) <= bill.writes <= 1.1 * float(written)
    each = own.METRICS_PER_VOLUME + own.METRICS_PER_INSTANCE
    assert world.asked_of_cloudwatch == looks // LOOKS_PER_LOAD * number * each
