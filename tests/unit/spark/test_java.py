"""The command that starts Spark's Java, what is said where it does not start, what it is asked."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkContext

from core.ground.errors import MissingPrerequisite, StillwaterError
from spark import java
from spark.session import EVERY_EXPRESSION, remember_java_names


def test_a_sessions_jars_are_among_the_classes_of_the_driver() -> None:
    command = java.command("java", {**java.SETTINGS, java.JARS: "/one.jar,/two.jar"})
    classes = command[command.index("-cp") + 1].split(os.pathsep)
    assert classes[0].endswith("/jars/*")
    assert classes[1:] == ["/one.jar", "/two.jar"]


def test_settings_are_properties_and_options_stand_before_the_server() -> None:
    command = java.command("java", {**java.SETTINGS, java.MEMORY: "3g", java.JAVA_OPTIONS: "-A -B"})
    assert command[-1] == java.SERVER
    assert {"-Xmx3g", "-A", "-B", "-Dspark.ui.enabled=false"} <= set(command)
    assert not any(each.startswith(f"-D{java.JAVA_OPTIONS}") for each in command)


def test_without_java_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match="install a JDK"), java.started():
        pass


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Java that writes a record where it is told to, and ends as the file `code` says."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    code = tmp_path / "code"
    code.write_text("0")
    program.write_text(
        f"#!{shutil.which('sh')}\n"
        'for each; do case "$each" in -XX:ArchiveClassesAtExit=*) echo made > "${each#*=}";; esac; '
        f"done\ncat > /dev/null\nexit $(cat {code})\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("STILLWATER_CACHE", str(tmp_path / "cache"))
    return tmp_path


def _record() -> Path:
    return java.class_record(java.program())


def test_a_java_leaves_a_record_and_the_next_session_maps_it(home: Path) -> None:
    with java.started(records_classes=True):
        assert not _record().exists()
    assert _record().read_text() == "made\n"
    assert [each.name for each in _record().parent.iterdir()] == [_record().name]
    with java.started() as started:
        assert f"-XX:SharedArchiveFile={_record()}" in started.settings[java.JAVA_OPTIONS]


@pytest.mark.parametrize(("code", "records"), [("0", False), ("1", True)])
def test_who_was_not_asked_and_who_failed_leave_none(home: Path, code: str, records: bool) -> None:
    (home / "code").write_text(code)
    with java.started(records_classes=records):
        pass
    assert not _record().exists()


def test_without_a_place_for_a_record_a_session_ends_as_ever(home: Path) -> None:
    (home / "cache").write_text("no folder")
    with java.started(records_classes=True):
        pass
    assert (home / "cache").read_text() == "no folder"


def test_a_java_that_ends_at_once_is_said_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!{shutil.which('sh')}\necho 'no room for a heap' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with java.started() as started, pytest.raises(StillwaterError, match="no room for a heap"):
        started.connection()
    assert not started.scratch.exists()
    assert started.process.returncode == 1


class Java:
    """Answers like py4j's view of a JVM, or like a class of it, and counts who asks."""

    def __init__(self, asked: Counter[str], name: str = "") -> None:
        self._asked, self._name = asked, name

    def __getattr__(self, name: str) -> Java:
        asked = f"{self._name} {name}".strip()
        self._asked[asked] += 1
        return Java(self._asked, asked)


def test_a_class_and_its_methods_are_looked_up_once() -> None:
    asked: Counter[str] = Counter()
    jvm: Any = Java(asked)
    remember_java_names(cast("SparkContext", SimpleNamespace(_jvm=jvm)))
    for name in EVERY_EXPRESSION * 3:
        for method in ("col", "lit"):
            getattr(getattr(jvm, name), method)
    both = [f"{name} {method}" for name in EVERY_EXPRESSION for method in ("col", "lit")]
    assert asked == Counter([*EVERY_EXPRESSION, *both])
