"""The record of Spark's classes, which is an optimisation and never a condition."""

from __future__ import annotations

import sys

import pytest
from rich.console import Console

from cli import report
from local.commands import setup
from local.spark import classes


def test_without_the_twin_a_report_starts_without_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "local.spark", None)
    assert report.class_record() == {}


def test_without_spark_there_is_nothing_to_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "is_installed", lambda: False)
    assert classes.are_recorded()
    assert classes.settings() == {}


def test_what_is_recorded_already_is_not_recorded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(classes, "record", lambda: made.append("record"))
    for is_ready in (True, False):
        monkeypatch.setattr(classes, "are_recorded", lambda is_ready=is_ready: is_ready)
        setup.record_sparks_classes(Console(quiet=True))
    assert made == ["record"]
