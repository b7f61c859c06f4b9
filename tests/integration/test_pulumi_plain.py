"""Plain `pulumi`, as a person types it in the twin's environment, without the Automation API."""

import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from local.twin import Twin

pytestmark = pytest.mark.integration


def test_a_plain_pulumi_up_finds_nothing_to_change(
    twin: Twin, foundation: Mapping[str, Any]
) -> None:
    variables = twin.environment()
    pulumi = shutil.which("pulumi", path=variables["PATH"])
    assert pulumi is not None
    done = subprocess.run(
        [
            *(pulumi, "up", "--stack", "local-foundation", "--yes", "--non-interactive"),
            *("--color", "never", "--skip-preview", "--expect-no-changes"),
        ],
        cwd=twin.place.path("project"),
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "unchanged" in done.stdout
    assert str(foundation["vpc_id"]) in done.stdout
