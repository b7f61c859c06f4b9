"""The job that reads bills: its request, its code, and the export it reads."""

import json
import zipfile
from pathlib import Path

import pytest
from pyspark import SparkContext

from core.cluster.report_facts import report_facts
from core.settings import facts
from infra.analytics import report_job, workspace
from infra.iam import Account
from spark.ingest import cur
from spark.jobs import scheduled
from tests.unit.infra import programs
from tests.unit.infra.recording import Recorded

BUCKET, INCIDENTS = "test-orders-billing-123456789012", "test-orders-incidents-123456789012"
ROLE_POLICY = "analytics-job-policy"
ACCOUNT = Account(partition="aws", region="us-east-1", account_id="123456789012")


def told(layers: dict[str, Recorded]) -> list[str]:
    """Return what the deployed job is told."""
    job = json.loads(layers["analytics"].outputs["report_job"])
    return list(job["JobDriver"]["SparkSubmit"]["EntryPointArguments"])


def test_the_export_selects_every_column_that_the_reader_asks_for() -> None:
    selected = set(workspace.columns(split=False))
    assert set(cur.REQUIRED) | set(cur.OPTIONAL) | {"resource_tags"} <= selected
    configuration = workspace.configuration(ACCOUNT, split=False)[workspace.TABLE]
    assert configuration["INCLUDE_RESOURCES"] == "TRUE"


def test_the_export_has_what_pods_cost_where_the_spec_asks_for_it() -> None:
    table = workspace.TABLE
    setting = "INCLUDE_SPLIT_COST_ALLOCATION_DATA"
    # AWS refuses a column that the table, made without such lines, does not have.
    assert not set(workspace.columns(split=False)) & set(cur.SPLIT_COLUMNS)
    assert workspace.configuration(ACCOUNT, split=False)[table][setting] == "FALSE"
    wanted = {*cur.SPLIT_COLUMNS, *cur.SPLIT_NET.values()}
    assert wanted <= set(workspace.columns(split=True))
    assert workspace.configuration(ACCOUNT, split=True)[table][setting] == "TRUE"


def test_another_query_is_an_export_once_the_first_is_gone(layers: dict[str, Recorded]) -> None:
    assert layers["analytics"].one("bcmdata/export:Export").delete_before_replace


