"""A directory that `stillwater init` wrote is one the engine runs, without a checkout."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from cli import provision
from cli.project.init import Given, init
from cli.project.release import Origin
from core.ground.naming import FOUNDATION
from infra.spec import ROOT
from local.demo import spec as demo_spec
from local.twin import Twin

pytestmark = pytest.mark.integration


def test_a_written_directory_is_previewed_by_the_installed_package(
    twin: Twin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site"
    installed.mkdir()
    (installed / "stillwater").symlink_to(ROOT / "stillwater")
    zones = ",".join(demo_spec.ZONES)
    given = Given(name="own", environment="own", region="us-east-1", zones=zones)
    init(tmp_path / "project", given, Console(quiet=True), came=Origin("0.1.0"))
    for name, value in {**twin.environment(), "PYTHONPATH": str(installed)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path / "project" / "clusters")
    wanted = provision.parse_targets([FOUNDATION], (), refresh=False, yes=False, diff=False)
    said = Console(file=io.StringIO())
    provision.preview("own", said, wanted)
    assert isinstance(said.file, io.StringIO)
    assert "+ EKS cluster own-own" in said.file.getvalue()
