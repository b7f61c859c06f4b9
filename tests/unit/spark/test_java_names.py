"""Java is asked once for what every expression begins with."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

from pyspark import SparkContext

from spark.session import EVERY_EXPRESSION, remember_java_names


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
