"""packaging: what is in the zip runs where it will run, EMR's wheels included."""

import base64
import hashlib
import importlib.metadata
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.ground.errors import MissingPrerequisite
from infra.analytics import report_job
from infra.analytics.report_job import REQUIREMENTS, WheelsNotFetched
from infra.functions import packaging
from infra.versions import EMR_PYTHON


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> packaging.FunctionPackage:
    return packaging.build(tmp_path_factory.mktemp("zip"))


def names(package: packaging.FunctionPackage) -> list[str]:
    with zipfile.ZipFile(package.path) as archive:
        return archive.namelist()


def test_the_same_sources_make_one_zip(package: packaging.FunctionPackage, tmp_path: Path) -> None:
    again = packaging.build(tmp_path)
    assert again.path.name == package.path.name
    assert again.source_code_hash == package.source_code_hash
    assert again.path.read_bytes() == package.path.read_bytes()


def test_a_directorys_prices_go_along(package: packaging.FunctionPackage, tmp_path: Path) -> None:
    own = tmp_path / "prices.json"
    own.write_text("{}")
    brought = packaging.build(tmp_path / "zips", own_prices=own)
    assert set(names(brought)) - set(names(package)) == {"core/own_prices.json"}


def test_the_content_of_files_matters_and_not_the_order_they_are_found_in() -> None:
    files = {"b.py": b"2", "a.py": b"1"}
    assert packaging.archive(files) == packaging.archive(dict(reversed(files.items())))
    assert packaging.archive(files) != packaging.archive({**files, "a.py": b"2"})


def test_entries_carry_no_time_and_no_owner() -> None:
    with zipfile.ZipFile(io.BytesIO(packaging.archive({"a.py": b"1"}))) as archive:
        (entry,) = archive.infolist()
    assert entry.date_time == (1980, 1, 1, 0, 0, 0)
    assert entry.create_system == 3
    assert entry.external_attr >> 16 == 0o100644


def test_it_is_not_written_twice(package: packaging.FunctionPackage) -> None:
    before = package.path.stat().st_mtime_ns
    packaging.build(package.path.parent)
    assert package.path.stat().st_mtime_ns == before
    assert [p.name for p in package.path.parent.iterdir()] == [package.path.name]


def test_zips_of_long_ago_are_forgotten_and_recent_ones_kept(tmp_path: Path) -> None:
    for name, age_days in (("old", 8), ("recent", 6)):
        path = tmp_path / f"{name}.zip"
        path.touch()
        then = path.stat().st_mtime - age_days * 24 * 3600
        os.utime(path, (then, then))
    built = packaging.build(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"recent.zip", built.path.name}


def test_it_holds_what_the_functions_import_and_no_more(package: packaging.FunctionPackage) -> None:
    held = names(package)
    assert "handlers/tick.py" in held
    assert "core/incidents/decide.py" in held
    assert "core/cluster/spec.py" not in held
    top = {name.partition("/")[0] for name in held}
    assert top == {
        "core",
        "handlers",
        "aws_lambda_powertools",
        "jmespath",
        "kafka",
        "slack_sdk",
        "typing_extensions.py",
        "urllib3",
    }


def test_it_says_nothing_of_the_machine_it_was_made_on(package: packaging.FunctionPackage) -> None:
    held = names(package)
    assert not [name for name in held if name.startswith("/") or ".." in name]
    assert not [name for name in held if "__pycache__" in name or ".dist-info/" in name]
    assert str(packaging.ROOT).encode() not in package.path.read_bytes()


def test_a_distribution_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaging, "DISTRIBUTIONS", ("no-such-thing",))
    with pytest.raises(MissingPrerequisite, match=r"no-such-thing .* is not installed"):
        packaging.contents()


class Installed:
    """A distribution that is installed, with one file."""

    version = packaging.locked_versions(packaging.LOCK.read_text())["urllib3"]

    def __init__(self, path: Path, name: str, recorded: bytes = b"") -> None:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(b"")
        file = importlib.metadata.PackagePath(name)
        file.dist = importlib.metadata.PathDistribution(path / "urllib3.dist-info")
        digest = base64.urlsafe_b64encode(hashlib.sha256(recorded).digest()).decode().rstrip("=")
        file.hash = importlib.metadata.FileHash(f"sha256={digest}")
        self.files = [file]


@pytest.mark.parametrize(
    ("name", "recorded", "version", "refusal"),
    [
        ("urllib3/_fast.so", b"", None, r"ships compiled code \(urllib3/_fast.so\)"),
        ("urllib3/pool.py", b"", "9.9", r"is installed as 9.9, and the lock names 2\.\d"),
        ("urllib3/pool.py", b"changed since", None, r"urllib3/pool.py .* not as it was installed"),
    ],
    ids=["compiled", "another version", "changed by hand"],
)
def test_what_is_not_the_locks_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    recorded: bytes,
    version: str | None,
    refusal: str,
) -> None:
    found = Installed(tmp_path, name, recorded)
    found.version = version or found.version
    monkeypatch.setattr(packaging, "DISTRIBUTIONS", ("urllib3",))
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _name: found)
    with pytest.raises(MissingPrerequisite, match=refusal):
        packaging.contents()


def test_a_release_is_its_wheels_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaging, "DISTRIBUTIONS", ("Some_Package",))
    with zipfile.ZipFile(tmp_path / "some_package-1.2-py3-none-any.whl", "w") as wheel:
        for name in (
            "some/a.py",
            "some/stub.pyi",
            "some-1.dist-info/x.json",
            "some-1.data/scripts/b.py",
        ):
            wheel.writestr(name, name)
    brought = tmp_path / "distributions.zip"
    packaging.bring_along(tmp_path, brought)
    monkeypatch.setattr(packaging, "BROUGHT_ALONG", brought)
    held = packaging.contents()
    assert held["some/a.py"] == b"some/a.py"
    assert {name for name in held if name.startswith("some")} == {"some/a.py"}
    assert "handlers/tick.py" in held


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-gate.txt"])
def test_the_bill_of_materials_lists_every_locked_package_with_its_hashes(lock: str) -> None:
    command = [sys.executable, ".ci/sbom.py", lock, "stillwater", "1.0.0"]
    written = subprocess.run(command, cwd=packaging.ROOT, capture_output=True, check=True).stdout
    listed = json.loads(written)["components"]
    text = (packaging.ROOT / lock).read_text()
    assert {e["name"]: e["version"] for e in listed} == packaging.locked_versions(text)
    assert sum(len(each["hashes"]) for each in listed) == text.count("--hash=sha256:")
    assert all(each["purl"].startswith("pkg:pypi/") for each in listed)


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
    expected = {"numpy": NAMES[0], "pyarrow": NAMES[1]}
    assert {name: path.name for name, path in found.items()} == expected
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


def test_an_unwritable_cache_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pip(monkeypatch, Pip())
    (tmp_path / "file").write_text("")
    with pytest.raises(WheelsNotFetched, match="cannot be kept in"):
        report_job.fetch_wheels(tmp_path / "file")


def test_without_emr_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert set(HASH.findall(text)) <= set(HASH.findall(tested))
    assert "://" not in text
