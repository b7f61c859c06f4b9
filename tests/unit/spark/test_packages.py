"""Packages that a job brings are importable where they are for its Python, and nowhere else."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkFiles

from infra.analytics import report_job
from spark import session

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
TAG = HERE.replace(".", "")
NAMES = ("emr_numpy", "emr_pyarrow")


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a test change what is imported, and Spark's files be below its own folder."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(session, "NEEDED", NAMES)
    monkeypatch.setattr(session, "has_own", lambda: False)
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path / "files"))
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


def unpacked(root: Path, second: str = "") -> None:
    for name, content in zip(NAMES, ("", second), strict=True):
        folder = root / f"package-{name}-cp{TAG}" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(content)


def context(python: str = TAG, **environment: str) -> Any:
    archives = ", ".join(f"s3://b/code/{n}.zip#package-{n}-cp{python}" for n in NAMES)
    conf = SimpleNamespace(get=lambda _, __: f"s3://b/other.zip#models,{archives}")
    return SimpleNamespace(getConf=lambda: conf, environment=environment)


def test_what_the_stack_writes_of_a_python_is_found_by_that_python_alone() -> None:
    setting = report_job.packages({"numpy": "s3://b/n.zip", "pyarrow": "s3://b/p.zip"})
    archives, own = setting["spark.archives"], ["package-numpy-cp311", "package-pyarrow-cp311"]
    found = {python: session.folders(archives, python) for python in ("3.11", "3.1", "3.13")}
    assert found == {"3.11": own, "3.1": [], "3.13": []}
    assert session.folders("", "3.11") == []
    assert report_job.packages({}) == {}


@pytest.mark.parametrize("root", ["files", "."], ids=["Spark's own folder", "where it starts"])
def test_the_driver_imports_them_and_workers_find_them_where_they_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    monkeypatch.chdir(tmp_path)
    unpacked(tmp_path / root)
    found = context(PYTHONPATH="/own")
    session.add_packages(lambda: SimpleNamespace(sparkContext=found))
    assert set(NAMES) <= set(sys.modules)
    folders = [f"./package-{name}-cp{TAG}" for name in NAMES]
    assert found.environment["PYTHONPATH"].split(os.pathsep) == [*folders, "/own"]


@pytest.mark.parametrize("case", ["another Python", "not there", "cannot be imported", "own"])
def test_what_is_not_needed_or_cannot_be_imported_is_on_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    if case != "not there":
        broken = "from emr_pyarrow._of_another_machine import x"
        unpacked(tmp_path / "files", "" if case == "own" else broken)
    if case == "own":
        monkeypatch.undo()
        assert session.has_own()
    before = list(sys.path)
    found = context("399" if case == "another Python" else TAG)
    session.add_packages(lambda: SimpleNamespace(sparkContext=found))
    assert sys.path == before
    assert found.environment == {}
