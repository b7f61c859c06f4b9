"""`stillwater report` on this machine and on EMR Serverless, and the bills in S3 that it reads."""

import ast
import json
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import boto3
import pytest
from pyspark.sql import Row
from typer.testing import CliRunner

from cli import __main__ as command
from cli import emr, report
from cli.emr import JobRun
from cli.main import app
from core.cluster.report_facts import report_facts
from core.ground.errors import InvalidInput, StillwaterError
from core.settings import facts
from infra.spec import read
from spark import tables
from spark.files import LocalFiles, fingerprint
from spark.ingest import manifest
from spark.jobs import scheduled
from spark.months import Refresh
from spark.tables import Table
from spark.tag_keys import KafkaTags
from tests.every_case import every_case
from tests.unit.spark import month

RUNNER = CliRunner()
EXAMPLE = Path(__file__).parents[3] / "stacks" / "config" / "clusters" / "example.yaml"


CHECKED = [
    (["--older-than-days", "30"], 1, "read on 2024-09-30"),
    (["--older-than-days", "36500"], 0, "None was read more than 36500 days ago."),
    (["--region", "us-eats-1"], 1, "`stillwater prices fetch --region us-eats-1` fetches them."),
]


@every_case("options, code, said", CHECKED)
def test_the_price_book_says_what_is_old(options: list[str], code: int, said: str) -> None:
    result = RUNNER.invoke(app, ["prices", "check", *options])
    assert result.exit_code == code
    assert said in result.output


REFUSED: dict[tuple[str, ...], str] = {
    ("prices", "check", "--tables", "/nowhere"): "holds no table usage",
    ("report", "--on", "the-moon"): "--on the-moon is not a place for a report",
    ("report", "--on", "emr"): "--environment ENV",
    ("report", "--on", "emr", "--environment", "example", "--bill", "here.csv"):
        "EMR does not see here.csv",
}  # fmt: skip


@every_case("words, sentence", REFUSED.items())
def test_what_cannot_be_done_is_said_before_aws_is_asked(
    words: tuple[str, ...], sentence: str
) -> None:
    result = RUNNER.invoke(app, words)
    assert isinstance(result.exception, InvalidInput)
    assert sentence in str(result.exception)


def test_a_spec_becomes_the_facts_that_a_job_reads_back(tmp_path: Path) -> None:
    known = report.read_facts(EXAMPLE)
    assert known == report_facts(read(EXAMPLE))
    assert known is not None
    path = tmp_path / "facts.json"
    path.write_text(facts.to_json(known))
    assert report.read_facts(path) == known
    assert report.read_facts(None) is None
    assert known.retention_seconds == 168 * 3600
    assert known.pool_of("broker-a") == known.pool_of("broker")


def test_whether_consumers_may_stay_in_their_zone_is_a_fact_of_the_spec() -> None:
    spec = read(EXAMPLE)
    assert report_facts(spec).follower_fetching is True
    kafka = spec.kafka.model_copy(update={"config": {"replica.selector.class": "org.acme.Own"}})
    assert report_facts(spec.model_copy(update={"kafka": kafka})).follower_fetching is False
    written = json.loads(facts.to_json(report_facts(spec)))
    del written["follower_fetching"]
    assert facts.parse(json.dumps(written).encode(), "older").follower_fetching is None


def test_facts_of_another_version_say_how_to_write_them_again(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"archive_name": "a"}))
    with pytest.raises(InvalidInput, match="write them again"):
        report.read_facts(path)


REPOSITORY = Path(__file__).parents[3]
LOCKED = re.compile(r"^([a-z0-9._-]+)==", re.MULTILINE)


def imported_by(folder: Path) -> set[str]:
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found


