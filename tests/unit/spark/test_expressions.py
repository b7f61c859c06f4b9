"""Expressions are made once for each Spark, and never handed to another."""

from __future__ import annotations

import pytest
from pyspark import SparkContext

from spark.expressions import made_once


class Java:
    """Stands for a session's Java."""


def test_the_same_arguments_make_nothing_anew_until_another_java_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[str, int]] = []

    @made_once
    def make(name: str, *, number: int = 0) -> list[str]:
        made.append((name, number))
        return [name]

    first, second = Java(), Java()
    monkeypatch.setattr(SparkContext, "_active_spark_context", first)
    kept = make("a")
    assert make("a") is kept
    assert make("a", number=1) is not kept
    monkeypatch.setattr(SparkContext, "_active_spark_context", second)
    assert make("a") is not kept
    assert made == [("a", 0), ("a", 1), ("a", 0)]
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    assert make("a") == ["a"]
    assert len(made) == 4
