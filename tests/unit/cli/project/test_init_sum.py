"""The sum that `stillwater init` names is what the command beside it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app


def test_the_command_that_init_names_comes_to_the_sum_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["init", "own", "--region", "us-east-1"]).output
    named = re.search(r"about ([\d,]+) USD a month", said)
    command = re.search(r"`stillwater (estimate [^`]+)`", said)
    assert named
    assert command
    monkeypatch.chdir(tmp_path / "own")
    shown = CliRunner().invoke(app, shlex.split(command[1])).output
    total = re.search(r"^ *a month +([\d,.]+) *$", shown, re.MULTILINE)
    assert total
    assert f"{float(total[1].replace(',', '')):,.0f}" == named[1]
    assert command[1].partition(" prod ")[2] in (tmp_path / "own" / "README.md").read_text()
