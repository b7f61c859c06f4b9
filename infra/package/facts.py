"""Checks what a program of another language passed; every refusal is one sentence.

The engine hands over whatever was written: a schema binds the languages with types, a number is
always a float, and a name may be another resource's output that is not known yet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from core.cluster import tagging
from core.ground.errors import InvalidInput

# A resource of Pulumi's and a key of ours stand in its name.
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
KEYS = "letters, digits, '.', '_' and '-'"
EKS_CLUSTER = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


def text(
    given: Mapping[str, Any],
    key: str,
    form: re.Pattern[str],
    example: str,
    default: str | None = None,
) -> str:
    """Return a value that names what is made, and so must be known before anything is."""
    value = plain_value(given[key] if default is None else given.get(key, default), key)
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must be like {example}."])
    return value


def optional(given: Mapping[str, Any], key: str) -> str | None:
    """Return a text that may be left out."""
    value = plain_value(given.get(key), key)
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must be a text."])
    return value


def one_of(
    given: Mapping[str, Any], key: str, choices: Sequence[str], default: str | None = None
) -> str:
    """Return one of a few words."""
    value = plain_value(given[key] if default is None else given.get(key, default), key)
    if value not in choices:
        raise InvalidInput(
            [f"{_argument(key)} is {value!r}; it must be one of {', '.join(choices)}."]
        )
    return str(value)


def whole_number(
    given: Mapping[str, Any], key: str, least: int, most: int, default: int | None = None
) -> int:
    """Return a whole number within its limits."""
    value = plain_value(given[key] if default is None else given.get(key, default), key)
    # The engine writes 900 as 900.0.
    whole_number = int(value) if isinstance(value, float) and value.is_integer() else value
    sized = isinstance(whole_number, int) and not isinstance(whole_number, bool)
    if not sized or not least <= whole_number <= most:
        problem = f"it must be a whole number from {least} to {most}."
        raise InvalidInput([f"{_argument(key)} is {whole_number!r}; {problem}"])
    return int(whole_number)


def yes(given: Mapping[str, Any], key: str) -> bool:
    """Return a switch, which is off unless it was set."""
    value = plain_value(given.get(key, False), key)
    if not isinstance(value, bool):
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must be true or false."])
    return value


def names(given: Mapping[str, Any], key: str) -> list[pulumi.Input[str]]:
    """Return names or ids, at least one; each may be known later."""
    value = plain_value(given[key], key)
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must have at least one entry."])
    problems = [
        f"{_argument(key)}[{place}] is {each!r}; it must be a name."
        for place, each in enumerate(value)
        if not _is_name(each)
    ]
    if problems:
        raise InvalidInput(problems)
    return list(value)


def tags(given: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return tags of the program's own, which may be left out."""
    value = plain_value(given.get(key), key) or {}
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must be texts by name."])
    if problems := tagging.problems(value):
        raise InvalidInput([f"{each}." for each in problems])
    return dict(sorted(value.items()))


def bill_tags(given: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the tags that mean a Kafka and its pools on the bill, which may be left out."""
    cluster, pool = optional(given, "cluster_tag"), optional(given, "pool_tag")
    for key, value in (("cluster_tag", cluster), ("pool_tag", pool)):
        if value is not None and tagging.bill_characters(value):
            wrong = " ".join(map(repr, tagging.bill_characters(value)))
            raise InvalidInput(
                [f"{_argument(key)} is {value!r}, and no tag has {wrong}; write it as it is."]
            )
    return cluster, pool


def names_by_key(
    given: Mapping[str, Any], key: str, form: re.Pattern[str] = KEY, allowed: str = KEYS
) -> dict[str, pulumi.Input[str]]:
    """Return names by keys of the program's own; the names may be known later."""
    value = plain_value(given[key], key)
    if not isinstance(value, Mapping) or not value:
        raise InvalidInput(
            [f"{_argument(key)} is {value!r}; it must have at least one entry, like {{a: a-name}}."]
        )
    problems = [
        f"{_argument(key)} has the key {each!r}; keys are {allowed}."
        for each in value
        if form.fullmatch(each) is None
    ]
    problems += [
        f"{_argument(key)}.{each} is {name!r}; it must be a name."
        for each, name in value.items()
        if not _is_name(name)
    ]
    if problems:
        raise InvalidInput(problems)
    return dict(sorted(value.items()))


def plain_value(value: Any, key: str) -> Any:
    """Return a value that decides what is made; one that another resource makes comes too late."""
    if isinstance(value, pulumi.Output) or value == pulumi.UNKNOWN:
        problem = (
            f"{_argument(key)} is another resource's output; it decides what is made, so write the "
            f"value itself."
        )
        raise InvalidInput([problem])
    return value


def before(opts: pulumi.ResourceOptions | None) -> Sequence[pulumi.Resource]:
    """Return what the program wants made first: an order does not reach a component's children."""
    found = opts.depends_on if opts is not None else None
    return [each for each in (found or []) if isinstance(each, pulumi.Resource)]  # type: ignore[union-attr]


def _is_name(value: Any) -> bool:
    return isinstance(value, pulumi.Output) or (isinstance(value, str) and bool(value))


def _argument(key: str) -> str:
    """Return an argument's name as its schema has it."""
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)
