"""What the schedule starts every morning: every table of the months that are not final."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from core.ground.errors import InvalidInput
from core.settings import facts
from local.bills.cluster import ClusterBill, lines
from local.bills.export import write
from local.bills.line import BillLine
from spark import tables
from spark.jobs import chosen_months, scheduled
from spark.tables import IcebergStore, ParquetStore, Table
from spark.tag_keys import KafkaTags
from tests.unit.spark import simulated
from tests.unit.spark.simulated import FACTS, Rotation

pytestmark = [pytest.mark.integration, pytest.mark.long]
NAMESPACE = "here.scheduled"
FIRST, NEXT = datetime(2026, 11, 20, 6, tzinfo=UTC), datetime(2026, 11, 21, 6, tzinfo=UTC)
OF_A_BILL = (tables.USAGE, tables.COST, tables.TRANSFER)
OF_A_CLUSTER = (tables.UNIT, tables.STORAGE, tables.RESYNC)


@dataclass(frozen=True)
class Mornings:
    """Two mornings of the job, and the store as each left it."""

    said: tuple[str, str]
    store: IcebergStore
    folder: Path

    def deliveries(self) -> dict[str, Row]:
        return {row.billing_period: row for row in self.store.rows(tables.DELIVERIES)}


def month(period: str, hours: int) -> Iterator[BillLine]:
    return lines(ClusterBill(name=FACTS.cluster, period=period, hours=hours))


@pytest.fixture(scope="module")
def mornings(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mornings:
    folder = tmp_path_factory.mktemp("scheduled")
    bill, history = folder / "bill", folder / "history"
    for period in ("2026-10", "2026-11"):
        write(bill, month(period, 2), execution="first")
    (folder / "facts.json").write_text(facts.to_json(FACTS))
    known = ["--facts", str(folder / "facts.json"), "--history", history.as_uri()]
    told = ["--bill", str(bill), "--namespace", NAMESPACE, "--unsettled", *known]
    first = scheduled.run(lambda: session, scheduled.parser().parse_args(told), FIRST)
    # The open month has come again, with its second day, and a broker was rotated: charges of the
    # first day alone would be a bill by the month's.
    write(bill, month("2026-11", 26), execution="second")
    # After October was final: what the ledger learnt since says nothing of it.
    simulated.write_history(history, [Rotation(10, simulated.at(11, 20, 12), 240)])
    second = scheduled.run(lambda: session, scheduled.parser().parse_args(told), NEXT)
    return Mornings((first, second), IcebergStore(session, NAMESPACE), folder)


def test_the_first_morning_makes_every_month_the_next_the_open_one_alone(
    mornings: Mornings,
) -> None:
    assert " of 2026-10, 2026-11 worth " in mornings.said[0]
    assert " of 2026-11 worth " in mornings.said[1]
    read_on = {period: row.ingested_at.date() for period, row in mornings.deliveries().items()}
    assert read_on == {"2026-10": date(2026, 11, 20), "2026-11": date(2026, 11, 21)}
    assert mornings.deliveries()["2026-11"].execution == "second"


def test_every_table_is_there_and_of_a_bill_in_every_month(mornings: Mornings) -> None:
    for each in OF_A_BILL:
        assert months_of(mornings, each) == {"2026-10", "2026-11"}, each.name
    for each in OF_A_CLUSTER:
        assert "2026-11" in months_of(mornings, each), each.name


def test_what_is_not_there_yet_is_said_until_it_is(mornings: Mornings) -> None:
    first, second = mornings.said[0], mornings.said[1]
    bills_own = first.partition("/history yet.")[2]
    assert bills_own.startswith(" The bill has net columns but no column ")
    assert second.partition(f"are in {NAMESPACE}.")[2] == bills_own
    (rotation,) = mornings.store.rows(tables.RESYNC)
    assert (rotation.billing_period, rotation.node_id) == ("2026-11", 10)


def months_of(mornings: Mornings, table: Table) -> set[str]:
    return {row.billing_period for row in mornings.store.rows(table)}


def test_when_every_month_is_final_nothing_is_read(
    session: SparkSession, mornings: Mornings, tmp_path: Path
) -> None:
    shutil.copytree(mornings.folder / "bill", tmp_path / "bill")
    for open_month in (tmp_path / "bill").rglob("BILLING_PERIOD=2026-11"):
        shutil.rmtree(open_month)
    facts_at = str(mornings.folder / "facts.json")
    told = ["--bill", str(tmp_path / "bill"), "--namespace", NAMESPACE, "--unsettled"]
    chosen = scheduled.parser().parse_args([*told, "--facts", facts_at])
    assert "is final and in here.scheduled" in scheduled.run(lambda: session, chosen, NEXT)
    # By another tag Kafka is something else in every month, and months are compared.
    (row,) = (r for p, r in mornings.deliveries().items() if p == "2026-10")
    assert (row.cluster_tag, row.pool_tag) == ("stillwater:cluster", "stillwater:pool")
    asked = KafkaTags("team", "streaming", name=FACTS.cluster)
    assert chosen_months.months_to_read(told[1], mornings.store, asked) == (["2026-10"], [])


@pytest.mark.parametrize("option", ["--metrics", "--history"])
def test_a_path_of_this_machine_that_is_not_there_is_a_mistake(
    session: SparkSession, tmp_path: Path, option: str
) -> None:
    told = ["--bill", "unread", "--tables", str(tmp_path), option, str(tmp_path / "absent")]
    with pytest.raises(InvalidInput, match=r"absent: there is no such folder or file"):
        scheduled.run(lambda: session, scheduled.parser().parse_args(told), NEXT)


def test_a_final_month_that_aws_restates_is_told_of_by_a_run_with_tables_of_its_own(
    session: SparkSession, mornings: Mornings, tmp_path: Path
) -> None:
    was = mornings.deliveries()["2026-10"].billed_cost
    write(tmp_path / "bill", month("2026-10", 3), execution="restated")
    told = ["--bill", str(tmp_path / "bill"), "--tables", str(tmp_path / "own")]
    said = scheduled.run(
        lambda: session, scheduled.parser().parse_args([*told, "--noted-in", NAMESPACE]), NEXT
    )
    assert f"AWS has restated 2026-10 since it was final: {was:.2f} as read on 2026-11-20, " in said
    (noted,) = ParquetStore(str(tmp_path / "own")).rows(tables.DELIVERIES)
    assert (noted.final_billed_cost, noted.previous_billed_cost) == (was, None)
    assert noted.billed_cost > was
    assert mornings.deliveries()["2026-10"].billed_cost == was
