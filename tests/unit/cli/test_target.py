"""cli.target: which account and which twin is meant, or a sentence and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cli.aws import NO_CREDENTIALS
from cli.main import app
from cli.target import find_twin
from core.ground.errors import StillwaterError
from local import place as places
from local import twin
from local.demo import spec as demo_spec
from local.environment import credentials_file
from local.place import PLACE_VARIABLE, Place, claim_place


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


def test_the_twin_that_is_kept_is_found_with_its_own_identity_and_endpoint(cache: Path) -> None:
    with claim_place() as place:
        furnish(place)
        found = find_twin()
    assert found.spec.prefix == "local-harbour"
    assert found.endpoint_url == place.url("moto")
    credentials = found.session.get_credentials()
    assert credentials is not None
    assert credentials.access_key == "AKIATWIN"


def test_a_twin_whose_starter_died_is_not_taken_for_one_that_runs(cache: Path) -> None:
    with claim_place() as place:
        furnish(place)
    with pytest.raises(StillwaterError, match="`python -m local up` starts one"):
        find_twin()


def test_a_twin_that_is_not_kept_is_found_by_name_only(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_what_cannot_be_examined_is_a_sentence_and_exit_code_2(
    cache: Path, environment: str
) -> None:
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
