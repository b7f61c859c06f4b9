"""Makes tests that are false where nothing is known, and keeps expressions while Spark lives.

An expression is dozens of calls to Java, each a tenth of a millisecond, and a run makes thousands.
One made of nothing but its arguments is kept: the second bill of a process needs none of it again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F

_P = ParamSpec("_P")
_R = TypeVar("_R")


def made_once(make: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function whose expressions are made once per Spark and arguments.

    The arguments are hashable, and say all that the expressions depend on.
    """
    known: WeakKeyDictionary[SparkContext, dict[Hashable, _R]] = WeakKeyDictionary()

    @wraps(make)
    def kept(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        context = SparkContext._active_spark_context  # noqa: SLF001 - pyspark has no other name for it
        if context is None:
            return make(*args, **kwargs)
        mine = known.setdefault(context, {})
        key = (args, tuple(sorted(kwargs.items())))
        if key not in mine:
            mine[key] = make(*args, **kwargs)
        return mine[key]

    return kept


def surely(test: Column) -> Column:
    """Return a test that is false where nothing is known."""
    return F.coalesce(test, F.lit(False))  # noqa: FBT003 - a literal column
