"""cli.provision: what `destroy` does beside the engine, by what the environment's spec says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cli import provision, stack_settings
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

    def destroy(self, after: Callable[[str], None]) -> list[Any]:
        for layer in reversed(LAYERS):
            after(layer)
        return []


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None, str]]:
    """What was deleted: region, profile and namespace of each time."""
    found: list[tuple[str, str | None, str]] = []
    monkeypatch.setattr(provision, "_cluster_api", lambda region, profile, _: (region, profile))
    monkeypatch.setattr(
        provision, "delete_retained", lambda api, namespace: found.append((*api, namespace))
    )
    return found


def destroy(outputs: Mapping[str, Any]) -> None:
    stacks: Any = Stacks(outputs)
    provision.run("destroy", stacks, provision._volumes("test", stacks))


@pytest.mark.parametrize(
    ("ephemeral", "outputs", "expected"),
    [
        pytest.param(True, FOUND, [("us-east-1", "me", "kafka")], id="ephemeral"),
        pytest.param(False, FOUND, [], id="to be kept"),
        pytest.param(True, {}, [], id="the cluster is gone already"),
    ],
)
def test_volumes_go_with_an_ephemeral_environment_alone(
    monkeypatch: pytest.MonkeyPatch,
    deleted: list[tuple[str, str | None, str]],
    ephemeral: bool,
    outputs: Mapping[str, Any],
    expected: list[tuple[str, str | None, str]],
) -> None:
    described = Described(spec(ephemeral=ephemeral), "me")
    monkeypatch.setattr(stack_settings, "described", lambda _environment: described)
    destroy(outputs)
    assert deleted == expected
