"""Makes an answer strange in each of its places, and collects who ends with a traceback over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from core.ground.errors import StillwaterError

STRANGE: tuple[Any, ...] = ("Perhaps", None, 7, [], {}, ["Perhaps"], {"perhaps": 1})


def changed(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield a document once for each of its places, with something else there, or nothing."""
    for path in paths(document):
        for strange in STRANGE:
            copy = json.loads(json.dumps(document))
            place(copy, path[:-1])[path[-1]] = strange
            yield f"{path} = {strange!r}", copy
        copy = json.loads(json.dumps(document))
        del place(copy, path[:-1])[path[-1]]
        yield f"{path} is missing", copy


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield (*path, key)
        if isinstance(value[key], dict | list):
            yield from paths(value[key], (*path, key))


def place(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def tracebacks(readers: Mapping[str, Callable[[], Any]]) -> list[str]:
    found = []
    for name, read in readers.items():
        try:
            read()
        except StillwaterError:
            continue
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            found.append(f"{name}: {error!r}")
    return found
