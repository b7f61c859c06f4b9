"""Judges inputs that one value of another input needs, or rules out.

`needing_*` enter theirs here, a line each. A condition about one type alone and more than two
inputs stands beside its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.refusals.fields import values
from local.refusals.limits import LIMITS, InputLimit, Refuser
from local.refusals.refusal import Refusal, Wanted

GIVEN, ABSENT = "(given)", "(absent)"
EMPTY: tuple[Any, ...] = (None, "", [], {}, False)


@dataclass(frozen=True, slots=True)
class InputCondition:
    """In a block where all of `where` holds, `needs` must be given and `forbids` must not.

    `base` is the block's path (see fields); empty, the resource itself.
    """

    where: Mapping[str, tuple[str, ...]]
    needs: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    base: str = ""


def _holds(condition: InputCondition, block: Any, inputs: Mapping[str, Any]) -> bool:
    return all(_is(value, _value(key, block, inputs)) for key, value in condition.where.items())


def _value(key: str, block: Any, inputs: Mapping[str, Any]) -> Any:
    """Return a key of the block, or after ^ a path from the resource."""
    if not key.startswith("^"):
        return block.get(key)
    found = values(inputs, key[1:])
    return found[0] if found else None


def _is(allowed: tuple[str, ...], value: Any) -> bool:
    if value in (None, "", [], {}):
        return ABSENT in allowed
    return GIVEN in allowed or _value_text(value) in {_value_text(each) for each in allowed}


def _value_text(value: Any) -> str:
    written = str(value)
    return written.lower() if written.lower() in {"true", "false"} else written


def _limit(of: Refuser, source: str, condition: InputCondition) -> InputLimit:
    def find(wanted: Wanted) -> Iterator[Refusal]:
        for block in values(wanted.inputs, condition.base):
            if not isinstance(block, Mapping) or not _holds(condition, block, wanted.inputs):
                continue
            where = " and ".join(
                f"{key.lstrip('^')} is {_value(key, block, wanted.inputs)}"
                for key in condition.where
            )
            for key in condition.needs:
                if _value(key, block, wanted.inputs) in EMPTY:
                    message = f"{key} must be specified where {where or 'this block is given'}"
                    yield Refusal(of.operation, of.code, message, key)
            for key in condition.forbids:
                if _value(key, block, wanted.inputs) not in EMPTY:
                    message = f"{key.lstrip('^')} cannot be specified where {where}"
                    yield Refusal(of.operation, of.code, message, key.lstrip("^"))

    keys = "-".join((*condition.where, *condition.needs, *condition.forbids))
    return InputLimit(f"{keys}-of-{of.token}", (f"aws:{of.token}",), source, find)


def enter_conditions(of: Refuser, source: str, *conditions: InputCondition) -> None:
    """Enter conditions among the limits, below whose refusal and page they are."""
    LIMITS.extend(_limit(of, source, each) for each in conditions)
