"""Of whatever right description somebody writes, AWS refuses nothing that is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

from hypothesis import Phase, given, settings

from local.refusals import gate
from tests.effort import EFFORT
from tests.unit.infra import real_outputs, recording
from tests.unit.infra.any_description import descriptions
from tests.unit.infra.aws_gate import wanted
from tests.unit.infra.programs import run_layers


# A program takes seconds: `make test-long` tries twenty.
@settings(max_examples=EFFORT, phases=[Phase.reuse, Phase.generate], deadline=None)
@given(raw=descriptions())
def test_aws_refuses_nothing_of_a_right_description(raw: Mapping[str, Any]) -> None:
    with (
        mock.patch.object(recording, "REGION", raw["region"]),
        mock.patch.object(real_outputs, "REGION", raw["region"]),
    ):
        # Layers are recorded when they are asked for: in this region, as long as it is said.
        everything = wanted(run_layers(raw, real_sizes=True))
    assert [refusal.sentence for refusal in gate.all_refusals(everything)] == []
