"""Running layers: what a run's events become, which engine is found, where its parts are put."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pulumi.automation import EngineEvent, OpType
from pulumi.automation.events import DiagnosticEvent, SummaryEvent

from cli import provision
from cli.engine.events import OTHERWISE, EngineStep, EngineWatch, LayerFailed
from cli.engine.layers import EngineCommand, Layers
from core.ground.errors import MissingPrerequisite
from local.place import Place
from local.pulumi import bin as engine_bin
from local.pulumi.bin import twin_project

QUEUE = "urn:pulumi:local-platform::stillwater::aws:sqs/queue:Queue::events"
STACK = "urn:pulumi:local-platform::stillwater::pulumi:pulumi:Stack::stillwater-local-platform"
KINDS = (
    "resource_pre_event", "res_outputs_event", "res_op_failed_event", "summary_event",
    "diagnostic_event",
)  # fmt: skip


def event(kind: str, **fields: Any) -> Any:
    return SimpleNamespace(**{**dict.fromkeys(KINDS), kind: SimpleNamespace(**fields)})


def error(message: str, urn: str = QUEUE) -> Any:
    return event("diagnostic_event", severity="error", urn=urn, message=message)


def test_steps_are_told_as_they_start_end_and_fail() -> None:
    heard: list[EngineStep] = []
    watch = EngineWatch("platform", heard.append)
    metadata = SimpleNamespace(op=OpType.CREATE, urn=QUEUE, type="aws:sqs/queue:Queue")
    for kind in KINDS[:3]:
        watch(event(kind, metadata=metadata))
    assert [(s.layer, s.name, s.operation, s.state) for s in heard] == [
        ("platform", "events", "create", "started"),
        ("platform", "events", "create", "done"),
        ("platform", "events", "create", "failed"),
    ]


def test_the_summary_becomes_the_result() -> None:
    watch = EngineWatch("platform", None)
    changes = {
        OpType.CREATE: 3,
        OpType.UPDATE: 2,
        OpType.REPLACE: 1,
        OpType.DELETE: 4,
        OpType.SAME: 9,
    }
    watch(event("summary_event", resource_changes=changes))
    result = watch.result(1.5, {"url": "x"})
    counted = (result.created, result.updated, result.replaced, result.deleted, result.same)
    assert counted == (3, 2, 1, 4, 9)
    assert (result.changed, result.seconds, result.outputs) == (10, 1.5, {"url": "x"})


def test_each_error_is_said_once_with_its_resource() -> None:
    watch = EngineWatch("platform", None)
    for message in ("<{%reset%}>AWS refused it.<{%reset%}>\n", "AWS refused it."):
        watch(error(message))
    watch(error("<{%reset%}>update failed<{%reset%}>", STACK))
    watch(error("The spec is wrong.", STACK))
    assert watch.problems == [
        f"events failed. {OTHERWISE} In its own words: AWS refused it.",
        "The spec is wrong.",
    ]


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("another operation (install/upgrade/rollback) is in progress", "`helm rollback RELEASE"),
        ('release "nth" is in state pending-upgrade', "`helm list --all --pending -A`"),
        ("cannot re-use a name that is still in use", "`helm uninstall RELEASE"),
        ("the stack has 1 resource with pending operations", "`pulumi refresh`"),
        ("timed out waiting for the condition", "get pods,events"),
        ("User: arn is not authorized to perform: eks:CreateCluster", "Have it granted"),
        ("ExpiredToken: the token is expired", "Log in again"),
        ("no such thing was ever heard of", "Fix the cause"),
    ],
)
def test_a_providers_words_come_after_what_to_do_and_are_cut(said: str, remedy: str) -> None:
    watch = EngineWatch("platform", None)
    stack = "".join(f"\n\tat org.example.Deep(Deep.java:{n})" for n in range(500))
    watch(error(f"{said}{stack}{'x' * 20_000}"))
    (problem,) = watch.problems
    assert problem.startswith("events failed. ")
    assert remedy in problem.partition("In its own words: ")[0]
    assert said in problem.partition("In its own words: ")[2]
    assert "Deep.java" not in problem
    assert len(problem) < 800


def test_a_program_that_fell_over_shows_the_last_line_of_its_traceback() -> None:
    watch = EngineWatch("platform", None)
    watch(error("Traceback (most recent call last):\n  File \"x\"\nKeyError: 'zone'", STACK))
    assert watch.problems == [
        f"The program failed. {OTHERWISE} In its own words: KeyError: 'zone'."
    ]


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("v3.199.0", "Pulumi 3.199.0 is too old; install 3.220.0 or newer"),
        ("", "does not say its version"),
    ],
)
def test_an_engine_that_will_not_do_is_refused(tmp_path: Path, answer: str, sentence: str) -> None:
    program(tmp_path / "pulumi", f"echo {answer}")
    with pytest.raises(MissingPrerequisite, match=sentence):
        EngineCommand({"PATH": str(tmp_path)})


def test_a_missing_engine_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MissingPrerequisite, match="There is no pulumi on the PATH"):
        EngineCommand({"PATH": str(tmp_path)})


def test_the_engine_sees_the_given_environment_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "the-users-own")
    program(tmp_path / "pulumi", 'case "$1" in version) echo v3.220.0;; *) env;; esac')
    heard: list[int] = []
    command = EngineCommand(
        {"PATH": f"{tmp_path}:{os.defpath}", "MINE": "1"}, heard.append, heard.append
    )
    result = command.run(["up"], str(tmp_path), {"EXTRA": "2"})
    seen = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert (seen["MINE"], seen["EXTRA"]) == ("1", "2")
    assert "AWS_PROFILE" not in seen
    assert len(set(heard)) == 1, "its start and its end are told with one process id"


def test_an_engine_without_a_language_host_gets_ours_beside_it(tmp_path: Path) -> None:
    place = Place(75, tmp_path / "place")
    engine_bin.install(place, program(tmp_path / "tools" / "pulumi", "true"))
    host = place.path("bin", "pulumi-language-python")
    assert not place.path("bin", "pulumi").is_symlink(), "it would look beside the link's target"
    assert "local.pulumi.language_host" in host.read_text()
    assert os.access(host, os.X_OK)


def test_an_engine_with_a_language_host_keeps_its_own(tmp_path: Path) -> None:
    place = Place(75, tmp_path / "place")
    engine = program(tmp_path / "users" / "pulumi", "true")
    program(tmp_path / "users" / "pulumi-language-python", "true")
    engine_bin.install(place, engine)
    assert place.path("bin", "pulumi").resolve() == engine
    assert not place.path("bin", "pulumi-language-python").exists()


def test_installing_again_from_its_own_place_keeps_the_engine(tmp_path: Path) -> None:
    place = Place(75, tmp_path / "place")
    engine_bin.install(place, program(tmp_path / "tools" / "pulumi", "true"))
    engine_bin.install(place, place.path("bin", "pulumi"))
    assert place.path("bin", "pulumi").read_text().startswith("#!/bin/sh")
    assert place.path("bin", "pulumi-language-python").exists()


def test_providers_stand_where_the_engine_asks_for_their_versions(tmp_path: Path) -> None:
    place = Place(75, tmp_path / "place")
    engine_bin.install(place, program(tmp_path / "tools" / "pulumi", "true"))
    found = sorted(p.parent.name for p in place.path("pulumi", "plugins").glob("*/pulumi-*"))
    assert [name.rpartition("-v")[0] for name in found] == ["resource-aws", "resource-kubernetes"]


def test_the_twins_project_runs_the_repositorys_program_with_own_settings(tmp_path: Path) -> None:
    place, spec = Place(75, tmp_path), tmp_path / "cluster.yaml"
    directory = twin_project(place, "local", spec, ("foundation",))
    project = yaml.safe_load((directory / "Pulumi.yaml").read_text())
    assert Path(project["main"], "__main__.py").is_file()
    settings = directory / project["stackConfigDir"] / "Pulumi.local-foundation.yaml"
    settings.write_text(settings.read_text() + "encryptionsalt: kept\n")
    twin_project(place, "local", spec, ("foundation",))
    expected = {"config": {"stillwater:spec": str(spec)}, "encryptionsalt": "kept"}
    assert yaml.safe_load(settings.read_text()) == expected


REFUSALS = {
    "nobody is logged in": (
        "error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions",
        "Pulumi does not know where the state lives: `pulumi login s3://BUCKET`",
    ),
    "no passphrase": (
        "error: passphrase must be set with PULUMI_CONFIG_PASSPHRASE",
        "passphrase must be set with PULUMI_CONFIG_PASSPHRASE",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("ask", ["outputs", "destroy_one", "up_one", "preview_one"])
def test_what_pulumi_refuses_is_always_a_sentence(tmp_path: Path, name: str, ask: str) -> None:
    said, sentence = REFUSALS[name]
    refusing = f'[ "$1" = version ] && echo v3.220.0 && exit\necho "{said}" >&2\nexit 255'
    program(tmp_path / "pulumi", refusing)
    (tmp_path / "Pulumi.yaml").write_text("name: stillwater\nruntime: python\n")
    layers = Layers("prod", {"PATH": f"{tmp_path}:/usr/bin:/bin"}, tmp_path)
    with pytest.raises(LayerFailed) as caught:
        getattr(layers, ask)("kafka")
    (problem,) = caught.value.problems
    assert sentence in problem
    assert "stderr" not in problem


URN = "urn:pulumi:test-analytics::stillwater::pulumi:pulumi:Stack::stillwater-test-analytics"
WARNED = "pip found no pyarrow. Reports on EMR read bills line by line."


def said(severity: str, message: str, urn: str | None = URN) -> EngineEvent:
    diagnostic = DiagnosticEvent(
        message=message,
        color="never",
        severity=severity,
        urn=urn,
        prefix="",
        ephemeral=False,
        stream_id=0,
    )
    return EngineEvent(sequence=1, timestamp=1, diagnostic_event=diagnostic)


def test_a_warning_is_kept_once_apart_from_errors_and_information() -> None:
    watch = EngineWatch("analytics", None)
    for severity in ("info", "warning", "warning", "error"):
        watch(said(severity, f"{WARNED}<{{%reset%}}>\n"))
    watch(EngineEvent(sequence=2, timestamp=2, summary_event=SummaryEvent(False, 1, {}, {})))
    assert (watch.warnings, watch.problems) == ([WARNED], [WARNED])
    result = watch.result(1.0, {})
    assert provision._warnings([result]) == [f"Warning: {WARNED}"]


def test_an_engine_that_says_what_nobody_can_read_is_told_of() -> None:
    # Its reader ends at such an event, and so no summary comes.
    (warning,) = EngineWatch("analytics", None).result(1.0, {}).warnings
    assert "cannot read, so what it did is not all shown" in warning
