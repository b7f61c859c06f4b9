"""The real FOCUS sample against DuckDB: the same components and dollars, asked for in SQL."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from spark.report.model import Share
from spark.rules.names import Attribution
from tests.unit.spark import bills, cost_report

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not bills.SAMPLE.is_file(), reason="the FOCUS sample lies outside the project"
    ),
]
TODAY = date(2026, 11, 20)
# FOCUS has no usage types: what a line bought is in its service, its unit and its text. Written
# once more by hand, from the sample's own lines, and not from spark.rules.line.
ORACLE = r"""
    WITH lines AS (
        SELECT
            CAST(BilledCost AS DECIMAL(38, 18)) AS billed,
            CAST(EffectiveCost AS DECIMAL(38, 18)) AS effective,
            ProviderName AS provider, ChargeCategory AS category, ServiceName AS service,
            PricingUnit AS unit, lower(ChargeDescription) AS text
        FROM read_csv(?, all_varchar=true, nullstr='NULL')
    )
    SELECT CASE
        WHEN provider IS DISTINCT FROM 'AWS' OR category IN ('Tax', 'Credit', 'Purchase',
            'Adjustment') THEN 'other'
        WHEN service LIKE 'Amazon Elastic Compute Cloud' AND unit = 'Hours'
            AND (text LIKE '%instance hour%' OR text LIKE '%instance-hour%'
                OR text LIKE '%reserved instance applied%') THEN 'EC2 instances'
        WHEN service LIKE 'Amazon Elastic Compute Cloud' AND text LIKE '%gp3) provisioned storage%'
            THEN 'gp3 storage'
        WHEN text LIKE '%provisioned iops-month of gp3%' THEN 'gp3 IOPS'
        WHEN text LIKE '%provisioned mibps-month of gp3%' THEN 'gp3 throughput'
        WHEN service LIKE 'Amazon Elastic Compute Cloud' AND text LIKE '%snapshot%' THEN 'snapshots'
        WHEN unit = 'GB' AND text LIKE '%regional data transfer%' THEN 'inter-AZ transfer'
        WHEN unit = 'GB'
            AND (text LIKE '% data transfer to %(%' OR text LIKE '% data transfer from %(%')
            THEN 'inter-region transfer'
        WHEN service = 'Elastic Load Balancing' AND unit IN ('Hours', 'LCU-Hours')
            THEN 'load balancer'
        WHEN service = 'Amazon Virtual Private Cloud'
            AND (text LIKE '%vpc endpoint%' OR text LIKE '%vpcendpoint%') THEN 'PrivateLink'
        WHEN unit IN ('Hours', 'GB') AND text LIKE '%nat gateway%' THEN 'NAT gateway'
        WHEN service LIKE '%Kubernetes' AND text LIKE '%eks cluster%' THEN 'control plane'
        ELSE 'elsewhere' END AS component,
        count(*), sum(billed), sum(effective)
    FROM lines GROUP BY ALL"""
# What the oracle does not look for: mostly other people's services and old kinds of volumes.
ELSEWHERE = ("other", "elsewhere", "other volumes", "internet egress", "public IPv4")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> cost_report.CostResult:
    out = tmp_path_factory.mktemp("sample")
    return cost_report.report_on(bill_at=bills.SAMPLE, out=out, today=TODAY)


def asked(path: Path) -> dict[str, tuple[int, Decimal, Decimal]]:
    rows = duckdb.connect().execute(ORACLE, [str(path)]).fetchall()
    return {name: (count, billed, effective) for name, count, billed, effective in rows}


def told(share: Share) -> tuple[int, Decimal, Decimal]:
    return share.charges, share.billed, share.amortised


def test_every_component_has_the_rows_and_dollars_that_sql_finds(
    result: cost_report.CostResult,
) -> None:
    oracle = asked(bills.SAMPLE)
    shares = {share.name: told(share) for share in result.report.components()}
    named = {name: row for name, row in oracle.items() if name not in ELSEWHERE}
    assert {name: row for name, row in shares.items() if name not in ELSEWHERE} == named
    assert set(named) >= {"gp3 storage", "gp3 IOPS", "gp3 throughput", "inter-AZ transfer"}


def test_the_totals_are_the_files_own_and_no_row_is_unexplained(
    result: cost_report.CostResult,
) -> None:
    rows = asked(bills.SAMPLE).values()
    assert result.rows == sum(row[0] for row in rows) == 1000
    assert result.bad_rows == 0
    assert result.bill_total == result.report_total == sum(row[1] for row in rows)
    assert result.amortised_total == sum(row[2] for row in rows)
    assert result.report.attributed(Attribution.NOBODY) == result.report.billed
    assert not result.report.provisional


def test_throughput_is_billed_per_gib_though_its_text_says_mib(
    result: cost_report.CostResult,
) -> None:
    # Of a volume with 125 MiB/s more than included for a part of an hour, at 48.7424 a GiB/s.
    throughput = Decimal("0.0008477105") * Decimal("48.7424")
    assert abs(result.components["gp3 throughput"] - throughput) < Decimal("1e-9")
