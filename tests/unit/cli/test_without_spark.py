"""What reading a bill needs beyond the command line's own packages is known to be the report's."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from cli import __main__ as command
from cli import report

REPOSITORY = Path(__file__).parents[3]
LOCKED = re.compile(r"^([a-z0-9._-]+)==", re.MULTILINE)


def imported_by(folder: Path) -> set[str]:
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found


def test_each_package_that_a_report_alone_imports_is_named() -> None:
    always = set(LOCKED.findall((REPOSITORY / "requirements.txt").read_text(encoding="utf-8")))
    known = packages_distributions()
    others = {
        name
        for name in imported_by(REPOSITORY / "spark") - sys.stdlib_module_names
        if {each.lower() for each in known.get(name, ())} - always - {"stillwater"}
    }
    # pandas is what pyspark imports itself.
    assert {"py4j", "pyspark"} <= others <= command.REPORT_PACKAGES


@pytest.mark.parametrize("absent", sorted(command.REPORT_PACKAGES))
def test_whichever_is_missed_first_the_remedy_is_the_same(
    absent: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object) -> None:
        raise ModuleNotFoundError(f"No module named '{absent}'", name=absent)

    monkeypatch.setattr(report, "_copied_options", missing)
    with pytest.raises(SystemExit) as ended:
        command._run(["report", "--bill", "own"])
    said = f"{ended.value.code}{capsys.readouterr()}"
    assert command.WITHOUT_REPORT in said
    assert "report]" in said
