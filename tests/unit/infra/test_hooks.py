"""Nobody stands in a hook that no function answers: hooks come after the functions."""

from __future__ import annotations

import pytest

from tests.unit.infra.recording import Recorded, Resource

HOOK = "autoscaling/lifecycleHook:LifecycleHook"
# What a held instance needs: news of it, a tick, the right to ask the API server, and a sweep.
ANSWERING = {
    "handlers-interruption-source",
    "handlers-tick-source",
    "handlers-tick-function",
    "handlers-sweep-function",
}


@pytest.fixture
def hooks(layers: dict[str, Recorded]) -> list[Resource]:
    return layers["operations"].of(HOOK)


def test_no_layer_before_the_functions_makes_a_hook(layers: dict[str, Recorded]) -> None:
    for layer in ("foundation", "platform", "kafka"):
        assert layers[layer].of(HOOK) == []


def test_a_hook_comes_after_all_that_answers_it(hooks: list[Resource]) -> None:
    for hook in hooks:
        assert hook.depends_on >= ANSWERING, hook.name
