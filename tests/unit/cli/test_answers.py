"""What λ health and λ volumes answered, as people and programs read it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from rich.console import Console
from typer.testing import CliRunner

from cli import health as command
from cli import volumes
from cli.main import app
from cli.target import Cluster
from cli.watching import Pace
from core.ground.errors import InvalidInput, StillwaterError
from core.health.verdict import Health, HealthVerdict, Part, PartKind, cluster_health, document
from core.volumes.sizing import Gp3
from core.volumes.views import History, Modification, ModificationState
from tests.every_case import every_case
from tests.unit.infra.programs import spec


def told(*sick: Part) -> dict[str, Any]:
    """Return λ health's answer about a cluster of five parts and these."""
    well = HealthVerdict(Health.HEALTHY, "It is well.")
    names = {"quorum": PartKind.QUORUM, "partitions": PartKind.PARTITIONS, "10": PartKind.BROKER}
    parts = [Part(kind, name, well) for name, kind in {**names, "20": PartKind.BROKER}.items()]
    found = cluster_health([*parts, *sick])
    body = document("orders", found, 0.0, 0.4)
    return {"statusCode": found.status_code, "body": json.dumps(body)}


FENCED = Part(PartKind.BROKER, "30", HealthVerdict(Health.UNHEALTHY, "Broker 30 is [fenced]."))
OFFLINE = Part(PartKind.PARTITIONS, "p", HealthVerdict(Health.UNHEALTHY, "No broker leads t-0."))


@dataclass
class FakeLambda:
    """The client of a session; answers every invocation alike."""

    payload: Any = None
    error: Exception | None = None
    function_error: str | None = None
    invoked: list[str] = field(default_factory=list)

    def client(self, service: str, **_settings: Any) -> FakeLambda:
        assert service == "lambda"
        return self

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        assert json.loads(Payload) == {}
        self.invoked.append(FunctionName)
        if self.error is not None:
            raise self.error
        answer: dict[str, Any] = {"Payload": io.BytesIO(json.dumps(self.payload).encode())}
        if self.function_error:
            answer["FunctionError"] = self.function_error
        return answer


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> FakeLambda:
    fake = FakeLambda(told())
    monkeypatch.setattr(
        Cluster, "named", lambda _environment: Cluster(spec(environment="local"), fake)
    )
    return fake


def run(*options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["health", "local", *options], env={"COLUMNS": "150"})
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("sick", "code", "words"),
    [
        ([], 0, "All 4 parts are healthy."),
        ([FENCED], 1, "Broker 30 is [fenced]."),
        ([OFFLINE], 2, "No broker leads t-0."),
    ],
)
def test_the_exit_code_is_the_verdicts(
    service: FakeLambda, sick: list[Part], code: int, words: str
) -> None:
    service.payload = told(*sick)
    exited, page = run()
    assert (exited, words in page) == (code, True), page
    assert service.invoked == ["local-orders-health"]


def test_parts_of_a_kind_are_one_line_and_those_that_ail_have_their_own() -> None:
    console = Console(file=(out := io.StringIO()), width=150)
    payload = told(FENCED)
    console.print(command.page(command.Examined(503, json.loads(payload["body"]))))
    lines = out.getvalue().splitlines()
    (brokers,) = [line for line in lines if "brokers" in line]
    assert "2 of 3 healthy" in brokers
    assert sum("It is well." in line for line in lines) == 2  # quorum, partitions
    assert [line for line in lines if "unhealthy" in line and "[fenced]" in line]


def test_json_is_the_body_as_it_came(service: FakeLambda) -> None:
    service.payload = told(FENCED)
    code, line = run("--json")
    assert (code, json.loads(line)) == (1, json.loads(service.payload["body"]))


def test_a_function_that_cannot_be_invoked_is_a_sentence(service: FakeLambda) -> None:
    refusal = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}
    service.error = ClientError(refusal, "Invoke")
    code, page = run()
    assert code == 2
    assert "lambda:InvokeFunction" in page


def test_a_function_that_fails_is_a_sentence_and_no_verdict(service: FakeLambda) -> None:
    service.payload, service.function_error = {"errorMessage": "KeyError"}, "Unhandled"
    code, page = run()
    assert code == 2
    assert "failed (KeyError)" in page


class Enough(Exception):
    """Whoever watches has seen enough."""


