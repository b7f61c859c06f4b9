"""`stillwater report --warehouse`: what it takes for one, and what it says where it cannot."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import report
from cli.main import app
from core.ground.errors import InvalidInput, MissingPrerequisite, StillwaterError
from local.spark import iceberg

NAMESPACE = report.NAMESPACE


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """A jar with the one class that tells Iceberg's from others."""
    path = tmp_path / "iceberg-spark-runtime-4.1_2.13-1.11.0.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("org/apache/iceberg/spark/SparkCatalog.class", b"")
    return path


def test_without_a_warehouse_tables_are_parquet() -> None:
    assert report.chosen_warehouse(None, NAMESPACE, None) is None


def test_a_warehouse_is_a_catalog_of_folders(tmp_path: Path, jar: Path) -> None:
    found = report.chosen_warehouse(str(tmp_path / "kept"), "costs.orders", jar)
    assert found is not None
    assert found.settings() == {
        "spark.jars": str(jar),
        "spark.sql.catalog.costs": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.costs.type": "hadoop",
        "spark.sql.catalog.costs.warehouse": (tmp_path / "kept").as_uri(),
    }


def test_without_a_jar_of_ones_own_mavens_is_taken(
    tmp_path: Path, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg, "jar", lambda: jar)
    found = report.chosen_warehouse(str(tmp_path), NAMESPACE, None)
    assert found is not None
    assert found.jar == jar


def test_without_any_jar_both_ways_on_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> Path:
        raise MissingPrerequisite("Maven is not here.")

    monkeypatch.setattr(iceberg, "jar", nothing)
    with pytest.raises(StillwaterError) as raised:
        report.chosen_warehouse(str(tmp_path), NAMESPACE, None)
    said = str(raised.value)
    assert "Maven is not here." in said
    assert "--iceberg-jar FILE" in said
    assert "leave --warehouse out" in said


@pytest.mark.parametrize("content", [None, b"no archive"])
def test_a_file_that_is_not_icebergs_jar_is_refused(tmp_path: Path, content: bytes | None) -> None:
    other = tmp_path / "other.jar"
    if content is None:
        zipfile.ZipFile(other, "w").close()
    else:
        other.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"other\.jar is not Iceberg's jar for Spark"):
        report.chosen_warehouse(str(tmp_path), NAMESPACE, other)


@pytest.mark.parametrize("name", ["report", "a.b.c", "a.b; drop", "1.a", "a-b.c", ""])
def test_a_name_that_sql_would_not_take_is_refused(tmp_path: Path, jar: Path, name: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"is not CATALOG\.NAMESPACE, such as stillwater\.report"
    ):
        report.chosen_warehouse(str(tmp_path), name, jar)


def test_a_bucket_is_no_folder_of_this_machine(jar: Path) -> None:
    with pytest.raises(InvalidInput, match="the job on EMR keeps Iceberg tables in S3 and Glue"):
        report.chosen_warehouse("s3://bucket/kept", NAMESPACE, jar)


@pytest.mark.parametrize("options", [["--namespace", "a.b"], ["--iceberg-jar", "x.jar"]])
def test_what_belongs_to_a_warehouse_is_not_taken_without_one(options: list[str]) -> None:
    result = CliRunner().invoke(app, ["report", *options])
    assert isinstance(result.exception, InvalidInput)
    assert "belong to --warehouse FOLDER" in str(result.exception)


def test_a_run_on_emr_is_no_warehouses(tmp_path: Path, jar: Path) -> None:
    kept = ["--warehouse", str(tmp_path / "kept"), "--iceberg-jar", str(jar)]
    where = ["--on", "emr", "--environment", "example"]
    result = CliRunner().invoke(app, ["report", *where, *kept])
    assert isinstance(result.exception, InvalidInput)
    assert "leave --warehouse out" in str(result.exception)
    assert not (tmp_path / "kept").exists()
