"""What a cold start pays for: every function imports only what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

NEVER = {"pydantic", "pulumi", "pyspark", "kubernetes", "local", "infra", "pandas"}
CASES = [("interruption", {"kafka"}), ("tick", set()), ("sweep", {"kafka"})]


@pytest.mark.parametrize(("function", "also"), CASES)
def test_a_function_imports_nothing_it_does_not_use(function: str, also: set[str]) -> None:
    program = f"import sys, handlers.{function}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & (NEVER | also)
