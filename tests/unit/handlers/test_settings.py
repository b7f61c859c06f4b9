"""What a function is told, read once at start, and what its cold start pays for.

It imports only what it uses (bench/imports measures), which follows from its definition.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from core.ground.errors import InvalidInput
from core.settings import codec
from core.settings.codec import kept_key, setting_text
from core.settings.functions import ApiServer, InCluster, InKafka, SweepSettings, late_seconds
from handlers.store.table import read_settings
from infra.functions.catalogue import EVERY
from infra.functions.definition import Definition
from tests.every_case import every_case

API = ApiServer(eks_cluster="local-orders", endpoint="https://api:6443", ca_pem="PEM")
SETTINGS = SweepSettings(
    prefix="local-orders",
    cluster="orders",
    region="us-east-1",
    ledger_table="incidents",
    ticks_queue_url="http://sqs/ticks",
    namespace="kafka",
    api=API,
    archive_bucket="archive",
    tick_interval_seconds=20,
)
DOCUMENT: dict[str, Any] = codec.document(SETTINGS)
KEPT = {"api": DOCUMENT["api"]}
SHORT = {name: value for name, value in DOCUMENT.items() if name not in KEPT}


def named(kept: dict[str, Any]) -> dict[str, str]:
    """Return the environment that names an item of this content."""
    key = kept_key("loop", json.dumps(kept))
    return {"STILLWATER_SETTINGS": json.dumps(SHORT), "STILLWATER_KEPT": key}


NAMED = named(KEPT)


class OneItem:
    """DynamoDB with one item, or none."""

    def __init__(self, kept: dict[str, Any] | None) -> None:
        self.kept = kept
        self.asked: list[Any] = []

    def get_item(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked["Key"])
        item = {} if self.kept is None else {"Item": {"settings": {"S": json.dumps(self.kept)}}}
        return {"ResponseMetadata": {"RequestId": "1"}, **item}


def read(environment: dict[str, str], client: Any) -> SweepSettings:
    return read_settings(SweepSettings, environment, client=client)


def test_what_is_kept_joins_the_environment() -> None:
    table = OneItem(KEPT)
    assert read(NAMED, table) == SETTINGS
    assert table.asked == [{"pk": {"S": NAMED["STILLWATER_KEPT"]}}]
    assert SETTINGS.whose.marks == ({"aws-node-termination-handler/local-orders": ()},)


def test_an_item_for_several_functions_holds_what_another_one_reads() -> None:
    both = {**KEPT, "kafka_bootstrap": ["kafka.example:9094"]}
    assert read(named(both), OneItem(both)) == SETTINGS


def test_an_item_that_somebody_else_has_written_is_refused() -> None:
    """A forged endpoint would be sent the function's token for EKS."""
    forged = {"api": {**DOCUMENT["api"], "endpoint": "https://attacker.example"}}
    with pytest.raises(InvalidInput, match="holds other settings than were written"):
        read(NAMED, OneItem(forged))
    for key in ("settings#loop-", "settings#loop-0", "settings"):
        with pytest.raises(InvalidInput, match="holds other settings"):
            read({**NAMED, "STILLWATER_KEPT": key}, OneItem(forged))


def test_the_key_of_an_earlier_release_is_half_as_long_and_holds() -> None:
    before = {**NAMED, "STILLWATER_KEPT": NAMED["STILLWATER_KEPT"][:-16]}
    assert read(before, OneItem(KEPT)) == SETTINGS


def test_what_nobody_knows_in_the_environment_is_told() -> None:
    odd = {**NAMED, "STILLWATER_SETTINGS": json.dumps({**SHORT, "kafka_bootstrap": []})}
    with pytest.raises(InvalidInput, match="kafka_bootstrap is unknown"):
        read(odd, OneItem(KEPT))


def test_what_a_person_sets_on_the_function_holds() -> None:
    mine = {**DOCUMENT, "api": {**DOCUMENT["api"], "endpoint": "https://mine"}}
    by_hand = {**NAMED, "STILLWATER_SETTINGS": json.dumps(mine)}
    assert read(by_hand, OneItem(KEPT)).api.endpoint == "https://mine"


def test_an_environment_that_names_no_item_asks_nobody() -> None:
    table = OneItem(None)
    assert read({"STILLWATER_SETTINGS": json.dumps(DOCUMENT)}, table) == SETTINGS
    assert table.asked == []


def test_an_item_that_is_gone_is_a_sentence() -> None:
    with pytest.raises(InvalidInput, match=r"incidents has no item settings#loop-.*pulumi up"):
        read(NAMED, OneItem(None))


@pytest.mark.parametrize("text", ["", "[]", "{", '"held"'])
def test_settings_that_nobody_rendered_are_a_sentence(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"must be a JSON object; .* run `pulumi up`"):
        read({"STILLWATER_SETTINGS": text}, OneItem(None))


def test_every_problem_is_a_sentence_with_the_remedy() -> None:
    wrong = {**DOCUMENT, "tick_interval_seconds": "soon"}
    del wrong["archive_bucket"]
    with pytest.raises(InvalidInput) as raised:
        read({"STILLWATER_SETTINGS": json.dumps(wrong)}, OneItem(None))
    missing, interval = sorted(raised.value.problems)
    assert missing.startswith("STILLWATER_SETTINGS is wrong: archive_bucket is missing; ")
    assert "tick_interval_seconds is 'soon', and must be a number" in interval
    assert all(problem.endswith("run `pulumi up` on it again.") for problem in (missing, interval))


def test_a_tick_is_never_late_before_the_longest_tick_is_over() -> None:
    assert (late_seconds(20), late_seconds(2)) == (60, 45)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"prefix": 3}'])
def test_a_name_that_cannot_be_read_is_no_name(text: str) -> None:
    assert setting_text({"STILLWATER_SETTINGS": text}, "prefix") is None


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
