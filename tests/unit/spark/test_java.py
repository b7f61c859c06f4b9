"""The command that starts Spark's Java, what is said where it does not start, what it is asked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from core.ground.errors import MissingPrerequisite, StillwaterError
from spark import java


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
