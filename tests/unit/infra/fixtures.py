"""Fixtures of the tests of infra/ and stacks/."""

import os
from collections.abc import Iterator

import pytest

from tests.unit.infra import programs
from tests.unit.infra.programs import run_layers
from tests.unit.infra.recording import Recorded

__all__ = ["cache", "layers"]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # A module at a time: other folders' tests look for their tools in the real cache.
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "recorded"
    shared.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STILLWATER_CACHE", str(shared))
        patch.setattr(programs, "KEPT", [shared])
        yield


@pytest.fixture(scope="module")
def layers(cache: None) -> dict[str, Recorded]:
    """The recorded layers of the small cluster of programs.py; read only."""
    return run_layers()
