"""Damages announcements the way queues, clients and attackers do; a seed gives the same again."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.announcements import BODIES

# What may stand where something else is expected.
ODDITIES: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**40,
    1e308,
    "",
    " ",
    "\ud800",
    "\x00",
    "null",
    "é" * 2000,
    "i-",
    "i-0aaaaaaa",
    "arn:aws:ec2:us-east-1:123456789012:instance/i-0bbbbbbb",
    "vol-0aaaaaaa",
    "use1-az4",
    "closed",
    "9999-12-31T23:59:59-23:59",
    [],
    [[]],
    {},
    {"": {}},
    [{"entityValue": "i-0aaaaaaa"}, {"entityValue": 7}, 7],
)
_TIMES = ("2026-11-20T10:00:00Z", "Thu, 99 Foo 99999 25:61:61 GMT", "0001-01-01T00:00:00+23:59")


def bodies(seed: int, count: int) -> Iterator[str | bytes]:
    """Yield messages: as they are, damaged in structure, damaged in their bytes, or made up."""
    dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    names = sorted(BODIES)
    for _ in range(count):
        whole = BODIES[dice.choice(names)]
        way = dice.random()
        if way < 0.1:
            yield whole
        elif way < 0.7:
            yield _restructure(whole, dice)
        elif way < 0.9:
            yield _scramble(whole, dice)
        else:
            yield _made_up(dice)


def _restructure(whole: str, dice: random.Random) -> str:
    event = json.loads(whole)
    for _ in range(dice.randint(1, 4)):
        dice.choice(_CHANGES)(event, dice)
    message = json.dumps(event)
    for _ in range(dice.choice((0, 0, 0, 1, 2, 5))):
        message = json.dumps({"Type": "Notification", "Message": message})
    return message


def _replace(event: Any, dice: random.Random) -> None:
    holder, key = _place(event, dice)
    if holder is not None:
        holder[key] = copy.deepcopy(dice.choice(ODDITIES))


def _remove(event: Any, dice: random.Random) -> None:
    holder, key = _place(event, dice)
    if holder is not None:
        del holder[key]


def _swap(event: Any, dice: random.Random) -> None:
    """Put a part of another announcement where a part of this one was."""
    holder, key = _place(event, dice)
    other, from_key = _place(json.loads(BODIES[dice.choice(sorted(BODIES))]), dice)
    if holder is not None and other is not None:
        holder[key] = other[from_key]


def _retime(event: Any, dice: random.Random) -> None:
    event["time"] = dice.choice(_TIMES)


def _multiply(event: Any, dice: random.Random) -> None:
    """Name many entities, some of them twice."""
    detail = event.get("detail")
    if isinstance(detail, dict):
        detail["affectedEntities"] = [
            {"entityValue": f"i-{dice.randint(0, 30):08x}"} for _ in range(dice.randint(0, 40))
        ]


_CHANGES: tuple[Callable[[Any, random.Random], None], ...] = (
    _replace,
    _remove,
    _swap,
    _retime,
    _multiply,
)


def _place(value: Any, dice: random.Random) -> tuple[Any, Any]:
    """Return some container inside an event, and one of its keys."""
    found = [
        (holder, key)
        for holder in _containers(value)
        for key in (list(holder) if isinstance(holder, dict) else range(len(holder)))
    ]
    return dice.choice(found) if found else (None, None)


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _containers(inner)


def _scramble(whole: str, dice: random.Random) -> bytes:
    """Cut, repeat, flip or insert bytes."""
    raw = bytearray(whole.encode())
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(raw) + 1)
        match dice.randrange(4):
            case 0:
                del raw[at : at + dice.randint(1, 40)]
            case 1:
                raw[at:at] = raw[at : at + 20]
            case 2 if at < len(raw):
                raw[at] ^= 1 << dice.randrange(8)
            case _:
                raw[at:at] = dice.randbytes(3)
    return bytes(raw)


def _made_up(dice: random.Random) -> str:
    """Write something nobody ever sent."""
    kind = dice.randrange(5)
    if kind == 0:
        return "[" * dice.choice((10, 100_000))
    if kind == 1:
        return dice.choice(("NaN", "9" * 10_000, '"text"', "null", "", "\ud800", "{}", "[]"))
    if kind == 2:
        return json.dumps({"source": dice.choice(ODDITIES), "detail": dice.choice(ODDITIES)})
    if kind == 3:
        return json.dumps({"Message": json.dumps({"detail": dice.choice(ODDITIES)})})
    return json.dumps({"a": "x" * dice.choice((10, 300_000))})