def test_each_package_that_a_report_alone_imports_is_named() -> None:
    always = set(LOCKED.findall((REPOSITORY / "requirements.txt").read_text(encoding="utf-8")))
    known = packages_distributions()
    others = {
        name
        for name in imported_by(REPOSITORY / "spark") - sys.stdlib_module_names
        if {each.lower() for each in known.get(name, ())} - always - {"stillwater-kafka"}
    }
    # pandas is what pyspark imports itself.
    assert {"py4j", "pyspark"} <= others <= command.REPORT_PACKAGES


@pytest.mark.parametrize("absent", sorted(command.REPORT_PACKAGES))
def test_whichever_is_missed_first_the_remedy_is_the_same(
    absent: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object) -> None:
        raise ModuleNotFoundError(f"No module named '{absent}'", name=absent)

    monkeypatch.setattr(report, "_copied_options", missing)
    with pytest.raises(SystemExit) as ended:
        command._run(["report", "--bill", "own"])
    said = f"{ended.value.code}{capsys.readouterr()}"
    assert command.WITHOUT_REPORT in said
    assert "report]" in said


REGION = "us-east-1"
ROLE = "arn:aws:iam::123456789012:role/report-job"
TOLD = (
    *("--bill", "s3://bills/export/x", "--namespace", "glue.x", "--cluster", "orders"),
    *("--facts", "s3://bills/facts/cluster.json", "--metrics", "s3://bills/metrics"),
    *("--history", "s3://incidents/incidents", "--unsettled"),
)
RUN = JobRun("app", "run-1", "s3://bills/tables/runs/token", "s3://bills/logs/")


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


def submitted(job: str, **options: Any) -> tuple[Any, JobRun, Any]:
    """Return a client, the run of a job that it was given, and the run as EMR shows it."""
    client = boto3.client("emr-serverless", region_name=REGION)
    made = client.create_application(name="x", releaseLabel="emr-7.0.0", type="SPARK")
    job = json.dumps(json.loads(job) | {"ApplicationId": made["applicationId"]})
    run = emr.submit(client, job, token="token", **options)
    found = client.get_job_run(applicationId=run.application_id, jobRunId=run.run_id)["jobRun"]
    return client, run, found


class Answers:
    """An emr-serverless client that gives one state after another."""

    def __init__(self, *states: str, details: str = "") -> None:
        self._states, self._details = list(states), details

    def start_job_run(self, **_: Any) -> Mapping[str, Any]:
        raise AssertionError

    def get_job_run(self, **_: Any) -> Mapping[str, Any]:
        return {"jobRun": {"state": self._states.pop(0), "stateDetails": self._details}}


def test_a_run_is_the_stacks_job_with_tables_of_its_own(aws: None) -> None:
    client, run, found = submitted(a_job(), months=["2026-10"])
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


