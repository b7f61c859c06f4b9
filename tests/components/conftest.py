"""A twin with the language host of YAML beside the engine: `make test-components` builds it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from local import twin as twins
from local.tools import tool_path
from local.twin import Twin

YAML_HOST = "pulumi-language-yaml"


@pytest.fixture(scope="session")
def twin() -> Iterator[Twin]:
    """A running twin whose engine runs programs in YAML, too."""
    with twins.running(lambda _sentence: None) as running:
        running.environment()  # puts the engine's folder there
        # A file of its own: it looks for Python's host beside where it really stands.
        shutil.copy2(tool_path(YAML_HOST), running.place.path("bin") / YAML_HOST)
        yield running
