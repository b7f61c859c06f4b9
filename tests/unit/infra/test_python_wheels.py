"""The wheels that EMR's Python needs: pinned by hash, fetched by pip once, or not at all."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from infra.analytics import report_job
from infra.analytics.report_job import REQUIREMENTS, WheelsNotFetched
from infra.versions import EMR_PYTHON

NAMES = ("numpy-2.4.6-cp311-cp311-manylinux_2_28_aarch64.whl", "pyarrow-26.0.1-cp311-x.whl")
PIN = re.compile(r"^([a-z-]+)==(\S+)", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


class Pip:
    """Stands for pip: writes wheels where it is told to, or fails after the first of them."""

    def __init__(self, *, failure: str | None = None, hangs: bool = False) -> None:
        self.asked: list[Sequence[str]] = []
        self._failure, self._hangs = failure, hangs

    def __call__(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        folder = Path(command[command.index("--dest") + 1])
        for name in NAMES[: 1 if self._failure or self._hangs else 2]:
            (folder / name).write_bytes(name.encode())
        if self._hangs:
            raise subprocess.TimeoutExpired(command, options["timeout"])
        error = "" if self._failure is None else self._failure
        return subprocess.CompletedProcess(command, 1 if self._failure else 0, "", error)


def with_pip(monkeypatch: pytest.MonkeyPatch, pip: Pip) -> Pip:
    monkeypatch.delenv(report_job.SWITCH)
    monkeypatch.setattr(subprocess, "run", pip)
    return pip


def test_wheels_are_fetched_once_and_stand_in_folders_named_by_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = with_pip(monkeypatch, Pip())
    found = report_job.fetch_wheels(tmp_path)
    assert {name: path.name for name, path in found.items()} == {
        "numpy": NAMES[0],
        "pyarrow": NAMES[1],
    }
    for path in found.values():
        assert path.parent.name == hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert report_job.fetch_wheels(tmp_path) == found
    assert len(pip.asked) == 1


def test_pip_takes_what_the_pins_hash_for_emrs_python_and_nothing_that_must_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = with_pip(monkeypatch, Pip())
    report_job.fetch_wheels(tmp_path)
    (command,) = pip.asked
    words = " ".join(command)
    for part in (
        "--require-hashes",
        "--only-binary :all:",
        "--no-deps",
        f"--requirement {REQUIREMENTS}",
        f"--python-version {EMR_PYTHON}",
        "--platform manylinux_2_28_aarch64",
    ):
        assert part in words


@pytest.mark.parametrize(
    ("pip", "reason"),
    [
        (
            Pip(failure="WARNING: x\nERROR: No matching distribution found for pyarrow==26.0.1\n"),
            "on aarch64: No matching distribution found for pyarrow==26.0.1.",
        ),
        (Pip(failure="/usr/bin/python3: No module named pip\n"), ": /usr/bin/python3: No module"),
        (Pip(hangs=True), "pip took longer than 300 s."),
    ],
    ids=["not found", "no pip", "hangs"],
)
def test_what_pip_cannot_fetch_is_a_sentence_and_nothing_of_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: Pip, reason: str
) -> None:
    with_pip(monkeypatch, pip)
    with pytest.raises(WheelsNotFetched) as raised:
        report_job.fetch_wheels(tmp_path)
    assert f"EMR's Python {EMR_PYTHON}" in str(raised.value)
    assert reason in str(raised.value)
    assert list(tmp_path.iterdir()) == []
    # And the next time pip is asked again.
    with_pip_again = Pip()
    monkeypatch.setattr(subprocess, "run", with_pip_again)
    assert report_job.fetch_wheels(tmp_path)


def test_a_cache_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_pip(monkeypatch, Pip())
    (tmp_path / "file").write_text("")
    with pytest.raises(WheelsNotFetched, match="cannot be kept in"):
        report_job.fetch_wheels(tmp_path / "file")


def test_where_no_emr_reads_them_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = with_pip(monkeypatch, Pip())
    monkeypatch.setenv(report_job.SWITCH, report_job.NEVER)
    assert report_job.fetch_wheels(tmp_path) == {}
    assert pip.asked == []


def test_the_pins_are_the_versions_that_are_tested_here_with_hashes_and_no_address() -> None:
    text = REQUIREMENTS.read_text()
    tested = (REQUIREMENTS.parents[2] / "requirements-dev.txt").read_text()
    pins = set(PIN.findall(text))
    assert {"numpy", "pandas", "pyarrow"} <= {name for name, _ in pins}
    assert pins <= set(PIN.findall(tested))
    hashes = set(HASH.findall(text))
    assert hashes <= set(HASH.findall(tested))
    assert "://" not in text
