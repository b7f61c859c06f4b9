"""`.ci/venv`, which `make` calls: a Python that will not do is one sentence; nothing is made."""

import os
import subprocess
from pathlib import Path

import pytest

from local.processes import start_time_ticks
from tests.integration.waiting import until

SCRIPT = Path(__file__).resolve().parents[3] / ".ci" / "venv"


def a_python(folder: Path, body: str) -> Path:
    """Write a `python3` that answers as told."""
    program = folder / "python3"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return program


def run(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, python, folder / "venv", folder / "venv" / ".installed-1"],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param("echo 3.10.4", ("Python 3.11 or newer", "python3 is 3.10.4"), id="too-old"),
        pytest.param("echo 2.7.18", ("Python 3.11 or newer", "2.7.18"), id="python-2"),
        pytest.param("exit 1", ("Python 3.11 or newer", "does not run"), id="broken"),
        pytest.param('case "$2" in *print*) echo 3.12.1;; *) exit 1;; esac',
            ("without its venv module", "python3.12-venv"), id="no-venv"),
    ],
)  # fmt: skip
def test_an_unfit_python_is_one_sentence(tmp_path: Path, body: str, words: tuple[str, ...]) -> None:
    a_python(tmp_path, body)
    done = run(tmp_path, "python3")
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    for word in words:
        assert word in sentence
    assert sentence.endswith(".")
    assert not (tmp_path / "venv").exists()


def test_a_python_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, "python3.99")
    assert done.returncode == 1
    assert "no python3.99 is on the PATH" in done.stderr


PIP_FAILS = """\
case "$*" in
  *print*) echo 3.11.9;;
  *pip\\ install*) echo "WARNING: retrying"; echo "ERROR: No matching distribution"; exit 1;;
  *venv\\ --clear*) mkdir -p venv/bin && cp "$0" venv/bin/python;;
esac"""


def test_packages_that_cannot_be_fetched_are_a_sentence_and_no_stamp(tmp_path: Path) -> None:
    a_python(tmp_path, PIP_FAILS)
    done = run(tmp_path, "python3")
    assert done.returncode == 1
    error, sentence = done.stderr.splitlines()
    assert error == "ERROR: No matching distribution"
    assert "check the network" in sentence
    assert not list((tmp_path / "venv").glob(".installed-*"))


WORKS = """\
echo "$*" >>calls
case "$*" in
  *print*) echo 3.11.9;;
  *venv\\ --clear*) mkdir -p venv/bin && cp "$0" venv/bin/python;;
esac"""


def test_what_is_made_already_is_not_made_again(tmp_path: Path) -> None:
    a_python(tmp_path, WORKS)
    assert run(tmp_path, "python3").returncode == 0
    assert (tmp_path / "venv" / ".installed-1").exists()
    (tmp_path / "calls").unlink()
    assert run(tmp_path, "python3").returncode == 0
    assert "pip install" not in (tmp_path / "calls").read_text()


# Pip ends only once compilers run, and those would outlive it by far.
COMPILERS = """\
case "$*" in
  *print*) echo 3.11.9;;
  *venv\\ --clear*) mkdir -p venv/bin && cp "$0" venv/bin/python;;
  *build_all*) echo $$ >compilers; exec sleep 600;;
  *pip\\ install*) for _ in $(seq 300); do [ -s compilers ] && exit 0; sleep 0.1; done; exit 1;;
esac"""


def test_compilers_run_beside_pip_and_end_with_it(tmp_path: Path) -> None:
    a_python(tmp_path, COMPILERS)
    assert run(tmp_path, "python3").returncode == 0
    pid = int((tmp_path / "compilers").read_text())
    until(lambda: start_time_ticks(pid) is None, "the end of the compilers")


def test_an_environment_of_a_moved_tree_is_made_anew(tmp_path: Path) -> None:
    a_python(tmp_path, WORKS)
    run(tmp_path, "python3")
    (tmp_path / "venv" / ".installed-1").unlink()
    (tmp_path / "calls").unlink()
    run(tmp_path, "python3")
    assert "venv --clear" not in (tmp_path / "calls").read_text()
    (tmp_path / "venv" / "made-for").write_text("/somewhere/else\n")
    (tmp_path / "venv" / ".installed-1").unlink()
    run(tmp_path, "python3")
    assert "venv --clear" in (tmp_path / "calls").read_text()
