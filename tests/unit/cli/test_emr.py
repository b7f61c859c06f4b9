"""The job on EMR Serverless: the stack's own request, submitted, followed and fetched on moto."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cli import emr
from cli.emr import JobRun
from core.ground.errors import InvalidInput, StillwaterError
from spark import findings, tables
from spark.jobs import scheduled
from spark.tables import Table

REGION = "us-east-1"
ROLE = "arn:aws:iam::123456789012:role/report-job"
TOLD = (
    *("--bill", "s3://bills/export/x", "--namespace", "glue.x", "--cluster", "orders"),
    *("--facts", "s3://bills/facts/cluster.json", "--metrics", "s3://bills/metrics"),
    *("--history", "s3://incidents/incidents", "--unsettled"),
)
RUN = JobRun("app", "run-1", "s3://bills/tables/runs/token", "s3://bills/logs/")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield


def a_job(**changes: Any) -> str:
    job: dict[str, Any] = {
        "ApplicationId": "app",
        "ExecutionRoleArn": ROLE,
        "Name": "reports",
        "ExecutionTimeoutMinutes": 120,
        "JobDriver": {
            "SparkSubmit": {
                "EntryPoint": "s3://bills/code/0a/launcher.py",
                "EntryPointArguments": list(TOLD),
                "SparkSubmitParameters": "--conf a=b",
            }
        },
        "ConfigurationOverrides": {
            "MonitoringConfiguration": {"S3MonitoringConfiguration": {"LogUri": "s3://bills/logs/"}}
        },
        "Tags": {"stillwater:cluster": "orders"},
    }
    return json.dumps({**job, **changes})


class Answers:
    """An emr-serverless client that gives one state after another."""

    def __init__(self, *states: str, details: str = "") -> None:
        self._states, self._details = list(states), details

    def start_job_run(self, **_: Any) -> Mapping[str, Any]:
        raise AssertionError

    def get_job_run(self, **_: Any) -> Mapping[str, Any]:
        return {"jobRun": {"state": self._states.pop(0), "stateDetails": self._details}}


def test_a_run_is_the_stacks_job_with_tables_of_its_own(aws: None) -> None:
    client = boto3.client("emr-serverless", region_name=REGION)
    made = client.create_application(name="x", releaseLabel="emr-7.0.0", type="SPARK")
    job = a_job(ApplicationId=made["applicationId"])
    run = emr.submit(client, job, token="token", months=["2026-10"])
    found = client.get_job_run(applicationId=run.application_id, jobRunId=run.run_id)["jobRun"]
    assert found["jobDriver"]["sparkSubmit"]["entryPointArguments"] == [
        *("--bill", "s3://bills/export/x"),
        *("--tables", "s3://bills/tables/runs/token", "--cluster", "orders"),
        *("--facts", "s3://bills/facts/cluster.json", "--metrics", "s3://bills/metrics"),
        *("--history", "s3://incidents/incidents", "--month", "2026-10"),
    ]
    assert found["tags"] == {"stillwater:cluster": "orders"}
    assert run.tables == "s3://bills/tables/runs/token"
    told: list[str] = []
    emr.follow(client, run, told.append, sleep=lambda _: None)
    assert told[-1] == "SUCCESS"


def test_each_state_is_told_once() -> None:
    told: list[str] = []
    waits: list[float] = []
    client = Answers("PENDING", "RUNNING", "RUNNING", "SUCCESS")
    emr.follow(client, RUN, told.append, sleep=waits.append)
    assert told == ["PENDING", "RUNNING", "SUCCESS"]
    assert waits == [5.0] * 3


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_run_that_failed_says_why_and_where_its_logs_are(state: str) -> None:
    client = Answers(state, details="No line carries the tag")
    with pytest.raises(StillwaterError) as raised:
        emr.follow(client, RUN, lambda _: None, sleep=lambda _: None)
    assert "No line carries the tag" in str(raised.value)
    assert "s3://bills/logs/applications/app/jobs/run-1/" in str(raised.value)


def test_tables_are_fetched_and_nothing_leads_out_of_their_folder(
    aws: None, tmp_path: Path
) -> None:
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="bills")
    names = ("cost/billing_period=2026-10/a.parquet", "usage/", "../outside", "usage/_SUCCESS")
    for name in names:
        s3.put_object(Bucket="bills", Key=f"tables/runs/token/{name}", Body=b"x")
    s3.put_object(Bucket="bills", Key="tables/runs/token-2/cost/b.parquet", Body=b"x")
    stale = tmp_path / "out" / "quarantine" / "billing_period=2026-10" / "of-the-run-before"
    others = tmp_path / "out" / "another" / "of-somebody-else"
    for path in (stale, others):
        path.parent.mkdir(parents=True)
        path.touch()
    emr.fetch(s3, RUN, tmp_path / "out")
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {
        "out/cost/billing_period=2026-10/a.parquet",
        "out/usage/_SUCCESS",
        "out/another/of-somebody-else",
    }


def test_what_is_fetched_is_what_the_job_makes() -> None:
    known = [each for module in (tables, findings) for each in vars(module).values()]
    made = {table.name for table in known if isinstance(table, Table)}
    assert sorted(emr.TABLES) == sorted(made)


def test_the_job_is_the_one_the_schedule_starts(aws: None) -> None:
    scheduler = boto3.client("scheduler", region_name=REGION)
    with pytest.raises(InvalidInput, match="no schedule example-orders-reports"):
        emr.scheduled_job(scheduler, "example-orders")
    target = {"Arn": "arn:aws:scheduler:::aws-sdk:x", "RoleArn": ROLE, "Input": a_job()}
    scheduler.create_schedule(
        Name="example-orders-reports",
        ScheduleExpression="rate(1 day)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
    )
    job = emr.scheduled_job(scheduler, "example-orders")
    assert emr.job_argument(job, "bill") == "s3://bills/export/x"
    assert emr.job_argument(job, "tables") is None


def test_what_a_user_names_takes_the_place_of_what_the_schedule_reads(aws: None) -> None:
    client = boto3.client("emr-serverless", region_name=REGION)
    made = client.create_application(name="x", releaseLabel="emr-7.0.0", type="SPARK")
    job = a_job(ApplicationId=made["applicationId"], ClientToken="<aws.scheduler.execution-id>")
    instead = {"bill": "s3://a/focus.csv.gz", "metrics": "s3://b/metrics", "history": None}
    run = emr.submit(client, job, token="token", instead=instead)
    found = client.get_job_run(applicationId=run.application_id, jobRunId=run.run_id)["jobRun"]
    given = found["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    known = scheduled.parser().parse_args(given)
    assert (known.bill, known.metrics) == ("s3://a/focus.csv.gz", "s3://b/metrics")
    assert known.history == "s3://incidents/incidents"


def test_a_run_without_tables_is_no_success(aws: None, tmp_path: Path) -> None:
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="bills")
    with pytest.raises(StillwaterError, match="holds no tables"):
        emr.fetch(s3, RUN, tmp_path)


@pytest.mark.parametrize("job", ["{", "{}", '{"JobDriver": {"SparkSubmit": {}}}'])
def test_an_output_that_is_no_request_is_one_sentence(job: str) -> None:
    with pytest.raises(InvalidInput, match="run `stillwater up` again"):
        emr.submit(Answers(), job, token="token")
