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


def test_a_java_that_ends_at_once_is_said_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    shell = shutil.which("sh")
    program.write_text(f"#!{shell}\necho 'no room for a heap' >&2\nexit 1\n")
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
