"""Finds the values of an input that lies within blocks and lists of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def values(inputs: Any, path: str) -> list[Any]:
    """Return what is given under a dotted path; a star stands for every element of a list.

    >>> values({"rules": [{"id": "a"}, {}]}, "rules.*.id")
    ['a']
    """
    found = [inputs]
    for part in path.split(".") if path else ():
        if part == "*":
            found = [item for each in found if isinstance(each, list | tuple) for item in each]
        else:
            found = [each.get(part) for each in found if isinstance(each, Mapping)]
    return [each for each in found if each is not None]
