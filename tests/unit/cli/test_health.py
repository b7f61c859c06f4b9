"""cli.health: what λ health answered, as people and programs read it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError
from rich.console import Console
from typer.testing import CliRunner

from cli import health as command
from cli.main import app
from cli.target import Cluster
from cli.watching import Pace
from core.ground.errors import StillwaterError
from core.health.verdict import Health, HealthVerdict, Part, PartKind, cluster_health, document
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


def test_a_function_that_cannot_be_invoked_is_a_sentence_and_no_verdict(
    service: FakeLambda,
) -> None:
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


def test_a_watch_shows_what_changes_and_outlasts_an_examination_that_fails(
    service: FakeLambda,
) -> None:
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
    "a health of a newer release": {
        "statusCode": 200,
        "body": json.dumps(json.loads(told()["body"]) | {"status": "resting"}),
    },
    "parts without a reason": {
        "statusCode": 200,
        "body": json.dumps(json.loads(told()["body"]) | {"parts": [{"kind": "quorum"}]}),
    },
}


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
    desk = Cluster(spec(), FakeLambda(payload=payload))  # type: ignore[arg-type]
    with pytest.raises(StillwaterError, match="in a form that this release cannot read"):
        command.ask(desk)