def test_aws_may_write_this_accounts_exports_and_nothing_else(layers: dict[str, Recorded]) -> None:
    policy = json.loads(layers["analytics"].one("s3/bucketPolicy:BucketPolicy").inputs["policy"])
    (delivery,) = [s for s in policy["Statement"] if s["Sid"] == "DataExports"]
    assert delivery["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}
    assert delivery["Action"] == ["s3:GetBucketPolicy", "s3:PutObject"]


def test_the_schedule_starts_the_job_that_the_stack_hands_out(layers: dict[str, Recorded]) -> None:
    analytics = layers["analytics"]
    job = json.loads(analytics.outputs["report_job"])
    schedule = analytics.one("scheduler/schedule:Schedule").inputs["target"]
    expected = {**job, "ClientToken": "<aws.scheduler.execution-id>"}
    assert json.loads(schedule["input"]) == expected
    submitted = job["JobDriver"]["SparkSubmit"]
    bucket = f"s3://{BUCKET}/"
    keys = {r.inputs["key"] for r in analytics.of("s3/bucketObjectv2:BucketObjectv2")}
    assert submitted["EntryPoint"].removeprefix(bucket) in keys
    assert f"spark.submit.pyFiles={bucket}" in submitted["SparkSubmitParameters"]
    export = analytics.one("bcmdata/export:Export").inputs["export"]
    known = scheduled.parser().parse_args(told(layers))
    assert known.bill == f"{bucket}export/{export['name']}"


def test_the_job_makes_every_table_of_open_months(layers: dict[str, Recorded]) -> None:
    known = scheduled.parser().parse_args(told(layers))
    assert known.unsettled
    assert known.month == []
    # Ours have the tags that the job knows.
    assert (known.cluster_tag, known.pool_tag) == (None, None)
    assert known.metrics == f"s3://{BUCKET}/metrics"
    assert known.history == f"s3://{layers['operations'].outputs['incidents_bucket']}/incidents"


def test_the_job_is_told_what_the_spec_says_of_the_cluster(layers: dict[str, Recorded]) -> None:
    known = scheduled.parser().parse_args(told(layers))
    objects = layers["analytics"].of("s3/bucketObjectv2:BucketObjectv2")
    (written,) = [each for each in objects if each.inputs["key"].startswith("facts/")]
    assert known.facts == f"s3://{BUCKET}/{written.inputs['key']}"
    content = written.inputs["content"].encode()
    assert facts.parse(content, "the facts") == report_facts(programs.spec())


def test_another_spec_is_other_facts_under_the_same_key() -> None:
    changed = programs.run_layer(
        "analytics",
        programs.description(kafka={"config": {"log.retention.hours": 24}}, metrics={}),
        {"test-operations": {"incidents_bucket": INCIDENTS}},
    )
    objects = changed.of("s3/bucketObjectv2:BucketObjectv2")
    (written,) = [each for each in objects if each.inputs["key"] == "facts/cluster.json"]
    assert facts.parse(written.inputs["content"].encode(), "").retention_seconds == 24 * 3600


def test_the_job_reads_inputs_and_filed_incidents_alone(layers: dict[str, Recorded]) -> None:
    (policy,) = [
        each
        for each in layers["analytics"].of("iam/rolePolicy:RolePolicy")
        if each.name == ROLE_POLICY
    ]
    statements = {each["Sid"]: each for each in policy.policy_statements}
    bills, incidents = f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{INCIDENTS}"
    reading = {sid for sid, each in statements.items() if "s3:GetObject" in each["Action"]}
    assert reading == {"ReadInputsAndCode", "ReadIncidents", "KeepTablesAndLogs"}
    inputs = ("export", "code", "facts", "metrics")
    expected = [*(f"{bills}/{name}/*" for name in inputs), f"{bills}/metrics"]
    assert statements["ReadInputsAndCode"]["Resource"] == expected
    assert statements["ReadIncidents"] == {
        "Sid": "ReadIncidents",
        "Effect": "Allow",
        "Action": ["s3:GetObject"],
        "Resource": [f"{incidents}/incidents", f"{incidents}/incidents/*"],
    }
    assert statements["ListIncidents"]["Resource"] == [incidents]
    assert statements["ListIncidents"]["Condition"] == {
        "StringLike": {"s3:prefix": ["incidents", "incidents/*"]}
    }
    writing = [
        resource
        for each in statements.values()
        if "s3:PutObject" in each["Action"]
        for resource in each["Resource"]
    ]
    assert writing == [f"{bills}/tables/*", f"{bills}/logs/*"]


def test_the_same_sources_make_the_same_zip_which_workers_find_as_well(tmp_path: Path) -> None:
    first = report_job.build(tmp_path / "a")
    second = report_job.build(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    assert first.parent.name == second.parent.name
    # What pyspark puts on its workers' path (SparkContext.PACKAGE_EXTENSIONS).
    assert first.suffix in SparkContext.PACKAGE_EXTENSIONS
    with zipfile.ZipFile(first) as jobs:
        names = set(jobs.namelist())
    assert {"spark/entry.py", "spark/rules/meters.toml", "core/prices.json"} <= names
    assert not [name for name in names if name.startswith(("core/cluster/", "infra/"))]


def test_the_zip_brings_a_directorys_own_prices(tmp_path: Path) -> None:
    own = tmp_path / "prices.json"
    own.write_text("{}")
    with zipfile.ZipFile(report_job.build(tmp_path / "c", own_prices=own)) as jobs:
        assert jobs.read("core/own_prices.json") == b"{}"


def submitted(recorded: Recorded) -> dict[str, str]:
    """Return the settings that the deployed job is submitted with."""
    job = json.loads(recorded.outputs["report_job"])
    words = job["JobDriver"]["SparkSubmit"]["SparkSubmitParameters"].split()
    return dict(word.split("=", 1) for word in words if word != "--conf")


def analytics() -> Recorded:
    references = {"test-operations": {"incidents_bucket": INCIDENTS}}
    return programs.run_layer("analytics", programs.description(metrics={}), references)


def test_packages_are_unpacked_for_emr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = {
        name: tmp_path / f"{name[0]}0" / f"{name}-1-cp311-x.whl" for name in ("numpy", "pyarrow")
    }
    for path in wheels.values():
        path.parent.mkdir()
        path.write_bytes(b"")
    monkeypatch.setattr(report_job, "fetch_wheels", lambda: wheels)
    recorded = analytics()
    keys = {each.inputs["key"] for each in recorded.of("s3/bucketObjectv2:BucketObjectv2")}
    assert {"code/n0/numpy-1-cp311-x.zip", "code/p0/pyarrow-1-cp311-x.zip"} <= keys
    settings = submitted(recorded)
    code = f"s3://{BUCKET}/code"
    assert settings["spark.archives"] == (
        f"{code}/n0/numpy-1-cp311-x.zip#package-numpy-cp311,"
        f"{code}/p0/pyarrow-1-cp311-x.zip#package-pyarrow-cp311"
    )
    # The worker stays EMR's own, and its Pythons have room beside Java.
    for where in ("driver", "executor"):
        sizes = (settings[f"spark.{where}.{name}"] for name in ("memory", "memoryOverhead"))
        assert sum(int(size.removesuffix("g")) for size in sizes) == 16


def test_up_goes_on_without_packages_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_fetched() -> dict[str, Path]:
        raise report_job.WheelsNotFetched("pip found no pyarrow.")

    warned: list[str] = []
    monkeypatch.setattr(report_job, "fetch_wheels", not_fetched)
    monkeypatch.setattr("pulumi.log.warn", warned.append)
    settings = submitted(analytics())
    assert "spark.submit.pyFiles" in settings
    assert not [name for name in settings if "archives" in name or ".memory" in name]
    (sentence,) = warned
    assert sentence.startswith("pip found no pyarrow. No report runs on EMR without them")
