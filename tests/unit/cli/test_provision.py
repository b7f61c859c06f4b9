"""cli.provision: what `destroy` does beside the engine, by what the environment's spec says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cli import farewell, provision, stack_settings
from cli.engine.layers import Around
from cli.stack_settings import Described
from core.naming import FOUNDATION, LAYERS
from tests.unit.infra.programs import spec

FOUND = {"eks_endpoint": "https://eks.example", "eks_ca": "Y2E=", "eks_cluster_name": "test-orders"}


class Stacks:
    """Layers that are all destroyed at once."""

    def __init__(self, outputs: Mapping[str, Any]) -> None:
        self._outputs = outputs

    def outputs(self, layer: str) -> Mapping[str, Any]:
        assert layer == FOUNDATION
        return self._outputs

    def destroy(self, around: Around | None) -> list[Any]:
        for layer in reversed(LAYERS):
            if around is not None:
                around.before(layer)
                around.after(layer)
        return []


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str | None, str]]:
    """What went, in its order, and of which region, profile and namespace."""
    found: list[tuple[str, str, str | None, str]] = []
    monkeypatch.setattr(provision, "_cluster_api", lambda region, profile, _: (region, profile))
    for what in ("let_brokers_go", "delete_retained"):
        monkeypatch.setattr(
            farewell, what, lambda api, namespace, what=what: found.append((what, *api, namespace))
        )
    return found


def destroy(outputs: Mapping[str, Any]) -> None:
    stacks: Any = Stacks(outputs)
    provision.run("destroy", stacks, provision._farewell("test", stacks))


@pytest.mark.parametrize(
    ("ephemeral", "outputs", "expected"),
    [
        pytest.param(
            True,
            FOUND,
            [
                ("let_brokers_go", "us-east-1", "me", "kafka"),
                ("delete_retained", "us-east-1", "me", "kafka"),
            ],
            id="ephemeral",
        ),
        pytest.param(False, FOUND, [], id="to be kept"),
        pytest.param(True, {}, [], id="the cluster is gone already"),
    ],
)
def test_brokers_and_volumes_go_with_an_ephemeral_environment_alone(
    monkeypatch: pytest.MonkeyPatch,
    deleted: list[tuple[str, str, str | None, str]],
    ephemeral: bool,
    outputs: Mapping[str, Any],
    expected: list[tuple[str, str, str | None, str]],
) -> None:
    described = Described(spec(ephemeral=ephemeral), "me")
    monkeypatch.setattr(stack_settings, "described", lambda _environment: described)
    destroy(outputs)
    assert deleted == expected
