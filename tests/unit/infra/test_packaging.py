"""packaging: same sources, same hash; and what is in the zip runs where it will run."""

from __future__ import annotations

import importlib.metadata
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from core.errors import MissingPrerequisite
from infra.functions import packaging

# Runs in a fresh interpreter: the zip first on the path, what a Lambda lacks made unimportable.
PROBE = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("pydantic", "pulumi", "pyspark", "yaml", "kubernetes", "core.cluster"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, sys.argv[1])
for name in ("interruption", "tick", "sweep"):
    module = importlib.import_module(f"handlers.{name}")
    assert module.__file__.startswith(sys.argv[1]), module.__file__
    assert callable(module.handler)
for name in ("aws_lambda_powertools", "kafka", "urllib3", "jmespath", "core"):
    module = importlib.import_module(name)
    assert module.__file__.startswith(sys.argv[1]), module.__file__
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> packaging.FunctionPackage:
    return packaging.build(tmp_path_factory.mktemp("zip"))


def names(package: packaging.FunctionPackage) -> list[str]:
    with zipfile.ZipFile(package.path) as archive:
        return archive.namelist()


def test_the_same_sources_make_the_same_bytes(
    package: packaging.FunctionPackage, tmp_path: Path
) -> None:
    again = packaging.build(tmp_path)
    assert again.path.name == package.path.name
    assert again.source_code_hash == package.source_code_hash
    assert again.path.read_bytes() == package.path.read_bytes()


def test_a_directorys_own_prices_go_along(
    package: packaging.FunctionPackage, tmp_path: Path
) -> None:
    own = tmp_path / "prices.json"
    own.write_text("{}")
    brought = packaging.build(tmp_path / "zips", own_prices=own)
    assert set(names(brought)) - set(names(package)) == {"core/own_prices.json"}


def test_the_order_files_are_found_in_does_not_matter() -> None:
    files = {"b.py": b"2", "a.py": b"1"}
    assert packaging.archive(files) == packaging.archive(dict(reversed(files.items())))


def test_a_changed_source_makes_another_hash() -> None:
    assert packaging.archive({"a.py": b"1"}) != packaging.archive({"a.py": b"2"})


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


def test_every_handler_imports_from_the_zip_alone(package: packaging.FunctionPackage) -> None:
    # -I: neither the working directory nor PYTHONPATH; boto3 comes with the Lambda runtime.
    ran = subprocess.run(
        [sys.executable, "-I", "-c", PROBE, str(package.path)],
        capture_output=True,
        text=True,
        check=False,
        env={"AWS_DEFAULT_REGION": "us-east-1", "PATH": ""},
    )
    assert ran.returncode == 0, ran.stderr


def test_a_distribution_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaging, "DISTRIBUTIONS", ("no-such-thing",))
    with pytest.raises(MissingPrerequisite, match=r"no-such-thing .* is not installed"):
        packaging.contents()


def test_compiled_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiled:
        files = (importlib.metadata.PackagePath("urllib3/_fast.so"),)

    monkeypatch.setattr(importlib.metadata, "distribution", lambda _name: Compiled)
    with pytest.raises(MissingPrerequisite, match=r"ships compiled code \(urllib3/_fast.so\)"):
        packaging.contents()
