"""cli.target, cli.aws and cli.stack_settings: which account, twin and environment is meant."""

import json
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml
from botocore.awsrequest import AWSResponse
from botocore.parsers import ResponseParserError
from typer.testing import CliRunner

from cli.aws import NO_CREDENTIALS, open_session
from cli.main import app
from cli.stack_settings import Project, read_described, require
from cli.target import find_twin
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.naming import LAYERS
from local import place as places
from local import twin
from local.demo import spec as demo_spec
from local.environment import credentials_file
from local.place import PLACE_VARIABLE, Place, claim_place
from tests.unit.infra.programs import description


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STILLWATER_CACHE", str(tmp_path))
    monkeypatch.delenv(PLACE_VARIABLE, raising=False)
    monkeypatch.setattr(places, "CLAIM", f"stillwater-test-{tmp_path.name}-")
    return tmp_path.resolve()


def furnish(place: Place, *, kept: bool = True) -> None:
    """Leave what a running twin leaves for others of its user."""
    place.directory.mkdir(parents=True)
    place.save()
    keys = {"access_key_id": "AKIATWIN", "secret_access_key": "hush"}
    credentials_file(place).write_text(json.dumps(keys))
    demo_spec.path(place).write_text(yaml.safe_dump(demo_spec.spec(place)))
    if kept:
        place.path(twin.KEPT).touch()


def test_an_unkept_twin_is_found_by_name_only(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with claim_place() as place:
        furnish(place, kept=False)
        with pytest.raises(StillwaterError, match="No twin"):
            find_twin()
        monkeypatch.setenv(PLACE_VARIABLE, str(place.directory))
        assert find_twin().endpoint_url == place.url("moto")


def test_several_twins_are_told_apart_by_name(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with claim_place() as first, claim_place() as second:
        furnish(first)
        furnish(second)
        with pytest.raises(StillwaterError, match=f"Several twins run .*{PLACE_VARIABLE}"):
            find_twin()
        monkeypatch.setenv(PLACE_VARIABLE, str(second.directory))
        assert find_twin().endpoint_url == second.url("moto")


@pytest.mark.parametrize("environment", ["local", "nowhere"])
def test_what_cannot_be_examined_is_a_sentence_and_code_2(cache: Path, environment: str) -> None:
    done = CliRunner().invoke(app, ["doctor", environment])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.strip().endswith(".")


@pytest.mark.parametrize(
    "command",
    [
        "doctor example",
        "preflight example",
        "health example",
        "incidents example",
        "rotate status example",
        "volumes plan example",
        "zones list example",
        "pause example --because test",
        "up example",
        "up example --skip-preflight",
        "preview example",
        "destroy example",
        "prices fetch --region eu-west-1",
        "report --bill s3://bucket/export",
    ],
)
def test_without_an_identity_every_command_says_the_same(
    cache: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code != 0
    assert NO_CREDENTIALS in done.stderr + str(done.exception)


def settings(directory: Path, config: dict[str, Any], *layers: str) -> None:
    for layer in layers or LAYERS:
        path = directory / f"Pulumi.test-{layer}.yaml"
        path.write_text(json.dumps({"config": config}))


@pytest.fixture
def named(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(json.dumps(description()))
    settings(tmp_path, {"stillwater:spec": "cluster.yaml"})
    return tmp_path


def test_a_spec_is_the_one_every_layer_names(named: Path) -> None:
    found = read_described("test", Project(named, named))
    assert (found.spec.prefix, found.profile) == ("test-orders", None)


def test_a_spec_may_stand_in_the_settings_beside_a_profile(tmp_path: Path) -> None:
    settings(tmp_path, {"stillwater:cluster": description(), "aws:profile": "audit"})
    found = read_described("test", Project(tmp_path, tmp_path))
    assert (found.spec.prefix, found.profile) == ("test-orders", "audit")


def test_the_twin_is_no_environment_of_stacks(named: Path) -> None:
    with pytest.raises(InvalidInput, match=r"commands of its own: `python -m local`"):
        require("local", Project(named, named))


def test_a_layer_that_names_another_spec_is_named(named: Path) -> None:
    settings(named, {"stillwater:spec": "other.yaml"}, "kafka")
    with pytest.raises(InvalidInput, match="test-kafka name another ClusterSpec"):
        read_described("test", Project(named, named))


def test_settings_that_are_no_yaml_are_a_sentence(named: Path) -> None:
    (named / "Pulumi.test-platform.yaml").write_text("config: 2026-02-30")
    with pytest.raises(InvalidInput, match=r"Pulumi.test-platform.yaml cannot be read as YAML"):
        read_described("test", Project(named, named))


@pytest.mark.parametrize("environment", ["", "../x", "orders.yaml", "a b"])
def test_a_name_that_no_environment_can_have_is_told_as_that(named: Path, environment: str) -> None:
    with pytest.raises(InvalidInput, match="letters, digits and hyphens") as caught:
        require(environment, Project(named, named))
    assert "stillwater init" not in str(caught.value)


@pytest.mark.parametrize("asked", ["dynamodb.list_tables", "ec2.describe_vpcs"])
def test_a_page_of_a_proxys_is_no_answer_that_holds_nothing(asked: str) -> None:
    page = AWSResponse("https://proxy", 200, {}, None)
    page._content = b"<!DOCTYPE html>\n<HTML>Log in</HTML>"
    session: Any = open_session(region="us-east-1", core=botocore.session.Session())
    session.events.register("before-send", lambda **_: page)
    service, operation = asked.split(".")
    client = session.client(service, aws_access_key_id="key", aws_secret_access_key="hush")
    with pytest.raises(ResponseParserError, match="a proxy answers"):
        getattr(client, operation)()
