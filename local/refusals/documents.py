"""Reads documents: what a program hands over as text or as an object, in JSON or in YAML."""

from __future__ import annotations

import functools
import importlib.util
import json
import tomllib
from pathlib import Path
from typing import Any

import yaml

from local.refusals.fields import document as content_of


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
