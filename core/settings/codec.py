"""Writes a frozen dataclass as a JSON document, and reads it back by the dataclass's own types.

One codec for what `pulumi up` says and something else reads: a function's settings (infra.functions
-> handlers), carried by two variables and an item of the ledger's table, and a cluster's facts
(cli, infra -> spark). A field is written under its own name.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from math import isfinite
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from core.ground.errors import InvalidInput
from core.ground.fields import part

T = TypeVar("T")
LONGEST_SHOWN = 80


def document(value: Any) -> Any:
    """Return what JSON can hold of settings: their fields by name, sets in order."""
    if is_dataclass(value):
        return {each.name: document(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): document(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(document(each) for each in value)
    if isinstance(value, tuple | list):
        return [document(each) for each in value]
    return str(value) if isinstance(value, Decimal) else value


def write(told: Any) -> str:
    """Return a document as text: the shortest, and the same for the same settings."""
    return json.dumps(told, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def read(cls: type[T], told: object) -> T:
    """Return the settings in a document; raises InvalidInput with a clause per problem."""
    problems: list[str] = []
    value = _read(cls, told, "", problems)
    if problems:
        raise InvalidInput(problems)
    return value  # type: ignore[no-any-return]


def _read(kind: Any, told: Any, path: str, problems: list[str]) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _dataclass(kind, told, path, problems)
    if origin in {types.UnionType, Union}:
        (some,) = (each for each in args if each is not types.NoneType)
        return None if told is None else _read(some, told, path, problems)
    if origin is Literal:
        return _one_of(args, told, path, problems)
    if origin in {tuple, frozenset} and isinstance(told, list):
        of = args[0]
        return origin(_read(of, each, f"{path}[{n}]", problems) for n, each in enumerate(told))
    if origin is not None and issubclass(origin, Mapping) and isinstance(told, dict):
        return {key: _read(args[1], each, f"{path}.{key}", problems) for key, each in told.items()}
    return _plain(kind, told, path, problems)


def _dataclass(kind: Any, told: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(told, dict):
        problems.append(f"{_where(path)} is {_excerpt(told)}, and must be an object")
        return None
    hints, known, found = _hints(kind), {each.name: each for each in fields(kind)}, {}
    problems += [f"{_where(_below(path, name))} is unknown" for name in told if name not in known]
    for name, each in known.items():
        if name in told:
            found[name] = _read(hints[name], told[name], _below(path, name), problems)
        elif each.default is MISSING and each.default_factory is MISSING:
            problems.append(f"{_where(_below(path, name))} is missing")
    return None if problems else kind(**found)


def _one_of(allowed: tuple[Any, ...], told: Any, path: str, problems: list[str]) -> Any:
    if told not in allowed:
        names = " or ".join(map(str, allowed))
        problems.append(f"{_where(path)} is {_excerpt(told)}, and must be {names}")
    return told


def _plain(kind: Any, told: Any, path: str, problems: list[str]) -> Any:
    takes, meaning = _PLAIN.get(kind, (_nothing, "a list or an object"))
    value = takes(told)
    if value is None:
        problems.append(f"{_where(path)} is {_excerpt(told)}, and must be {meaning}")
    return value


def _nothing(told: Any) -> None:
    """Take no value: a type of which this codec knows nothing."""


def _text(told: Any) -> str | None:
    return told if isinstance(told, str) and told else None


def _number(told: Any) -> float | None:
    # Every figure of a setting is an amount.
    taken = isinstance(told, int | float) and not isinstance(told, bool)
    return told if taken and isfinite(told) and told >= 0 else None


def _whole_number(told: Any) -> int | None:
    value = _number(told)
    return int(value) if value is not None and value == int(value) else None


def _amount(told: Any) -> Decimal | None:
    try:
        value = Decimal(told) if isinstance(told, str) else None
    except InvalidOperation:
        return None
    return value if value is not None and value.is_finite() and value >= 0 else None


_PLAIN: Mapping[Any, tuple[Callable[[Any], Any], str]] = {
    str: (_text, "text that is not empty"),
    bool: (lambda told: told if isinstance(told, bool) else None, "true or false"),
    int: (_whole_number, "a whole number that is not negative"),
    float: (_number, "a number that is not negative"),
    Decimal: (_amount, "an amount as text that is not negative"),
}


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _where(path: str) -> str:
    return path or "the document"


def _excerpt(told: object) -> str:
    return repr(told)[:LONGEST_SHOWN]


SETTINGS = "STILLWATER_SETTINGS"
# The key of the item that holds what is too long for the environment.
KEPT = "STILLWATER_KEPT"
CONTENT = "settings"
_HASH_CHARACTERS = 32
REMEDY = "the operations stack renders it, so run `pulumi up` on it again."


def kept_key(role: str, content: str) -> str:
    """Return the key of the item that holds this content: its hash, so that no other passes."""
    return f"settings#{role}-{_digest(content)[:_HASH_CHARACTERS]}"


def is_kept_under(key: str, content: str) -> bool:
    """Say whether content is what a key was made of.

    Keys of earlier releases hold half as much of the hash: while a function is replaced, its new
    code reads what its old environment names.
    """
    named = key.rpartition("-")[2]
    return len(named) >= _HASH_CHARACTERS // 2 and _digest(content).startswith(named)


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def read_settings_text(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings as far as the environment holds them; raises InvalidInput without any."""
    text = environment.get(SETTINGS, "")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput([f"{SETTINGS} is {text[:80]!r}, and must be a JSON object; {REMEDY}"])
    return found


def setting_text(environment: Mapping[str, str], name: str) -> str | None:
    """Return one text of the settings as far as the environment holds them; never raises.

    For those who must answer though the settings cannot be read.
    """
    try:
        told: Any = json.loads(environment.get(SETTINGS, ""))
    except ValueError:
        return None
    found = part(told).get(name)
    return found if isinstance(found, str) else None
