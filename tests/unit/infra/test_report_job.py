"""The job that reads bills: its request, its wheel, and the export it reads."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

from infra import bill_export, spark_wheel
from spark.ingest import cur, splits
from tests.unit.infra.recording import Recorded


def test_the_export_selects_every_column_that_the_reader_asks_for() -> None:
    selected = set(bill_export.columns(split=False))
    assert set(cur.REQUIRED) | set(cur.OPTIONAL) | {"resource_tags"} <= selected
    configuration = bill_export.configuration(split=False)[bill_export.TABLE]
    assert configuration["INCLUDE_RESOURCES"] == "TRUE"


def test_the_export_has_what_pods_cost_where_the_spec_asks_for_it() -> None:
    table = bill_export.TABLE
    setting = "INCLUDE_SPLIT_COST_ALLOCATION_DATA"
    # AWS refuses a column that the table, made without such lines, does not have.
    assert not set(bill_export.columns(split=False)) & set(splits.COLUMNS)
    assert bill_export.configuration(split=False)[table][setting] == "FALSE"
    wanted = {*splits.COLUMNS, *splits.NET.values()}
    assert wanted <= set(bill_export.columns(split=True))
    assert bill_export.configuration(split=True)[table][setting] == "TRUE"


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
    keys = {r.inputs["key"] for r in analytics.of("s3/bucketObjectv2:BucketObjectv2")}
    bucket = "s3://test-orders-billing-123456789012/"
    assert submitted["EntryPoint"].removeprefix(bucket) in keys
    assert f"spark.submit.pyFiles={bucket}" in submitted["SparkSubmitParameters"]
    bill = submitted["EntryPointArguments"][submitted["EntryPointArguments"].index("--bill") + 1]
    export = analytics.one("bcmdata/export:Export").inputs["export"]
    assert bill == f"{bucket}export/{export['name']}"


def test_the_same_sources_make_the_same_wheel(tmp_path: Path) -> None:
    first = spark_wheel.build(tmp_path / "a")
    second = spark_wheel.build(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    assert first.parent.name == second.parent.name
    with zipfile.ZipFile(first) as wheel:
        names = set(wheel.namelist())
    assert {"spark/entry.py", "core/prices.json"} <= names
    assert not [name for name in names if name.startswith(("core/cluster/", "infra/"))]


def test_pip_takes_the_wheel(tmp_path: Path) -> None:
    wheel = spark_wheel.build(tmp_path)
    target = tmp_path / "installed"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([sys.executable, *install, str(target), str(wheel)], check=True)
    assert (target / "spark" / "entry.py").is_file()
