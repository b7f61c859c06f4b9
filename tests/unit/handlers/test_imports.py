"""What a cold start pays for: every function imports only what it uses (bench/imports measures).

What it uses follows from its definition: what it is told, what wakes it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

from core.settings.functions import InCluster, InKafka
from infra.functions.catalogue import EVERY
from infra.functions.definition import Definition
from tests.every_case import every_case

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


# What every function has, boto3, is imported once; each imports the rest in a process of its own.
PROGRAM = """
import os, sys
import boto3
for name in sys.argv[1:]:
    if os.fork() == 0:
        __import__(f"handlers.{name}")
        print(name, *sys.modules, flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"handlers.{name} cannot be imported")
"""


@pytest.fixture(scope="module")
def imported() -> Mapping[str, set[str]]:
    """The modules that are there once a function's entry point has been imported."""
    command = [sys.executable, "-c", PROGRAM, *(each.name for each in EVERY)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = (line.split() for line in done.stdout.splitlines())
    return {name: set(modules) for name, *modules in lines}


@every_case("function", EVERY, ids=lambda each: each.name)
def test_a_function_imports_nothing_it_does_not_use(
    imported: Mapping[str, set[str]], function: Definition
) -> None:
    loaded = imported[function.name]
    assert not {name.partition(".")[0] for name in loaded} & NEVER
    assert not loaded & unused(function)
