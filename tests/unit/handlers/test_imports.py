"""What a cold start pays for: every function imports only what it uses (bench/imports measures)."""

from __future__ import annotations

import subprocess
import sys

import pytest

NEVER = {"pydantic", "pulumi", "pyspark", "kubernetes", "local", "infra", "pandas", "yaml"}
KUBERNETES = {"handlers.adapters.eks", "handlers.adapters.kubernetes"}
SLACK, KAFKA = {"slack_sdk"}, {"kafka"}
BATCH = {"aws_lambda_powertools.utilities.batch"}
# What each function has no use for.
CASES = {
    "interruption": KAFKA | SLACK,
    "tick": SLACK,
    "rotate": SLACK | BATCH,
    "sweep": KAFKA | SLACK | BATCH,
    "health": SLACK | BATCH,
    "samples": KAFKA | SLACK | BATCH | {"core.incidents.decide"},
    "webhook": KAFKA | SLACK | BATCH | KUBERNETES | {"core.incidents.decide"},
    "slack": KAFKA | KUBERNETES | {"slack_sdk.socket_mode", "aiohttp"},
}


@pytest.mark.parametrize("function", CASES)
def test_a_function_imports_nothing_it_does_not_use(function: str) -> None:
    program = f"import sys, handlers.{function}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    packages = {name.partition(".")[0] for name in loaded}
    assert not packages & NEVER
    assert not loaded & CASES[function]
