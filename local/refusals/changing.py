"""Refuses steps from one value to another that AWS takes of a new resource alone.

The rows are neighbours.toml's `steps`. {0} is what it was, {1} what it is to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from local.refusals.fields import values
from local.refusals.neighbours import TABLE, Row, about
from local.refusals.refusal import Refusal, Wanted


def _minors(old: str, new: str) -> list[int]:
    found = [re.fullmatch(r"1\.(\d+)", each) for each in (old, new)]
    return [int(each[1]) for each in found if each]


def _is_far(_: Row, old: str, new: str) -> bool:
    """Say whether a version is no neighbour: a control plane goes one up, or rolls one back.

    Whether it was upgraded within seven days, and its nodes are back, only its history says.
    """
    minors = _minors(old, new)
    return len(minors) == 2 and abs(minors[1] - minors[0]) > 1


def _is_far_back(row: Row, old: str, new: str) -> bool:
    minors = _minors(old, new)
    return _is_far(row, old, new) and minors[1] < minors[0]


def _is_back(row: Row, old: str, new: str) -> bool:
    order = row["order"]
    return {old, new} <= {*order} and order.index(new) < order.index(old)


_WRONG: Mapping[str, Callable[[Row, str, str], bool]] = {
    "another": lambda _, old, new: bool(old and new) and old != new,
    "back": _is_back,
    "far": _is_far,
    "far back": _is_far_back,
}


def refusals(there: Wanted, wanted: Wanted) -> Iterator[Refusal]:
    """Yield which steps AWS would refuse between a resource as it stands and as it is wanted."""
    for row in TABLE["steps"]:
        old, new = (values(each.inputs, row["at"]) for each in (there, wanted))
        if wanted.type != f"aws:{row['type']}" or not (old and new):
            continue
        if _WRONG[row["refused"]](row, str(old[0]), str(new[0])):
            message, at = row["says"].format(old[0], new[0]), row["at"].partition(".")[0]
            yield about(wanted, row["operation"], row["code"], message, at)
