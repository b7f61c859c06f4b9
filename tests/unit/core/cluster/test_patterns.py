"""No expression is shown to a person: every pattern of a description has its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from core.cluster.adoption import Adoption
from core.cluster.reading import WORDS, asked_for, parse
from core.cluster.spec import ClusterSpec
from core.ground.errors import InvalidInput
from tests.every_case import every_case


def patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from patterns(each)
    elif isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        yield from schema.get("patternProperties", ())
        for each in schema.values():
            yield from patterns(each)


def of(*models: type[BaseModel]) -> set[str]:
    return {found for model in models for found in patterns(model.model_json_schema())}


def test_every_pattern_has_words_and_all_words_a_pattern() -> None:
    assert of(ClusterSpec, Adoption) == set(WORDS)


@every_case("pattern", sorted(WORDS), ids=lambda each: WORDS[each][:40])
def test_words_hold_nothing_of_an_expression(pattern: str) -> None:
    said = asked_for(pattern)
    assert said.startswith("it must be ")
    assert not any(part in said for part in ("[", "\\", "^", "$", "("))


@every_case("pattern", sorted(WORDS))
def test_a_digit_or_letter_is_one_of_ascii(pattern: str) -> None:
    # A class of pydantic's engine holds those of every script, which nobody at AWS takes.
    assert not re.search(r"\\[dw]", pattern)


def numbers(schema: Any, place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(schema, list):
        for number, each in enumerate(schema):
            yield from numbers(each, f"{place}.{number}")
    elif isinstance(schema, dict):
        if schema.get("type") in {"integer", "number"}:
            yield place, schema
        for key, each in schema.items():
            yield from numbers(each, f"{place}.{key}")


@pytest.mark.parametrize("model", [ClusterSpec, Adoption])
def test_every_number_ends_where_its_reader_ends(model: type[BaseModel]) -> None:
    # Settings of Kafka's and Connect's have their own (core.cluster.kafka_settings).
    found = [
        place
        for place, schema in numbers(model.model_json_schema())
        if not schema.keys() & {"maximum", "exclusiveMaximum", "enum"} and ".config." not in place
    ]
    assert found == []


def test_digits_of_another_script_are_no_time_of_day() -> None:
    with pytest.raises(InvalidInput, match="a time of day in UTC"):
        parse({"snapshots": {"start_at_utc": "0٣:00"}})


def test_a_zone_that_is_given_as_a_region_is_told_so() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse({"region": "us-east-1a"})
    assert "region is 'us-east-1a': it must be a region such as eu-west-1; a zone has a" in str(
        refused.value
    )
