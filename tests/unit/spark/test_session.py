"""What is said of a local Spark that cannot start."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark import SparkContext

from core.ground.errors import MissingPrerequisite, StillwaterError
from spark.session import local_session


def test_without_java_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match="install a JDK"), local_session():
        pass


def test_a_java_that_ends_at_once_is_said_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!{shutil.which('sh')}\necho 'no room for a heap' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = dict(os.environ)
    with pytest.raises(StillwaterError, match="no room for a heap"), local_session():
        pass
    assert not list(tmp_path.glob("stillwater-spark-*"))
    assert dict(os.environ) == before
    assert SparkContext._gateway is None
