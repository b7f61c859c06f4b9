"""Reads what a program hands over: values within blocks, documents, ranges of addresses."""

from __future__ import annotations

import functools
import importlib.util
import ipaddress
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

GIVEN, ABSENT = "(given)", "(absent)"


def values(inputs: Any, path: str) -> list[Any]:
    """Return what is given under a dotted path; a star stands for every element of a list.

    A path leads through a document in JSON as through blocks.

    >>> values({"rules": [{"id": "a"}, {}]}, "rules.*.id"), values({"body": '{"a": 1}'}, "body.a")
    (['a'], [1])
    """
    found = [inputs]
    for part in path.split(".") if path else ():
        found = [content_of(each) if isinstance(each, str) else each for each in found]
        if part == "*":
            found = [item for each in found if isinstance(each, list | tuple) for item in each]
        else:
            found = [each.get(part) for each in found if isinstance(each, Mapping)]
    return [each for each in found if each is not None]


@functools.lru_cache(maxsize=256)
def content_of(written: str) -> Any:
    """Return the content of a text in JSON, which lacks Python's NaN; None: it is none."""
    try:
        return json.loads(written, parse_constant=_no_number)
    except (RecursionError, ValueError):
        return None


def _no_number(written: str) -> float:
    raise ValueError(written)


def is_empty(value: Any) -> bool:
    """Say whether an input says nothing; zero says something.

    >>> [is_empty(each) for each in (None, "", [], False, 0)]
    [True, True, True, True, False]
    """
    return value is None or value is False or (hasattr(value, "__len__") and len(value) == 0)


def holds(where: Mapping[str, Sequence[str]], block: Any, inputs: Mapping[str, Any]) -> bool:
    """Say whether each input of a block, or after ^ of the resource, is one of its words.

    A word that begins with a tilde is an expression.
    """
    return all(_is(words, value_at(key, block, inputs)) for key, words in where.items())


def value_at(key: str, block: Any, inputs: Mapping[str, Any]) -> Any:
    """Return a key of the block, or after ^ a path from the resource."""
    found = values(inputs, key[1:]) if key.startswith("^") else values(block, key)
    return found[0] if found else None


def plain_text(value: Any) -> str:
    """Return a value as a program writes it: the engine's whole numbers are floats."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    written = str(value)
    return written.lower() if written.lower() in {"true", "false"} else written


def _is(words: Sequence[str], value: Any) -> bool:
    if is_empty(value) and value is not False:
        return ABSENT in words
    said = plain_text(value)
    return GIVEN in words or any(
        re.fullmatch(word[1:], said) if word.startswith("~") else said == plain_text(word)
        for word in words
    )


@functools.cache
def _all_words() -> dict[str, list[str]]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text())


def words(name: str) -> frozenset[str]:
    """Return a list of words.toml."""
    return frozenset(_all_words()[name])


@functools.cache
def cfn_lint_data() -> Path | None:
    """Return the folder of cfn-lint's data, found without importing it, which takes a second."""
    found = importlib.util.find_spec("cfnlint")
    return Path(found.origin).parent / "data" if found and found.origin else None


def text(document: Any) -> str:
    """Return a document as it is sent; a program may pass it as text or as an object."""
    return document if isinstance(document, str) else json.dumps(document)


def parse(document: Any) -> dict[str, Any] | None:
    """Return a document's content; None: it is no JSON object."""
    found = content_of(text(document))
    return found if isinstance(found, dict) else None


def parse_yaml(document: Any) -> Any:
    """Return the content of JSON or YAML; None: it is neither."""
    try:
        # YAML takes no tabs, which JSON may be indented with.
        return json.loads(str(document))
    except ValueError:
        try:
            return yaml.safe_load(str(document))
        except yaml.YAMLError:
            return None


def as_list(given: Any) -> list[Any]:
    """Return what a policy names once or in a list."""
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def without_whitespace(document: Any) -> int:
    """Return a policy's size as IAM counts it: characters that are not white space."""
    return sum(not character.isspace() for character in text(document))


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def network(written: object, *, strict: bool = False) -> Network | None:
    """Return a block as a network; None: it is none, or has host bits where none may be.

    >>> network("10.0.0.7/24"), network("10.0.0.7/24", strict=True), network("mars")
    (IPv4Network('10.0.0.0/24'), None, None)
    """
    try:
        return ipaddress.ip_network(str(written), strict=strict)
    except ValueError:
        return None


def is_within(block: Network | None, *around: object) -> bool:
    """Say whether a block lies in one of others; one that is none lies nowhere."""
    return any(
        block.subnet_of(found)  # type: ignore[arg-type]  # of one version, both or neither
        for each in around
        if block and (found := network(each)) and found.version == block.version
    )
