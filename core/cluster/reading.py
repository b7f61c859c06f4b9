"""Makes a ClusterSpec of what a user wrote, or a sentence per problem.

A misspelt key is answered with the nearest one of its section, and a pattern with what it asks for.
What keys mean is the text below each field: pydantic could read it itself, and would at each
import, a seventh of the time that `stillwater check` takes, for words that only `make docs` prints.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from core.cluster.adopted_names import BOOTSTRAP, GROUP, KAFKA, NODE_POOL
from core.cluster.fields import SUBDOMAIN
from core.cluster.spec import ClusterSpec, Inconsistent
from core.ground.errors import InvalidInput


def meanings(section: type[BaseModel]) -> Mapping[str, str]:
    """Return the text below each field of a section, and of those that it is made from."""
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            found.update(_own(base))
    return {name: found[name] for name in section.model_fields if name in found}


def _own(section: type[BaseModel]) -> Iterator[tuple[str, str]]:
    defined: Any = ast.parse(inspect.getsource(section)).body[0]
    for field, below in pairwise(defined.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            yield field.target.id, inspect.cleandoc(str(below.value.value))


def schema() -> dict[str, Any]:
    """Return the schema of a ClusterSpec with what each key means."""
    found = ClusterSpec.model_json_schema()
    for section in set(_sections(ClusterSpec)):
        described = found if section is ClusterSpec else found["$defs"][section.__name__]
        for key, meaning in meanings(section).items():
            described["properties"][key]["description"] = meaning
    return found


def json_schema() -> str:
    """Return that schema as it is checked in under docs/reference/."""
    return json.dumps(schema(), indent=2, sort_keys=True) + "\n"


def _sections(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield root
    for field in root.model_fields.values():
        for inside in _models(field.annotation):
            yield from _sections(inside)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inside in get_args(annotation):
        yield from _models(inside)


# Of a word that is not there; what is less alike is another word.
ALIKE = 0.6


def suggestion(place: Sequence[object], root: type[BaseModel] = ClusterSpec) -> str | None:
    """Return what the key at a place should be called, or where it belongs; None: nobody knows."""
    key = str(place[-1])
    section = section_of(place[:-1], root)
    if section is None:
        return None
    names = list(section.model_fields)
    # Another language's spelling of the same words.
    plain = {_plain(name): name for name in names}
    if _plain(key) in plain:
        return plain[_plain(key)]
    close = difflib.get_close_matches(key, names, n=1, cutoff=ALIKE)
    if close:
        return close[0]
    elsewhere = [path for path in _paths(root) if path.rpartition(".")[2] == key]
    return elsewhere[0] if len(elsewhere) == 1 else None


def section_of(
    place: Sequence[object], root: type[BaseModel] = ClusterSpec
) -> type[BaseModel] | None:
    """Return the section at a place of a description; None where there is none."""
    found: Any = root
    for part in place:
        if isinstance(part, int):
            continue  # _section_type has gone into the list
        if isinstance(found, type) and issubclass(found, BaseModel):
            field = found.model_fields.get(str(part))
            if field is None:
                return None
            found = field.annotation
        found = _section_type(found)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _section_type(annotation: Any) -> Any:
    """Return the section inside an Optional, a list, or an Annotated; else the annotation."""
    origin = typing.get_origin(annotation)
    if origin is None:
        return annotation
    inner = [each for each in typing.get_args(annotation) if each not in (type(None), ...)]
    if origin in (typing.Annotated, typing.Union, types.UnionType, tuple, list):
        return _section_type(inner[0])
    return annotation


def _paths(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield f"{prefix}{name}"
        inside = _section_type(field.annotation)
        if isinstance(inside, type) and issubclass(inside, BaseModel):
            yield from _paths(inside, f"{prefix}{name}.")


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


_AN_ID = "and 17 digits or letters from a to f, as AWS shows it"
WORDS: Mapping[str, str] = {
    r"^[a-z]{2,4}(-[a-z]+)+-[0-9]$": "a region such as eu-west-1; a zone has a letter more",
    r"^[a-z]{2,4}(-[a-z]+)+-[0-9][a-z]$": "an availability zone such as eu-west-1a: its region and "
    "one letter",
    r"^([01][0-9]|2[0-3]):[0-5][0-9]$": "a time of day in UTC between 00:00 and 23:59, such as "
    "03:30",
    r"^1\.[0-9]{2}$": "a minor version of Kubernetes such as 1.35, in quotes",
    r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$": "an instance type such as r7g.large",
    r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$": "at most 32 lower case letters, digits and hyphens, the "
    "first a letter and the last no hyphen",
    r"^[a-z][a-z0-9-]{1,41}[a-z0-9]$": "3 to 43 lower case letters, digits and hyphens, the first "
    "a letter and the last no hyphen",
    r"^[a-z0-9]{1,11}$": "at most 11 lower case letters and digits",
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": "at most 63 lower case letters, digits and hyphens, "
    "with no hyphen at either end",
    f"^{SUBDOMAIN}$": "at most 253 lower case letters, digits, dots and hyphens, with a letter or "
    "digit at both ends and beside each dot",
    rf"^({SUBDOMAIN}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?$": "the key of a "
    "Kubernetes label such as example.com/pool or pool",
    r"^[a-zA-Z_][a-zA-Z0-9_]*$": "the name of a Prometheus label: letters, digits and underscores, "
    "no digit first",
    r"^[a-zA-Z0-9._-]{1,249}$": "at most 249 letters, digits, dots, underscores and hyphens",
    r"^[0-9A-Za-z][0-9A-Za-z_-]{0,62}$": "at most 63 letters, digits, underscores and hyphens, a "
    "letter or digit first",
    r"^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$": "at most 100 letters, digits, underscores and hyphens, a "
    "letter or digit first",
    GROUP: "the name of an Auto Scaling group: at most 255 characters, without colons, and "
    "without a space at either end",
    NODE_POOL: "the name of a NodePool, which is the value of a label on its nodes: at most 63 "
    "lower case letters, digits, dots and hyphens, with a letter or digit at both ends",
    KAFKA: "the name of a Kafka resource: at most 47 lower case letters, digits and hyphens, with "
    "no hyphen at either end, since Strimzi's Services are called by it",
    r"^[A-Za-z0-9/_+=.@-]{1,512}$": "the name of a secret: at most 512 letters, digits and /_+=.@-",
    r"^[A-Za-z0-9_.:/-]+$": "letters, digits and _.:/- alone",
    r"^[CG][A-Z0-9]{8,20}$": "a channel's id, which Slack shows at the end of its details, such as "
    "C0123456789; no name",
    r"^[^=\s][^=\x00-\x1f]*$": "the key of a tag, without an equals sign",
    r"^[^=\s][^=\x00-\x1f]{0,127}(=[^\x00-\x1f]{0,255}\S)?$": "the key of a tag, or KEY=VALUE",
    BOOTSTRAP: "HOST:PORT, several with commas and no spaces",
    r"^[^\s\x00-\x1f\x7f\"<>\\^`{|}\ufffe\uffff]+[^/\s\x00-\x1f\x7f\"<>\\^`{|}\ufffe\uffff]$": "an "
    "address without spaces, quotes, braces and other signs that no address has, and without a "
    "slash at its end",
    r"^[^\x00-\x1f\x7f]+$": "text without tabs, line breaks and other control characters",
    r"^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?([/?][^\s\"\\;]*)?$": "an "
    "address that begins with https:// and a host's name, and has no spaces in it",
    r"^https://sqs\.[a-z0-9-]+\.amazonaws\.com/[0-9]{12}/[A-Za-z0-9_-]{1,80}$": "the URL of a "
    "standard queue, such as https://sqs.eu-west-1.amazonaws.com/111122223333/NAME",
    r"^arn:aws:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$": "the ARN of a standard topic, such "
    "as arn:aws:sns:eu-west-1:111122223333:NAME",
    r"^arn:aws:kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}"
    r"-[0-9a-f]{12})$": "the ARN of a KMS key, arn:aws:kms:REGION:ACCOUNT:key/ID; no alias",
    r"^vpc-([0-9a-f]{8}|[0-9a-f]{17})$": f"vpc- {_AN_ID}",
    r"^subnet-([0-9a-f]{8}|[0-9a-f]{17})$": f"subnet- {_AN_ID}",
    r"^rtb-([0-9a-f]{8}|[0-9a-f]{17})$": f"rtb- {_AN_ID}",
    r"^sg-([0-9a-f]{8}|[0-9a-f]{17})$": f"sg- {_AN_ID}",
}


def asked_for(pattern: str) -> str:
    """Return what a pattern asks for, as a clause."""
    words = WORDS.get(pattern)
    return f"it must match {pattern}" if words is None else f"it must be {words}"


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
