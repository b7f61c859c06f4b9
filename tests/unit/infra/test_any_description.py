"""Whatever right description somebody writes passes `check`, and comes back as it was said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given

from core.cluster import changes, parse
from infra.spec import problems_of
from tests.unit.infra.any_description import descriptions


@given(descriptions())
def test_a_right_description_passes(raw: Mapping[str, Any]) -> None:
    spec = parse(raw)
    assert problems_of(spec) == []
    again = parse(json.loads(spec.model_dump_json()))
    assert again == spec
    assert changes.refused_changes(again, spec) == changes.felt_changes(again, spec) == []
