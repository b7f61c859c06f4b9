"""From what a user wrote to a ClusterSpec, or to a sentence per problem."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from core.cluster.spec import ClusterSpec, Inconsistent
from core.cluster.suggestions import suggestion
from core.errors import InvalidInput

# Where pydantic's words are about Python, or name no remedy.
_PLAIN_WORDS = {
    "extra_forbidden": "there is no such setting; remove it or correct its name",
    "missing": "it is required; add it",
    "model_type": "it must be a mapping of settings to values",
    "dict_type": "it must be a mapping of settings to values",
    "tuple_type": "it must be a list",
    "too_short": "it has {actual_length} entries and needs at least {min_length}",
    "too_long": "it has {actual_length} entries and takes at most {max_length}",
    "string_pattern_mismatch": "it must match {pattern}",
    "string_type": "it must be text; put it in quotes, as YAML makes a number, a date or a truth "
    "value of some words",
    "recursion_loop": "it contains itself",
}
M = TypeVar("M", bound=BaseModel)
Place = Sequence[object]
# Says where a problem stands in what the user wrote, "FILE:LINE:COLUMN: "; by the place of the
# setting and by what is said of it.
Locate = Callable[[Place, str], str]


def _sentences(error: Mapping[str, Any], root: type[BaseModel]) -> Iterator[str]:
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, Inconsistent):
        for problem in raised.problems:
            yield f"{problem}."
        return
    where = ".".join(str(part) for part in error["loc"]) or root.__name__
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] in _PLAIN_WORDS:
        message = _PLAIN_WORDS[error["type"]].format(**error.get("ctx", {}))
    if error["type"] == "extra_forbidden" and (meant := suggestion(error["loc"], root)) is not None:
        message = f"there is no such setting; did you mean {meant}?"
        yield f"{where}: {message}"
        return
    shown = error.get("input")
    if isinstance(shown, dict | list | tuple | BaseModel) or error["type"] == "missing":
        yield f"{where}: {message}."
    else:
        yield f"{where} is {shown!r}: {message}."


def _told(error: ValidationError) -> list[dict[str, Any]]:
    """Return the errors a reader needs: a list is not also too short for its one bad item."""
    errors = [dict(e) for e in error.errors()]
    places: list[tuple[object, ...]] = [e["loc"] for e in error.errors()]

    def has_deeper(place: tuple[object, ...]) -> bool:
        return any(len(p) > len(place) and p[: len(place)] == place for p in places)

    return [
        e
        for e, place in zip(errors, places, strict=True)
        if e["type"] != "too_short" or not has_deeper(place)
    ]


def parse(raw: object, locate: Locate = lambda _place, _sentence: "") -> ClusterSpec:
    """Validate a ClusterSpec as read from JSON, YAML or stack config.

    Raises InvalidInput with one sentence per problem, each behind what `locate` says of it.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput(["A ClusterSpec must be a mapping of settings to values."])
    return validated(ClusterSpec, raw, locate)


def validated(
    root: type[M], raw: Mapping[str, object], locate: Locate = lambda _place, _sentence: ""
) -> M:
    """Return what a mapping describes; raise InvalidInput with one sentence per problem."""
    try:
        return root.model_validate(raw)
    except ValidationError as error:
        raise InvalidInput(
            locate(each["loc"], sentence) + sentence
            for each in _told(error)
            for sentence in _sentences(each, root)
        ) from None


def json_schema() -> str:
    """Return the JSON schema of a ClusterSpec, as checked in under docs/reference/."""
    return json.dumps(ClusterSpec.model_json_schema(), indent=2, sort_keys=True) + "\n"