def test_tables_are_fetched_and_nothing_leaves_their_folder(s3: Any, tmp_path: Path) -> None:
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
    known = (each.name for each in vars(tables).values() if isinstance(each, tables.Table))
    # Rotations are read again by every run.
    assert {*emr.TABLES} == {*known} - {"rotations"}


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
    job = a_job(ClientToken="<aws.scheduler.execution-id>")
    instead = {"bill": "s3://a/focus.csv.gz", "metrics": "s3://b/metrics", "history": None}
    *_, found = submitted(job, instead=instead)
    given = found["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    known = scheduled.parser().parse_args(given)
    assert (known.bill, known.metrics) == ("s3://a/focus.csv.gz", "s3://b/metrics")
    assert known.history == "s3://incidents/incidents"


def test_a_run_without_tables_is_no_success(s3: Any, tmp_path: Path) -> None:
    with pytest.raises(StillwaterError, match="holds no tables"):
        emr.fetch(s3, RUN, tmp_path)


@pytest.mark.parametrize("job", ["{", "{}", '{"JobDriver": {"SparkSubmit": {}}}'])
def test_an_output_that_is_no_request_is_one_sentence(job: str) -> None:
    with pytest.raises(InvalidInput, match="run `stillwater up` again"):
        emr.submit(Answers(), job, token="token")


EXPORT = "s3://bills/prefix/export"


@pytest.fixture
def s3(aws: None) -> Any:
    client = boto3.client("s3", region_name=REGION)
    client.create_bucket(Bucket="bills")
    return client


def put(s3: Any, name: str, body: bytes = b"x") -> None:
    s3.put_object(Bucket="bills", Key=f"prefix/export/{name}", Body=body)


def deliver(s3: Any, period: str, execution: str) -> str:
    """Put a month's refresh as an export that keeps each of them does; return its folder."""
    folder = f"BILLING_PERIOD={period}/{execution}"
    file = f"data/{folder}/bill-00001.snappy.parquet"
    put(s3, file, execution.encode())
    manifest = {"dataFiles": [f"{EXPORT}/{file}"]}
    put(s3, f"metadata/{folder}/bill-Manifest.json", json.dumps(manifest).encode())
    return folder


def copied_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_months_newest_refresh_alone_is_copied(s3: Any, tmp_path: Path, scheme: str) -> None:
    deliver(s3, "2026-10", "2026-11-01")
    newest = deliver(s3, "2026-10", "2026-11-02")
    deliver(s3, "2026-11", "2026-11-02")
    put(s3, "data/BILLING_PERIOD=2026-10/left-behind.snappy.parquet")
    address = EXPORT.replace("s3:", f"{scheme}:", 1)
    found = emr.copy_bill(s3, f"{address}/", tmp_path / "copy", ["2026-10"])
    expected = {f"data/{newest}/bill-00001.snappy.parquet", f"metadata/{newest}/bill-Manifest.json"}
    assert copied_files(found) == expected
    file = found / "data" / newest / "bill-00001.snappy.parquet"
    assert file.read_bytes() == b"2026-11-02"


def test_a_delivery_that_lacks_a_file_is_refused(s3: Any, tmp_path: Path) -> None:
    folder = deliver(s3, "2026-10", "2026-11-01")
    s3.delete_object(Bucket="bills", Key=f"prefix/export/data/{folder}/bill-00001.snappy.parquet")
    with pytest.raises(InvalidInput, match="the delivery is not complete"):
        emr.copy_bill(s3, EXPORT, tmp_path)


def test_one_file_is_copied_under_its_name(s3: Any, tmp_path: Path) -> None:
    put(s3, "focus.csv.gz", b"bill")
    put(s3, "focus.csv.gz.old", b"other")
    found = emr.copy_bill(s3, f"{EXPORT}/focus.csv.gz", tmp_path / "copy")
    assert (found.name, found.read_bytes()) == ("focus.csv.gz", b"bill")


def test_another_folder_is_copied_whole_and_nothing_leaves_it(s3: Any, tmp_path: Path) -> None:
    for name in ("day=1/a.jsonl", "day=2/b.jsonl", "day=2/", "../outside.jsonl"):
        put(s3, name)
    found = emr.copy_everything(s3, EXPORT, tmp_path / "copy")
    assert copied_files(found) == {"day=1/a.jsonl", "day=2/b.jsonl"}
    assert copied_files(tmp_path) == {"copy/day=1/a.jsonl", "copy/day=2/b.jsonl"}


def test_nothing_at_an_address_is_said(s3: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is nothing at s3://bills/absent"):
        emr.copy_bill(s3, "s3://bills/absent", tmp_path)


def test_what_s3_refuses_names_the_rights_that_are_needed(s3: Any, tmp_path: Path) -> None:
    with pytest.raises(StillwaterError, match="You need s3:ListBucket on the bucket"):
        emr.copy_bill(s3, "s3://another/export", tmp_path)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (None, ["2026-10", "2026-11"]),
        ("2026-11", ["2026-10", "2026-11"]),
        ("2026-10", ["2026-10"]),
        ("2026-08", ["2026-08"]),
    ],
)
def test_a_month_comes_with_the_one_before(s3: Any, asked: str | None, named: list[str]) -> None:
    for period in ("2026-08", "2026-10", "2026-11"):
        deliver(s3, period, "first")
    assert emr.months(s3, EXPORT, asked) == named


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("2026-09", "has no delivery of 2026-09, only 2026-10"),
        ("October", "--month October is not a month; write YYYY-MM"),
    ],
)
def test_a_month_that_was_never_delivered_is_named(s3: Any, asked: str, sentence: str) -> None:
    deliver(s3, "2026-10", "first")
    with pytest.raises(InvalidInput, match=sentence):
        emr.months(s3, EXPORT, asked)


