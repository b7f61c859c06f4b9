"""Which files of a folder without a manifest are the bill: all of them, or a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.ground.errors import InvalidInput
from spark.files import LocalFiles
from spark.ingest.bill import said_by_folders
from spark.ingest.layout import letters
from spark.ingest.loose_files import unlisted
from tests.every_case import every_case

PERIOD = "BILLING_PERIOD=2026-11"


def _written(folder: Path, *names: str, content: str | None = None) -> list[str]:
    """Write files that differ, or hold this content all."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n\n" if content is None else content)
    return [str(folder / name) for name in names]


def _refused(folder: Path) -> str:
    with pytest.raises(InvalidInput) as raised:
        unlisted(LocalFiles(), str(folder))
    assert len(raised.value.problems) == 1
    return str(raised.value)


def _found(folder: Path) -> list[str]:
    return unlisted(LocalFiles(), str(folder))


def test_without_a_manifest_every_data_file_is_the_bill(tmp_path: Path) -> None:
    names = ("BILLING_PERIOD=2026-10/a-00001.parquet", "BILLING_PERIOD=2026-11/a-00001.parquet")
    there = _written(tmp_path, *names)
    _written(tmp_path, "_SUCCESS", "_temporary/0/b.parquet", ".c.parquet", "README.md", "a.csv.md5")
    _written(tmp_path, "cost_and_usage_data_status/status.parquet")
    assert _found(tmp_path) == there


def test_with_a_manifest_no_other_file_is_the_bill_and_its_data_are_read_by_it_alone(
    tmp_path: Path,
) -> None:
    _written(tmp_path, f"data/{PERIOD}/export-00001.csv.gz")
    _written(tmp_path, f"metadata/{PERIOD}/export-Manifest.json", content=json.dumps({}))
    assert _found(tmp_path) == []
    for below in ("data", f"data/{PERIOD}"):
        assert f"is the data of an export; name {tmp_path}," in _refused(tmp_path / below)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("2026-11-01T0/a.csv", "2026-11-02T0/a.csv"), "a.csv twice"),
        ((f"{PERIOD}/run-1/a.csv", f"{PERIOD}/run-2/a.csv"), "a.csv twice for one month"),
        (("a.csv", "b.parquet"), "mixes .parquet, .csv"),
        (("a.csv", "b.csv.zip"), "mixes .zip, .csv"),
        *(
            (("a.csv", name), f"{name}, which may be part of the bill")
            for name in ("b.csv.zst", "B.CSV", "b.xlsx", "a.csv.20261101", "0000_part_00")
        ),
        *(
            (("a.csv", name), f"{name}, which may be part of the bill and cannot be read. Copy it")
            for name in ("b.csv.part", "b.parquet.6eA3f09C")
        ),
        (("data/part-0.parquet", "_delta_log/00000000000000000000.json"), "table of Delta Lake"),
        (("data/part-0.parquet", "metadata/00001-a.metadata.json"), "Lake, Iceberg or Hudi"),
        (("data/part-0.parquet", ".hoodie/hoodie.properties"), "its log alone says"),
    ],
)
def test_without_a_manifest_what_may_count_twice_or_not_at_all_is_refused(
    tmp_path: Path, names: tuple[str, ...], sentence: str
) -> None:
    _written(tmp_path, *names)
    assert sentence in _refused(tmp_path)
    if names[1].startswith("metadata"):
        assert sentence in _refused(tmp_path / "data")


def test_a_copy_of_a_file_is_refused_and_a_header_alone_is_none(tmp_path: Path) -> None:
    _written(tmp_path, "october.csv", "november.csv", content="a,b")
    assert len(_found(tmp_path)) == 2
    _written(tmp_path, "bill.csv", "bill (1).csv", content="a,b\n1,2\n")
    assert "bill (1).csv and" in _refused(tmp_path)
    assert "hold the same; take one of them out" in _refused(tmp_path)


def test_the_same_lines_are_others_in_a_folder_that_says_another_day(tmp_path: Path) -> None:
    for day in (1, 2):
        name = f"line_item_usage_start_date=2026-11-0{day}/part-0.csv"
        _written(tmp_path / "days", name, content="a\n1\n")
        _written(tmp_path / "months", f"billing_period=2026-1{day}/{day}.csv", content="a\n1\n")
    assert len(_found(tmp_path / "days")) == 2
    assert "hold the same" in _refused(tmp_path / "months")


def test_links_are_followed_and_a_folder_is_read_once(tmp_path: Path) -> None:
    _written(tmp_path, "elsewhere/november.csv", "bill/october.csv")
    (tmp_path / "bill" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "bill")
    found = _found(tmp_path / "bill")
    assert [Path(path).name for path in found] == ["november.csv", "october.csv"]


CUR = ("line_item_unblended_cost", "bill_billing_period_start_date")
FOCUS = ("BilledCost", "BillingPeriodStart")


@every_case(
    ("columns", "folder", "said"),
    [
        (CUR[:1], "BILLING_PERIOD=2026-11", {CUR[1]: "2026-11"}),
        (FOCUS[:1], "billing_period=2026-11", {FOCUS[1]: "2026-11"}),
        (CUR, "billing_period=2026-11", {}),
        (CUR, "team=web", {"team": "web"}),
        (CUR, "team=__HIVE_DEFAULT_PARTITION__", {}),
        (CUR, "plain", {}),
    ],
)
def test_a_folder_says_what_no_column_of_its_files_does(
    columns: tuple[str, ...], folder: str, said: dict[str, str]
) -> None:
    known = map(letters, columns)
    assert said_by_folders("/bill", f"/bill/{folder}/part-0.parquet", known) == said
