"""From what a user wrote to a ClusterSpec, or to a sentence per problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from core.cluster.patterns import asked_for
from core.cluster.spec import ClusterSpec, Inconsistent
from core.cluster.suggestions import suggestion
from core.errors import InvalidInput

SCALAR = "is_no_scalar"
# Where pydantic's words are about Python, or name no remedy.
_PLAIN_WORDS = {
    "extra_forbidden": "there is no such setting; remove it or correct its name",
    "missing": "it is required; add it",
    "model_type": "it must be a mapping of settings to values",
    "dict_type": "it must be a mapping of settings to values",
    "tuple_type": "it must be a list",
    "too_short": "it has {actual_length} entries and needs at least {min_length}",
    "too_long": "it has {actual_length} entries and takes at most {max_length}",
    "string_type": "it must be text; put it in quotes, as YAML makes a number, a date or a truth "
    "value of some words",
    "recursion_loop": "it contains itself",
    "greater_than": "it must be more than {gt}",
    "greater_than_equal": "it must be {ge} or more",
    "less_than": "it must be less than {lt}",
    "less_than_equal": "it must be {le} or less",
    "literal_error": "it must be one of {expected}",
    "enum": "it must be one of {expected}",
    "int_type": "it must be a whole number",
    "int_parsing": "it must be a whole number",
    "int_parsing_size": "it must be a whole number, and a smaller one",
    "int_from_float": "it must be a whole number",
    "float_type": "it must be a number",
    "float_parsing": "it must be a number",
    "decimal_type": "it must be a number",
    "decimal_parsing": "it must be a number",
    "finite_number": "it must be a finite number",
    "bool_type": "it must be true or false",
    "bool_parsing": "it must be true or false",
    "string_unicode": "it has half of a character in it; correct it",
    "string_too_short": "it must have {min_length} characters or more",
    "string_too_long": "it has more than {max_length} characters; shorten it",
    "none_required": "it must be left out, or null",
    "invalid_key": "keys are text; put it in quotes",
    "is_no_number": "it must be a number, and YAML makes a truth value of this; write a number",
    SCALAR: "it must be text, a whole number, true or false; put it in quotes",
}
# The kinds that a setting of Kafka's may have; pydantic names each that a value is not.
_SCALARS = frozenset({"str", "int", "bool"})
# The longest value that a sentence repeats whole.
LONGEST_SHOWN = 120
# No setting takes a longer word, the longest URL and what stands beside it included.
_LONG_WORD = re.compile(r"\S{450,}(?<![,.;:])")
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
    if error["type"] == "string_pattern_mismatch":
        message = asked_for(error["ctx"]["pattern"])
    elif error["type"] in _PLAIN_WORDS:
        message = _PLAIN_WORDS[error["type"]].format(**error.get("ctx", {}))
    if error["type"] == "extra_forbidden" and (meant := suggestion(error["loc"], root)) is not None:
        message = f"there is no such setting; did you mean {meant}?"
        yield f"{where}: {message}"
        return
    shown = error.get("input")
    if isinstance(shown, dict | list | tuple | BaseModel) or error["type"] == "missing":
        yield f"{where}: {message}."
    else:
        yield f"{where} is {_value_text(shown)}: {message}."


def _value_text(value: object) -> str:
    """Return a value as a user wrote it, or its beginning."""
    written = repr(str(value) if isinstance(value, date) else value)
    if len(written) <= LONGEST_SHOWN:
        return written
    return f"{written[:LONGEST_SHOWN]}... ({len(written)} characters)"


def shortened(sentence: str) -> str:
    """Return a sentence that repeats no word beyond its beginning that no setting takes.

    >>> shortened(f"{'x' * 9000} is no name.")[115:]
    'xxxxx... (9000 characters) is no name.'
    """
    return _LONG_WORD.sub(
        lambda word: f"{word[0][:LONGEST_SHOWN]}... ({len(word[0])} characters)", sentence
    )


def _needed_errors(error: ValidationError) -> list[dict[str, Any]]:
    """Return the errors a reader needs: a list is not also too short for its one bad item."""
    errors = [dict(e) for e in error.errors()]
    places: list[tuple[object, ...]] = [e["loc"] for e in error.errors()]

    def has_deeper(place: tuple[object, ...]) -> bool:
        return any(len(p) > len(place) and p[: len(place)] == place for p in places)

    return _merge_union_errors(
        [
            e
            for e, place in zip(errors, places, strict=True)
            if e["type"] != "too_short" or not has_deeper(place)
        ]
    )


def _merge_union_errors(errors: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the errors, one of a value that is none of the kinds a setting may have."""
    kept: dict[tuple[object, ...], dict[str, Any]] = {}
    for error in errors:
        *place, kind = error["loc"] or ("",)
        if kind in _SCALARS and place and "config" in place:
            kept[tuple(place)] = {**error, "loc": tuple(place), "type": SCALAR}
        else:
            kept[(*error["loc"], len(kept))] = error
    return list(kept.values())


def parse(raw: object, locate: Locate = lambda _place, _sentence: "") -> ClusterSpec:
    """Validate a ClusterSpec as read from JSON, YAML or stack config.

    Raises InvalidInput with one sentence per problem, each behind what `locate` says of it.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput(["A ClusterSpec must be a mapping of settings to values."])
    return validate(ClusterSpec, raw, locate)


def validate(
    root: type[M], raw: Mapping[str, object], locate: Locate = lambda _place, _sentence: ""
) -> M:
    """Return what a mapping describes; raise InvalidInput with one sentence per problem."""
    try:
        return root.model_validate(raw)
    except ValidationError as error:
        raise InvalidInput(
            locate(each["loc"], sentence) + shortened(sentence)
            for each in _needed_errors(error)
            for sentence in _sentences(each, root)
        ) from None