def test_of_a_bill_that_is_one_file_no_month_is_named(s3: Any) -> None:
    put(s3, "focus.csv.gz", b"bill")
    assert emr.months(s3, f"{EXPORT}/focus.csv.gz", "2026-10") == []


def test_a_folder_is_kept_once_something_is_in_it(s3: Any) -> None:
    assert emr.existing_folder(s3, f"{EXPORT}/metrics") is None
    put(s3, "metrics/answer.json", b"{}")
    assert emr.existing_folder(s3, f"{EXPORT}/metrics") == f"{EXPORT}/metrics"
    assert emr.existing_folder(s3, None) is None


class Tables:
    """A store that holds months as they were when they were last final."""

    def __init__(self, *noted: Row) -> None:
        self._noted = noted

    def rows(self, table: Table) -> list[Row]:
        assert table is tables.DELIVERIES
        return list(self._noted)


def noted(bill: Path, label: str, **months: str) -> Tables:
    """Return tables as a report leaves them that has read a copy of a bill."""
    files = LocalFiles()
    if bill.is_dir():
        found = manifest.refreshes(files, str(bill))[1]
    else:
        printed = fingerprint(LocalFiles().versions(str(bill)), str(bill), [str(bill)])
        found = dict.fromkeys(months, Refresh("", 1, printed))
    return Tables(
        *(
            month.row(
                tables.DELIVERIES.schema,
                billing_period=period,
                bill=label,
                execution=found[period].execution,
                fingerprint=found[period].fingerprint,
                ingested_at=datetime.fromisoformat(read_on),
            )
            for period, read_on in months.items()
        )
    )


def test_a_final_month_that_tables_hold_is_not_copied_again(s3: Any, tmp_path: Path) -> None:
    folders = {p: deliver(s3, p, "first") for p in ("2026-09", "2026-10", "2026-11")}
    copy = emr.copy_bill(s3, EXPORT, tmp_path)
    held = noted(copy, "bill", **{"2026-10": "2026-11-15", "2026-11": "2026-11-20"})
    assert to_copy(s3, EXPORT, None, held) == (["2026-11"], ["2026-10"])
    assert to_copy(s3, EXPORT, "2026-10", held) == (["2026-09"], ["2026-10"])
    put(s3, f"data/{folders['2026-10']}/bill-00001.snappy.parquet", b"longer")
    assert to_copy(s3, EXPORT, None, held) == (["2026-10", "2026-11"], [])


def test_one_file_that_tables_hold_is_not_copied_again(s3: Any, tmp_path: Path) -> None:
    put(s3, "focus.csv.gz", b"bill")
    copy = emr.copy_bill(s3, f"{EXPORT}/focus.csv.gz", tmp_path)
    held = noted(copy, "focus.csv.gz", **{"2026-10": "2026-11-15"})
    assert to_copy(s3, f"{EXPORT}/focus.csv.gz", None, held) == ([], ["2026-10"])
    assert to_copy(s3, f"{EXPORT}/focus.csv.gz", None, Tables()) == (None, [])
    put(s3, "focus.csv.gz", b"longer")
    assert to_copy(s3, f"{EXPORT}/focus.csv.gz", None, held) == (None, [])


def to_copy(
    s3: Any, address: str, asked: str | None, held: Tables
) -> tuple[list[str] | None, list[str]]:
    return emr.months_to_copy(s3, address, asked, held, KafkaTags())  # type: ignore[arg-type] # all it asks
