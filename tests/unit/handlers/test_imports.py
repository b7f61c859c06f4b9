"""What a cold start pays for: every function imports only what it uses (bench/imports measures).

What it uses follows from its definition: what it is told, what wakes it.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from core.settings.functions import InCluster, InKafka
from infra.functions.catalogue import EVERY
from infra.functions.definition import Definition

NEVER = {"pydantic", "pulumi", "pyspark", "kubernetes", "local", "infra", "pandas", "yaml"}
KUBERNETES = {"handlers.adapters.eks", "handlers.adapters.kubernetes"}
BATCH = "aws_lambda_powertools.utilities.batch"
# What these have no use for besides.
BESIDES = {
    "samples": {"core.incidents.decide"},
    "webhook": {"core.incidents.decide"},
    "slack": {"slack_sdk.socket_mode", "aiohttp"},
}


def unused(function: Definition) -> set[str]:
    """Return the modules that a function has no use for."""
    found = set(BESIDES.get(function.name, ()))
    if function.name != "slack":
        found.add("slack_sdk")
    if function.reads is None:
        found.add(BATCH)
    if not issubclass(function.settings, InKafka):
        found.add("kafka")
    if not issubclass(function.settings, InCluster):
        found |= KUBERNETES
    return found


@pytest.mark.parametrize("function", EVERY, ids=lambda each: each.name)
def test_a_function_imports_nothing_it_does_not_use(function: Definition) -> None:
    program = f"import sys, handlers.{function.name}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    packages = {name.partition(".")[0] for name in loaded}
    assert not packages & NEVER
    assert not loaded & unused(function)
