"""A preflight of the twin's account: what its AWS serves is asked, what it does not is said."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.checks.finding import NOT_READ, Weight
from local import environment
from local.commands.layers import TwinLayers
from local.demo import spec as demo_spec
from local.place import PLACE_VARIABLE
from local.twin import Twin

pytestmark = pytest.mark.integration
REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_twins_account_is_asked_from_another_process(twin: Twin, layers: TwinLayers) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "preflight", "local", "--json"],
        cwd=REPOSITORY,
        env={**os.environ, PLACE_VARIABLE: str(twin.place.directory)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = json.loads(done.stdout)
    # moto serves no quotas, no add-on versions and no simulation: said, and never taken for good.
    assert (done.returncode, said["exit_code"]) == (NOT_READ, NOT_READ), done.stderr
    assert (said["account"], said["cluster"]) == (
        environment.ACCOUNT,
        f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}",
    )
    assert {f["weight"] for f in said["findings"]} == {Weight.UNKNOWN}, said["findings"]
    assert all(f["evidence"] and f["remedy"] for f in said["findings"])
