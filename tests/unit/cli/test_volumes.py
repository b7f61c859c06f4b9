"""`stillwater volumes`: the function's answer as people read it, and its failures as sentences."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from cli import volumes
from cli.target import Cluster
from core.cluster import parse
from core.ground.errors import InvalidInput, StillwaterError
from core.volumes.sizing import Gp3
from core.volumes.views import History, Modification, ModificationState

PLAN = {
    "at": 1_800_000_000.0,
    "mode": "advise",
    "budget_usd": None,
    "above_spec_usd": "0.00",
    "planned_usd": "9.60",
    "volumes": {"data-0-orders-broker-a-10": "vol-0a"},
    "decisions": [
        {
            "pool": "broker-a",
            "volume": 0,
            "kind": "grow",
            "reason": "220 GiB instead of 100: it fills",
            "monthly_usd_change": "9.60",
            "applied": False,
        }
    ],
}


def desk(answer: dict[str, Any], *, failed: bool = False, **volumes: Any) -> Any:
    payload = io.BytesIO(json.dumps(answer).encode())
    called: dict[str, Any] = {"Payload": payload, **({"FunctionError": "x"} if failed else {})}
    spec = parse(
        {
            "name": "orders",
            "environment": "test",
            "region": "us-east-1",
            "availability_zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
            "volumes": volumes,
            "pools": [
                {
                    "name": "node",
                    "role": "combined",
                    "instance_type": "r7g.xlarge",
                    "first_node_id": 0,
                }
            ],
        }
    )
    client = SimpleNamespace(invoke=lambda **asked: {**called, "asked": asked})
    reached = Cluster(spec, None)
    vars(reached)["client"] = lambda *_: client
    return reached


def shown(answer: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=200)
    volumes.plan(desk(answer), console)
    printed: str = console.file.getvalue()  # type: ignore[attr-defined]
    return printed


def test_a_plan_is_shown_with_its_cost_and_its_reason() -> None:
    printed = shown(PLAN)
    assert "mode advise: $0.00 a month above the spec, $9.60 with this plan, no budget" in printed
    assert "220 GiB instead of 100: it fills" in printed


def test_applying_what_is_only_advice_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidInput, match="set it to apply"):
        volumes.apply(desk(PLAN), Console())


def test_a_function_that_fails_is_a_sentence_with_its_log() -> None:
    with pytest.raises(StillwaterError, match="/aws/lambda/test-orders-volumes"):
        volumes.plan(desk({"errorMessage": "boom"}, failed=True), Console())


def test_a_program_is_given_the_functions_own_answer(capsys: pytest.CaptureFixture[str]) -> None:
    applies = desk(PLAN, mode="apply", max_monthly_increase_usd=10)
    volumes.plan(desk(PLAN), Console(), as_json=True)
    assert json.loads(capsys.readouterr().out) == PLAN
    volumes.apply(applies, Console(), as_json=True)
    assert json.loads(capsys.readouterr().out) == PLAN


def test_a_program_is_told_what_was_modified_and_how_much_is_left_today(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = Modification(
        started_at=900.0,
        state=ModificationState.COMPLETED,
        target=Gp3(120),
        reason="it fills",
        kind="grow",
    )
    history = History(known_since=-1e6, looked_at=990.0, modifications=(grown,))
    known = SimpleNamespace(document={"volumes": {"data-0-orders-broker-a-10": "vol-0a"}})
    monkeypatch.setattr(volumes.volume_records, "read", lambda *_: SimpleNamespace(history=history))
    ours = SimpleNamespace()
    ours.records = SimpleNamespace(read=lambda _key: known)
    volumes.history(ours, Console(), 1000.0, as_json=True)
    (listed,) = json.loads(capsys.readouterr().out)["volumes"]
    assert (listed["volume"], listed["left_today"]) == ("vol-0a", 3)
    (modified,) = listed["modifications"]
    assert (modified["state"], modified["from"]) == ("completed", None)
    assert modified["to"] == {"size_gib": 120, "iops": 3000, "throughput_mib_per_s": 125}
