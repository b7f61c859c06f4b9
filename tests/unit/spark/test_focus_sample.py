"""The real FOCUS sample against DuckDB: the same components and dollars, asked for in SQL."""

from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pytest

from spark import tables
from spark.ingest import bill
from spark.jobs import ingest
from spark.report.evidence import Report
from spark.rules.meters import Attribution
from spark.tables import ParquetStore
from tests.unit.spark import bills, month

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not bills.SAMPLE.is_file(), reason="the FOCUS sample lies outside the project"
    ),
]
# FOCUS has no usage types: what a line bought is in its service, its unit and its text. Written
# once more by hand, from the sample's own lines, and not from spark.rules.line.
ORACLE = r"""
    WITH lines AS (
        SELECT CAST(BilledCost AS DECIMAL(38, 18)) AS billed,
            CAST(EffectiveCost AS DECIMAL(38, 18)) AS effective, ProviderName AS provider,
            ChargeCategory AS category, PricingUnit AS unit, lower(ChargeDescription) AS text,
            ServiceName AS service, service = 'Amazon Elastic Compute Cloud' AS is_ec2
        FROM read_csv(?, all_varchar=true, nullstr='NULL')
    )
    SELECT CASE
        WHEN provider IS DISTINCT FROM 'AWS' OR category IN ('Tax', 'Credit', 'Purchase',
            'Adjustment') THEN 'other'
        WHEN is_ec2 AND unit = 'Hours' AND (text LIKE '%instance hour%' OR text LIKE
            '%instance-hour%' OR text LIKE '%reserved instance applied%') THEN 'EC2 instances'
        WHEN is_ec2 AND text LIKE '%gp3) provisioned storage%' THEN 'gp3 storage'
        WHEN text LIKE '%provisioned iops-month of gp3%' THEN 'gp3 IOPS'
        WHEN text LIKE '%provisioned mibps-month of gp3%' THEN 'gp3 throughput'
        WHEN is_ec2 AND text LIKE '%snapshot%' THEN 'snapshots'
        WHEN unit = 'GB' AND text LIKE '%regional data transfer%' THEN 'inter-AZ transfer'
        WHEN unit = 'GB' AND (text LIKE '% data transfer to %(%'
            OR text LIKE '% data transfer from %(%') THEN 'inter-region transfer'
        WHEN service = 'Elastic Load Balancing' AND unit IN ('Hours', 'LCU-Hours')
            THEN 'load balancer'
        WHEN service = 'Amazon Virtual Private Cloud' AND (text LIKE '%vpc endpoint%'
            OR text LIKE '%vpcendpoint%') THEN 'PrivateLink'
        WHEN unit IN ('Hours', 'GB') AND text LIKE '%nat gateway%' THEN 'NAT gateway'
        WHEN service LIKE '%Kubernetes' AND text LIKE '%eks cluster%' THEN 'control plane'
        ELSE 'elsewhere' END AS component,
        count(*), sum(billed), sum(effective)
    FROM lines GROUP BY ALL"""
# What the oracle does not look for: mostly other people's services and old kinds of volumes.
ELSEWHERE = {"other", "elsewhere", "other volumes", "internet egress", "public IPv4"}
Figures = dict[str, tuple[int, Decimal, Decimal]]


@pytest.fixture(scope="module")
def oracle() -> Figures:
    """The rows, billed and effective dollars of each component."""
    found = duckdb.connect().execute(ORACLE, [str(bills.SAMPLE)]).fetchall()
    return {name: figures for name, *figures in found}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The sample's lines, of all its months."""
    store = ParquetStore(str(tmp_path_factory.mktemp("sample")))
    came = ingest.run(bill.read(bills.SAMPLE), store, now=datetime.now(UTC))
    read = {"rows": came.lines, "bad_rows": sum(came.quarantined.values())}
    return month.a_report(*store.rows(tables.COST), today=date(2026, 11, 20), **read)


def test_every_component_has_the_rows_and_dollars_that_sql_finds(
    sample: Report, oracle: Figures
) -> None:
    shares = {s.name: [s.charges, s.billed, s.amortised] for s in sample.components()}
    named, found = (
        {name: row for name, row in known.items() if name not in ELSEWHERE}
        for known in (oracle, shares)
    )
    assert found == named
    assert set(named) >= {"gp3 storage", "gp3 IOPS", "gp3 throughput", "inter-AZ transfer"}
    # Throughput is billed per GiB though its text says MiB: of a volume with 125 MiB/s more than
    # included for a part of an hour, at 48.7424 a GiB/s.
    throughput = Decimal("0.0008477105") * Decimal("48.7424")
    assert abs(found["gp3 throughput"][1] - throughput) < Decimal("1e-9")


def test_the_totals_are_the_files_own_and_no_row_is_unexplained(
    sample: Report, oracle: Figures
) -> None:
    rows, billed, effective = map(sum, zip(*oracle.values(), strict=True))
    assert (sample.rows, sample.bad_rows) == (rows, 0) == (1000, 0)
    assert (sample.billed, sample.amortised) == (billed, effective)
    assert sample.attributed(Attribution.NOBODY) == sample.billed
    assert not sample.provisional