def pace_of(naps: int, passed: list[float]) -> Pace:
    """Return a pace whose clock a test turns; it ends after so many naps."""

    def pause(seconds: float) -> None:
        passed.append(seconds)
        if len(passed) > naps:
            raise Enough

    return Pace(seconds=5.0, now=lambda: sum(passed), pause=pause)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_watch_looks_again(service: FakeLambda, *, as_json: bool) -> None:
    console = Console(file=(out := io.StringIO()), width=150, force_terminal=True)
    passed: list[float] = []
    with pytest.raises(Enough):
        command.show("local", console, watch=True, as_json=as_json, pace=pace_of(2, passed))
    assert len(service.invoked) == 3
    assert passed == [5.0] * 3
    assert out.getvalue().count("All 4 parts are healthy.") >= 3


def test_a_watch_shows_changes_and_outlasts_an_examination_that_fails(service: FakeLambda) -> None:
    console = Console(file=(out := io.StringIO()), width=150, force_terminal=True)
    passed: list[float] = []

    def pause(seconds: float) -> None:
        passed.append(seconds)
        service.function_error, service.payload = None, told(FENCED)
        if len(passed) == 1:
            service.payload, service.function_error = {"errorMessage": "KeyError"}, "Unhandled"
        if len(passed) == 3:
            raise Enough

    with pytest.raises(Enough):
        command.show(
            "local", console, watch=True, as_json=False, pace=Pace(seconds=5.0, pause=pause)
        )
    well, failed, fenced = (
        out.getvalue().index(words)
        for words in ("All 4 parts are healthy.", "failed (KeyError)", "Broker 30 is [fenced].")
    )
    assert well < failed < fenced
    # The terminal has its cursor again.
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


ODD: dict[str, Any] = {
    "nothing": None,
    "a list": [],
    "no body": {"statusCode": 200},
    "a body that is no JSON": {"statusCode": 200, "body": "<html>"},
    "a page of a proxy": {"message": "Forbidden"},
    "a health of a newer release": {"statusCode": 200,
        "body": json.dumps(json.loads(told()["body"]) | {"status": "resting"})},
    "parts without a reason": {"statusCode": 200,
        "body": json.dumps(json.loads(told()["body"]) | {"parts": [{"kind": "quorum"}]})},
}  # fmt: skip


def odd_in(key: str, value: object, part: str | None = None) -> dict[str, Any]:
    """Return an answer in which something is of another kind."""
    document = json.loads(told(FENCED)["body"])
    (document if part is None else document["parts"][0])[part or key] = value
    return {"statusCode": 503, "body": json.dumps(document)}


ODD |= {
    f"{key} is {value!r}": odd_in(key, value)
    for key in ("status", "message", "cluster", "at", "seconds", "parts")
    for value in (None, {}, [[]], "x" if key in {"seconds", "parts", "status"} else 7)
}
ODD |= {
    f"{key} of a part is {value!r}": odd_in("", value, key)
    for key in ("kind", "name", "status", "reason", "notes")
    for value in (None, {"it": 1}, 7)
}


@every_case("payload", ODD.values(), ids=ODD.keys())
def test_an_answer_of_another_form_is_one_sentence(payload: Any) -> None:
    desk = Cluster(spec(), FakeLambda(payload=payload))
    with pytest.raises(StillwaterError, match="in a form that this release cannot read"):
        command.ask(desk)


PLAN = {
    "at": 1_800_000_000.0,
    "mode": "advise",
    "budget_usd": None,
    "above_spec_usd": "0.00",
    "planned_usd": "9.60",
    "volumes": {"data-0-orders-broker-a-10": "vol-0a"},
    "decisions": [
        {"pool": "broker-a", "volume": 0, "kind": "grow",
            "reason": "220 GiB instead of 100: it fills", "monthly_usd_change": "9.60",
            "applied": False}],
}  # fmt: skip


def desk(answer: dict[str, Any], *, failed: bool = False, **volumes: Any) -> Any:
    payload = io.BytesIO(json.dumps(answer).encode())
    called: dict[str, Any] = {"Payload": payload, **({"FunctionError": "x"} if failed else {})}
    client = SimpleNamespace(invoke=lambda **asked: {**called, "asked": asked})
    reached = Cluster(spec(volumes=volumes), None)
    vars(reached)["client"] = lambda *_: client
    return reached


def shown(answer: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=200)
    volumes.plan(desk(answer), console)
    printed: str = console.file.getvalue()
    return printed


def test_a_plan_is_shown_with_its_cost_and_its_reason() -> None:
    printed = shown(PLAN)
    assert "mode advise: $0.00 a month above the spec, $9.60 with this plan, no budget" in printed
    assert "220 GiB instead of 100: it fills" in printed


def test_applying_what_is_only_advice_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidInput, match="set it to apply"):
        volumes.apply(desk(PLAN), Console())


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
