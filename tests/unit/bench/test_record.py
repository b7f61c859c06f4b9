"""A bench's figures stand beside those kept in git, and replace them only where asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import record
from tests.every_case import every_case


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(record, "OUTPUT", tmp_path / "out")
    monkeypatch.setattr(record, "MEASURED", tmp_path / "measured.json")
    monkeypatch.delenv("KEEP", raising=False)
    return tmp_path / "measured.json"


def test_figures_are_kept_where_asked_and_said_beside_the_next(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record.write("tea", {}, [], {"brew_s": 10.0})
    assert not kept.exists()
    monkeypatch.setenv("KEEP", "1")
    record.write("tea", {}, [], {"brew_s": 10.0, "whole": True, "told": ["no figure"]})
    record.write("cake", {}, [], {"bake_s": 3})
    monkeypatch.delenv("KEEP")
    document = json.loads(kept.read_text())
    assert [*document] == ["cake", "tea"]
    assert document["tea"]["figures"] == {"brew_s": 10.0}
    assert set(document["tea"]) == {"date", "commit", "machine", "figures"}
    capsys.readouterr()
    record.write("tea", {}, [], {"brew_s": 12.0})
    shown = capsys.readouterr().out
    assert f"Kept is {document['tea']['date']}" in shown
    assert "measured here" in shown
    assert "kept         10.0  WORSE by 2" in shown
    assert json.loads(kept.read_text()) == document


@every_case(
    "name, before, value, worse",
    [
        *(("brew_s", 10, 10.9, False), ("brew_s", 10, 11.1, True), ("brew_s", 10, 1, False)),
        *(("plan_mib_200", 10, 12, True), ("peak_mib", 10, 12, True), ("x_lost", 0, 1, True)),
        *(("spark_to_duckdb", 2.0, 2.3, True), ("a_time_ratio", 2.0, 2.3, True)),
        *(("cups_per_s", 10, 8.9, True), ("cups_per_s", 10, 9.1, False), ("x_per_s", 9, 99, False)),
        *(("bytes_ratio", 20, 15, True), ("bytes_ratio", 20, 30, False)),
        *(("rooms", 10, 20, False), ("rooms", 20, 10, False)),
    ],
)
def test_a_figure_is_worse_by_more_than_a_tenth_of_what_its_name_says(
    name: str, before: float, value: float, *, worse: bool
) -> None:
    run: dict[str, Any] = {"date": "", "commit": "", "machine": {}}
    shown = "".join(
        record.lines({**run, "figures": {name: before}}, {**run, "figures": {name: value}})
    )
    assert ("WORSE" in shown) is worse
