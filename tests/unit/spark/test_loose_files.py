"""Which files of a folder without a manifest are the bill: all of them, or a sentence."""

from __future__ import annotations

import gzip
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.ground.errors import InvalidInput
from spark.files import LocalFiles
from spark.ingest.loose_files import unlisted
from tests.every_case import every_case

PERIOD = "BILLING_PERIOD=2026-11"
LINES = "a,b\n1,2\n"


def _written(folder: Path, *names: str, content: str = "") -> list[str]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return [str(folder / name) for name in names]


def _refused(folder: Path) -> str:
    with pytest.raises(InvalidInput) as raised:
        unlisted(LocalFiles(), str(folder))
    assert len(raised.value.problems) == 1
    return str(raised.value)


def test_without_a_manifest_every_data_file_is_the_bill(tmp_path: Path) -> None:
    names = ("BILLING_PERIOD=2026-10/a-00001.parquet", "BILLING_PERIOD=2026-11/a-00001.parquet")
    there = _written(tmp_path, *names)
    _written(tmp_path, "_SUCCESS", "_temporary/0/b.parquet", ".c.parquet", "README.md", "a.csv.md5")
    _written(tmp_path, "cost_and_usage_data_status/status.parquet")
    assert unlisted(LocalFiles(), str(tmp_path)) == there


def _delivered(folder: Path) -> str:
    (file,) = _written(folder, f"data/{PERIOD}/export-00001.csv.gz")
    _written(folder, f"metadata/{PERIOD}/export-Manifest.json", content=json.dumps({}))
    return file


def test_with_a_manifest_no_other_file_is_the_bill(tmp_path: Path) -> None:
    _delivered(tmp_path)
    assert unlisted(LocalFiles(), str(tmp_path)) == []


@pytest.mark.parametrize("below", ["data", f"data/{PERIOD}"])
def test_the_data_of_an_export_are_read_by_its_manifests_alone(tmp_path: Path, below: str) -> None:
    _delivered(tmp_path)
    assert f"is the data of an export; name {tmp_path}," in _refused(tmp_path / below)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("2026-11-01T0/a.csv", "2026-11-02T0/a.csv"), "a.csv twice"),
        ((f"{PERIOD}/run-1/a.csv", f"{PERIOD}/run-2/a.csv"), "a.csv twice for one month"),
        (("a.csv", "b.parquet"), "mixes .parquet, .csv"),
        (("a.csv", "b.csv.zip"), "mixes .zip, .csv"),
        (("a.csv", "b.csv.zst"), "b.csv.zst, which may be part of the bill"),
        (("a.csv", "B.CSV"), "B.CSV, which may be part of the bill"),
        (("a.csv", "b.csv.part"), "b.csv.part, a copy that was broken off"),
        (("a.parquet", "b.parquet.6eA3f09C"), "b.parquet.6eA3f09C, a copy that was broken off"),
        (("a.csv", "a.csv.20261101"), "a.csv.20261101, which may be part of the bill"),
        (("a.csv", "b.xlsx"), "b.xlsx, which may be part of the bill"),
        (("0000_part_00", "0001_part_00"), "0000_part_00, which may be part of the bill"),
    ],
)
def test_without_a_manifest_what_may_count_twice_or_not_at_all_is_refused(
    tmp_path: Path, names: tuple[str, ...], sentence: str
) -> None:
    _written(tmp_path, *names)
    assert sentence in _refused(tmp_path)


def test_a_copy_of_a_file_is_refused_and_a_header_alone_is_none(tmp_path: Path) -> None:
    _written(tmp_path, "october.csv", "november.csv", content=LINES.splitlines()[0])
    assert len(unlisted(LocalFiles(), str(tmp_path))) == 2
    _written(tmp_path, "bill.csv", "bill (1).csv", content=LINES)
    assert "bill (1).csv and" in _refused(tmp_path)
    assert "hold the same; take one of them out" in _refused(tmp_path)


def test_the_same_lines_are_others_in_a_folder_that_says_another_day(tmp_path: Path) -> None:
    for day in (1, 2):
        _written(tmp_path, f"line_item_usage_start_date=2026-11-0{day}/part-0.csv", content=LINES)
    assert len(unlisted(LocalFiles(), str(tmp_path))) == 2
    for month in ("10", "11"):
        _written(tmp_path / "months", f"billing_period=2026-{month}/{month}.csv", content=LINES)
    assert "hold the same" in _refused(tmp_path / "months")


def test_a_text_that_a_tool_saved_again_is_a_copy(tmp_path: Path) -> None:
    lines = "".join(f"{n},{n}\n" for n in range(50_000))
    (tmp_path / "bill.csv").write_bytes(lines.encode())
    quoted = "\ufeff" + "".join(f'"{n}","{n}"\r\n' for n in range(50_000))
    (tmp_path / "bill (1).csv").write_bytes(quoted.encode())
    assert "hold the same; take one of them out" in _refused(tmp_path)


@every_case(
    "changes",
    [
        {"compression": "gzip"},
        {"compression": "zstd", "row_group_size": 7},
        {"use_dictionary": False, "data_page_version": "2.0"},
        {"coerce_timestamps": "us"},
    ],
)
def test_the_same_lines_in_another_parquet_file_are_a_copy(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    folder = tmp_path / "_".join(changes)
    folder.mkdir()
    times = [datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in range(24)] * 10
    bill = pa.table({"at": times, "cost": [1.5] * 240, "tags": [{"a": "b"}] * 240})
    pq.write_table(bill, folder / "bill.snappy.parquet")
    pq.write_table(bill, folder / "other.parquet", **changes)
    assert "hold the same; take one of them out" in _refused(folder)
    # As many lines, of the same money, that begin alike: another day's are no copy.
    later = bill.set_column(0, "at", pa.array([*times[:-1], times[0]]))
    pq.write_table(later, folder / "other.parquet", **changes)
    assert len(unlisted(LocalFiles(), str(folder))) == 2


@every_case(
    ("log", "kind"),
    [
        ("_delta_log/00000000000000000000.json", "Delta Lake"),
        ("metadata/00001-a.metadata.json", "Iceberg"),
        (".hoodie/hoodie.properties", "Hudi"),
    ],
)
def test_a_table_whose_log_says_which_files_count_is_refused(
    tmp_path: Path, log: str, kind: str
) -> None:
    folder = tmp_path / kind
    _written(folder, "data/part-0.parquet", log, content="{}")
    assert f"is a table of {kind}, or a part of one" in _refused(folder)
    if kind == "Iceberg":
        assert "is a table of Iceberg" in _refused(folder / "data")


@every_case("ending", [".csv.gz", ".csv.zip"])
def test_a_copy_that_is_packed_another_way_is_refused(tmp_path: Path, ending: str) -> None:
    folder = tmp_path / ending
    for name, level in (("bill", 9), ("copy", 1)):
        _packed(folder / f"{name}{ending}", LINES * 50_000, level)
    assert "hold the same; take one of them out" in _refused(folder)
    _packed(folder / f"copy{ending}", LINES * 50_000 + "3,4\n", 1)
    assert len(unlisted(LocalFiles(), str(folder))) == 2


def _packed(path: Path, lines: str, level: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines.encode(), level, mtime=level))
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        archive.writestr("bill.csv", lines)


def test_links_are_followed_and_a_folder_is_read_once(tmp_path: Path) -> None:
    _written(tmp_path, "elsewhere/november.csv", "bill/october.csv")
    (tmp_path / "bill" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "bill")
    found = unlisted(LocalFiles(), str(tmp_path / "bill"))
    assert [Path(path).name for path in found] == ["november.csv", "october.csv"]
