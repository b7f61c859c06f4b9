"""`stillwater report --on emr` on moto: the schedule's job is run, its tables become the page.

EMR itself is moto's, which runs nothing: what its request asks for is done by the job's own entry
in this process, on copies of what stands in moto's S3, which Spark here cannot reach.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from cli import emr
from cli.emr import JobRun
from cli.main import app
from core.cluster.report_facts import report_facts
from core.settings import facts
from handlers.incidents.broom import archive_key, archive_line
from infra.spec import read
from local.bills.cluster import ClusterBill, lines
from local.bills.export import write
from local.bills.line import truth
from spark.jobs import scheduled
from spark.months import settled_on
from tests.unit.cli.test_report import REGION, ROLE, a_job
from tests.unit.spark import simulated
from tests.unit.spark.simulated import Rotation

pytestmark = pytest.mark.integration
BUCKET, INCIDENTS = "bills", "incidents"
EXAMPLE = Path(__file__).parents[3] / "stacks" / "config" / "clusters" / "example.yaml"
# Of two days: all of a month on its first day is a bill by the month, which knows no volume's size.
OCTOBER = ClusterBill(name="orders", hours=30)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """The account: the application, the schedule that starts its job, the bucket."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(emr, "POLL_SECONDS", 0.01)

    def client(service: str) -> Any:
        return boto3.client(service, region_name=REGION)

    with mock_aws():
        for name in (BUCKET, INCIDENTS):
            client("s3").create_bucket(Bucket=name)
        made = client("emr-serverless").create_application(
            name="reports", releaseLabel="emr-7.0.0", type="SPARK"
        )
        job = a_job(ApplicationId=made["applicationId"], ClientToken="<aws.scheduler.execution-id>")
        client("scheduler").create_schedule(
            Name="example-orders-reports",
            ScheduleExpression="rate(1 day)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": "arn:aws:scheduler:::aws-sdk:x", "RoleArn": ROLE, "Input": job},
        )
        yield client


def put_below(s3: Any, folder: Path, address: str) -> None:
    prefix = address.removeprefix(f"s3://{BUCKET}/")
    for path in folder.rglob("*"):
        if path.is_file():
            s3.upload_file(str(path), BUCKET, f"{prefix}/{path.relative_to(folder)}")


def run_as_emr_would(session: SparkSession, s3: Any, told: Sequence[str], folder: Path) -> None:
    """Do what a request asks for, and put its tables where it says."""
    chosen = scheduled.parser().parse_args(told)
    files = emr.S3Files(s3)
    tables, chosen.tables = chosen.tables, str(folder / "made")
    for name in ("bill", "facts", "metrics", "history"):
        address = getattr(chosen, name)
        copy = folder / name
        if files.is_folder(address) or files.is_file(address):
            copy = emr.copy_everything(s3, address, copy)
        setattr(chosen, name, copy.as_uri())
    scheduled.run(lambda: session, chosen, datetime.now(UTC))
    put_below(s3, folder / "made", tables)


@pytest.mark.long
def test_the_schedules_job_is_run_and_its_tables_become_the_page(
    session: SparkSession,
    aws: Callable[[str], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s3 = aws("s3")
    write(tmp_path / "bill", lines(OCTOBER))
    put_below(s3, tmp_path / "bill", f"s3://{BUCKET}/export/x")
    known = facts.to_json(report_facts(read(EXAMPLE)))
    s3.put_object(Bucket=BUCKET, Key="facts/cluster.json", Body=known.encode())
    rotated = simulated.incident_of(Rotation(10, simulated.at(10, 3), 60), "i-1")
    line = archive_line(rotated, "example-orders").encode()
    s3.put_object(Bucket=INCIDENTS, Key=archive_key(rotated), Body=line)
    submitted: list[Sequence[str]] = []
    follow = emr.follow

    def finished(client: Any, run: JobRun, on_state: Callable[[str], None]) -> None:
        asked = client.get_job_run(applicationId=run.application_id, jobRunId=run.run_id)
        told = asked["jobRun"]["jobDriver"]["sparkSubmit"]["entryPointArguments"]
        submitted.append(told)
        run_as_emr_would(session, s3, told, tmp_path / "emr")
        follow(client, run, on_state)

    monkeypatch.setattr(emr, "follow", finished)
    options = {"format": "json", "tables": tmp_path / "tables", "output": tmp_path}
    result = report("--on", "emr", "--environment", "example", **options)
    assert result.exception is None, result.output
    assert "SUCCESS" in result.output
    assert total(tmp_path) == truth(lines(OCTOBER)).billed
    (told,) = submitted
    chosen = scheduled.parser().parse_args(told)
    assert (chosen.bill, chosen.month) == ("s3://bills/export/x", ["2026-10"])
    assert not chosen.unsettled
    for name in ("storage", "resync"):
        assert list((tmp_path / "emr" / "made" / name).rglob("*.parquet")), name
    document = json.loads((tmp_path / "report.json").read_text())
    sections = {section["key"] for section in document["sections"]}
    assert sections >= {"cost", "storage", "resync"}


@pytest.mark.long
def test_a_bill_and_its_history_are_read_where_they_are_in_s3(
    session: SparkSession, aws: Callable[[str], Any], tmp_path: Path
) -> None:
    write(tmp_path / "bill", lines(OCTOBER))
    put_below(aws("s3"), tmp_path / "bill", f"s3://{BUCKET}/export/x")
    simulated.write_history(tmp_path / "history", [Rotation(10, simulated.at(10, 3), 60)])
    put_below(aws("s3"), tmp_path / "history", f"s3://{BUCKET}/history")
    options = {"format": "json", "tables": tmp_path / "tables", "output": tmp_path}
    asked = ("--bill", f"s3://{BUCKET}/export/x", "--history", f"s3://{BUCKET}/history")
    final = datetime.now(UTC).date() >= settled_on(OCTOBER.period)
    for was_read in (False, final):
        result = report(*asked, "--environment", "example", **options)
        assert result.exception is None, result.output
        assert total(tmp_path) == truth(lines(OCTOBER)).billed
        assert not list(tmp_path.glob(".copied-*"))
        assert (f"not read again: {OCTOBER.period}" in result.output) is was_read


def total(folder: Path) -> Decimal:
    document = json.loads((folder / "report.json").read_text())
    return Decimal(document["total"]["exact"])


def report(*words: str, **options: Any) -> Any:
    named: Mapping[str, Any] = options
    given = [word for name, value in named.items() for word in (f"--{name}", str(value))]
    return CliRunner().invoke(app, ["report", *words, *given])
