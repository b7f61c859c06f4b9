"""The job that reads bills: its request, its wheel, and the export it reads."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

from core.cluster.facts import of_spec
from core.settings import facts
from infra.analytics import bill_export, report_request, spark_wheel
from infra.iam import Account
from spark import entry
from spark.ingest import cur, splits
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
    selected = set(bill_export.columns(split=False))
    assert set(cur.REQUIRED) | set(cur.OPTIONAL) | {"resource_tags"} <= selected
    configuration = bill_export.configuration(ACCOUNT, split=False)[bill_export.TABLE]
    assert configuration["INCLUDE_RESOURCES"] == "TRUE"


def test_the_export_has_what_pods_cost_where_the_spec_asks_for_it() -> None:
    table = bill_export.TABLE
    setting = "INCLUDE_SPLIT_COST_ALLOCATION_DATA"
    # AWS refuses a column that the table, made without such lines, does not have.
    assert not set(bill_export.columns(split=False)) & set(splits.COLUMNS)
    assert bill_export.configuration(ACCOUNT, split=False)[table][setting] == "FALSE"
    wanted = {*splits.COLUMNS, *splits.NET.values()}
    assert wanted <= set(bill_export.columns(split=True))
    assert bill_export.configuration(ACCOUNT, split=True)[table][setting] == "TRUE"


def test_aws_may_write_this_accounts_exports_and_nothing_else(
    layers: dict[str, Recorded],
) -> None:
    policy = json.loads(layers["analytics"].one("s3/bucketPolicy:BucketPolicy").inputs["policy"])
    (delivery,) = [s for s in policy["Statement"] if s["Sid"] == "DataExports"]
    assert delivery["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}
    assert delivery["Action"] == ["s3:GetBucketPolicy", "s3:PutObject"]


def test_the_schedule_starts_the_job_that_the_stack_hands_out(layers: dict[str, Recorded]) -> None:
    analytics = layers["analytics"]
    job = json.loads(analytics.outputs["report_job"])
    schedule = analytics.one("scheduler/schedule:Schedule").inputs["target"]
    assert json.loads(schedule["input"]) == {
        **job,
        "ClientToken": "<aws.scheduler.execution-id>",
    }
    submitted = job["JobDriver"]["SparkSubmit"]
    bucket = f"s3://{BUCKET}/"
    keys = {r.inputs["key"] for r in analytics.of("s3/bucketObjectv2:BucketObjectv2")}
    assert submitted["EntryPoint"].removeprefix(bucket) in keys
    assert f"spark.submit.pyFiles={bucket}" in submitted["SparkSubmitParameters"]
    export = analytics.one("bcmdata/export:Export").inputs["export"]
    known = entry.parser().parse_args(told(layers))
    assert known.bill == f"{bucket}export/{export['name']}"


def test_the_job_is_told_which_tags_mean_kafka_where_they_are_not_ours() -> None:
    made = report_request.Made(
        **dict.fromkeys(("application", "role", "bucket", "wheel", "launcher"), "x"),
        bill="export/x",
        facts="facts/cluster.json",
        incidents_bucket="incidents",
        database="tables",
    )

    def known(cluster_tag: str | None, pool_tag: str | None) -> tuple[str | None, str | None]:
        tags = {"--cluster-tag": cluster_tag, "--pool-tag": pool_tag}
        job = report_request.Described(name="reports", cluster="orders", tags={}, bill_tags=tags)
        submitted = report_request.start(job, made)["JobDriver"]["SparkSubmit"]
        chosen = entry.parser().parse_args(submitted["EntryPointArguments"])
        return chosen.cluster_tag, chosen.pool_tag

    assert known("team=streaming", "pool") == ("team=streaming", "pool")
    assert known(None, None) == (None, None)


def test_the_job_makes_every_table_of_the_months_that_are_not_final(
    layers: dict[str, Recorded],
) -> None:
    known = entry.parser().parse_args(told(layers))
    assert known.all_jobs
    assert known.unsettled
    assert known.month == []
    assert known.metrics == f"s3://{BUCKET}/metrics"
    assert known.history == f"s3://{layers['operations'].outputs['incidents_bucket']}/incidents"


def test_the_job_is_told_what_the_spec_says_of_the_cluster(layers: dict[str, Recorded]) -> None:
    known = entry.parser().parse_args(told(layers))
    objects = layers["analytics"].of("s3/bucketObjectv2:BucketObjectv2")
    (written,) = [each for each in objects if each.inputs["key"].startswith("facts/")]
    assert known.facts == f"s3://{BUCKET}/{written.inputs['key']}"
    content = written.inputs["content"].encode()
    assert facts.parse(content, "the facts") == of_spec(programs.spec())


def test_another_spec_is_other_facts_under_the_same_key() -> None:
    changed = programs.run_layer(
        "analytics",
        programs.description(kafka={"config": {"log.retention.hours": 24}}, metrics={}),
        {"test-operations": {"incidents_bucket": INCIDENTS}},
    )
    objects = changed.of("s3/bucketObjectv2:BucketObjectv2")
    (written,) = [each for each in objects if each.inputs["key"] == "facts/cluster.json"]
    assert facts.parse(written.inputs["content"].encode(), "").retention_seconds == 24 * 3600


def test_the_job_reads_its_inputs_and_the_filed_incidents_and_nothing_else(
    layers: dict[str, Recorded],
) -> None:
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
    assert statements["ReadInputsAndCode"]["Resource"] == [
        *(f"{bills}/{name}/*" for name in inputs),
        f"{bills}/metrics",
    ]
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


def test_the_same_sources_make_the_same_wheel(tmp_path: Path) -> None:
    first = spark_wheel.build(tmp_path / "a")
    second = spark_wheel.build(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    assert first.parent.name == second.parent.name
    with zipfile.ZipFile(first) as wheel:
        names = set(wheel.namelist())
    assert {"spark/entry.py", "core/prices.json"} <= names
    assert not [name for name in names if name.startswith(("core/cluster/", "infra/"))]


def test_the_wheel_brings_a_directorys_own_prices(tmp_path: Path) -> None:
    own = tmp_path / "prices.json"
    own.write_text("{}")
    with zipfile.ZipFile(spark_wheel.build(tmp_path / "c", own_prices=own)) as wheel:
        assert wheel.read("core/own_prices.json") == b"{}"


def test_pip_takes_the_wheel(tmp_path: Path) -> None:
    wheel = spark_wheel.build(tmp_path)
    target = tmp_path / "installed"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([sys.executable, *install, str(target), str(wheel)], check=True)
    assert (target / "spark" / "entry.py").is_file()
