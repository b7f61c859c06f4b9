"""Where a Pulumi program of the twin finds its modules: a checkout on the path goes first."""

import os
from pathlib import Path

import pytest

from local import environment
from local.place import Place
from local.pulumi import language_host

ROOT = str(Path(language_host.__file__).resolve().parents[2])


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        # The first is what local.pulumi.bin puts in front.
        (ROOT, None),
        (f"{ROOT}{os.pathsep}{ROOT}", ROOT),
        (f"{ROOT}{os.pathsep}/elsewhere", "/elsewhere"),
    ],
    ids=["nobody set one", "a checkout", "somebody else's"],
)
def test_a_program_sees_the_path_that_its_user_set(
    monkeypatch: pytest.MonkeyPatch, given: str, seen: str | None
) -> None:
    monkeypatch.setenv("PYTHONPATH", given)
    assert language_host._program_environment().get("PYTHONPATH") == seen


def test_a_path_that_is_relative_holds_in_every_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f".{os.pathsep}there")
    found = environment.base(Place(11, tmp_path))["PYTHONPATH"]
    assert found == f"{tmp_path.resolve()}{os.pathsep}{tmp_path.resolve() / 'there'}"
