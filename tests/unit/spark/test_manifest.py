"""Which files are a bill: those of each month's newest manifest, or all, whole or not at all."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.ground.errors import InvalidInput
from local.bills import export
from local.bills.cluster import ClusterBill, lines
from spark.files import LocalFiles
from spark.ingest import manifest
from spark.ingest.bill import said_by_folders
from spark.ingest.layout import letters
from spark.ingest.manifest import Export, Refresh
from tests.every_case import every_case

PERIOD, OCTOBER = "BILLING_PERIOD=2026-11", "BILLING_PERIOD=2026-10"


def pinned(folder: Path, *months: str) -> Export:
    return manifest.pinned(LocalFiles(), str(folder), months)


def periods(found: Export) -> list[str]:
    return [month.period for month in found.months]


def refreshes(folder: Path) -> dict[str, Refresh]:
    return dict(manifest.refreshes(LocalFiles(), str(folder))[1])


def refused(folder: Path, *months: str) -> str:
    with pytest.raises(InvalidInput) as raised:
        pinned(folder, *months)
    assert len(raised.value.problems) == 1
    return str(raised.value)


def manifest_of(folder: Path, period: str = PERIOD, execution: str = "") -> Path:
    return folder / "metadata" / period / execution / "export-Manifest.json"


def deliver(
    folder: Path,
    *files: str,
    execution: str = "",
    period: str = PERIOD,
    missing: tuple[str, ...] = (),
    **content: Any,
) -> None:
    """Deliver files as AWS does, `execution` being CREATE_NEW_REPORT's folder per refresh."""
    data, names = folder / "data" / period, []
    for file in files:
        relative = Path(execution) / file
        names.append(f"s3://bucket/prefix/export/data/{period}/{relative}")
        if file not in missing:
            (data / relative).parent.mkdir(parents=True, exist_ok=True)
            (data / relative).touch()
    path = manifest_of(folder, period, execution)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"dataFiles": names, **content}))


def deliver_legacy(folder: Path, *executions: str, suffix: str = ".csv.gz", files: int = 1) -> None:
    """Deliver a legacy report that keeps every refresh."""
    bill = list(lines(ClusterBill(hours=1)))
    how = {"layout": export.Layout.LEGACY, "suffix": suffix, "files": files}
    for execution in executions:
        export.write(folder, bill, execution=execution, **how)


# --- Of an export the files of its manifests.


def test_only_the_files_the_manifest_names_are_read(tmp_path: Path) -> None:
    files = ["export-00001.snappy.parquet", "export-00002.snappy.parquet"]
    deliver(tmp_path, *files, files[0], simulated=True)
    (tmp_path / "data" / PERIOD / "export-00003.snappy.parquet").touch()
    found = pinned(tmp_path)
    assert [Path(file).name for file in found.files] == files
    assert (found.name, periods(found), found.simulated) == ("export", ["2026-11"], True)


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.zip", ".snappy.parquet"])
def test_of_a_legacy_report_that_keeps_every_refresh_the_newest_is_read(
    tmp_path: Path, suffix: str
) -> None:
    # A refresh's folder is named by chance: the newest comes first in order here.
    deliver_legacy(tmp_path, "f3c1", "0a9e", suffix=suffix, files=2)
    found = pinned(tmp_path)
    assert [month.refresh.execution for month in found.months] == ["0a9e"]
    assert [Path(file).parent.name for file in found.files] == ["0a9e"] * 2


def test_two_legacy_refreshes_without_the_manifest_above_are_refused(tmp_path: Path) -> None:
    deliver_legacy(tmp_path, "f3c1", "0a9e")
    min(tmp_path.rglob("*-Manifest.json"), key=lambda path: len(path.parts)).unlink()
    said = refused(tmp_path)
    assert "twice" in said
    assert "and no manifest says" in said


def test_every_month_is_read(tmp_path: Path) -> None:
    deliver(tmp_path, "a.parquet")
    deliver(tmp_path, "b.parquet", period=OCTOBER)
    assert periods(pinned(tmp_path)) == ["2026-10", "2026-11"]
    assert periods(pinned(tmp_path, "2026-10")) == ["2026-10"]
    said = refused(tmp_path, "2026-09")
    assert "has no delivery of 2026-09; it has 2026-10, 2026-11" in said


def test_a_file_named_by_two_addresses_is_read_once(tmp_path: Path) -> None:
    deliver(tmp_path, "a.parquet")
    path = manifest_of(tmp_path)
    (name,) = json.loads(path.read_text())["dataFiles"]
    # As an editor saves it, with a mark of byte order before it.
    both = {"dataFiles": [name, name.replace("s3://bucket", "s3a://other")]}
    path.write_text(f"\ufeff{json.dumps(both)}")
    assert len(pinned(tmp_path).files) == 1


DATA = f"s3://bucket/export/data/{PERIOD}"
NO_FILES = 'names no files under "dataFiles"'


@every_case(
    ("content", "below", "sentence"),
    [
        ({"dataFiles": [f"{DATA}/a.parquet", f"{DATA}/c.parquet"]}, "",
         "c.parquet, which is not in the folder"),
        ({"dataFiles": [f"{DATA}/../../../../etc/passwd"]}, "", "which is not below data/"),
        ({"dataFiles": [f"{DATA}/a.parquet", f"{DATA}/b.csv.gz"]}, "", "mixes file formats"),
        *((content, "", NO_FILES) for content in ([], {"dataFiles": []}, {"dataFiles": [1]})),
        (None, "", "is not JSON"),
        ({}, "none", "is not a folder"),
        ({}, "data", "has no manifest under metadata"),
        ({}, "metadata", "is a part of an export; name "),
    ],
)  # fmt: skip
def test_what_is_no_whole_export_is_refused_in_one_sentence(
    tmp_path: Path, content: Any, below: str, sentence: str
) -> None:
    deliver(tmp_path, "a.parquet", "b.csv.gz")
    manifest_of(tmp_path).write_text("{" if content is None else json.dumps(content))
    assert sentence in refused(tmp_path / below)


@every_case("second", [PERIOD, OCTOBER])
def test_two_exports_in_one_folder_are_refused_though_one_has_every_month(
    tmp_path: Path, second: str
) -> None:
    folder = tmp_path / second
    for period, name in ((PERIOD, "first"), (second, "second")):
        deliver(folder, f"{name}.parquet", period=period)
        path = manifest_of(folder, period)
        path.rename(path.with_name(f"{name}-Manifest.json"))
    assert "holds 2 exports, first, second; name one's own" in refused(folder, "2026-11")


def test_a_month_that_is_both_overwritten_and_kept_is_refused(tmp_path: Path) -> None:
    deliver(tmp_path, "export-00001.csv.gz")
    deliver(tmp_path, "export-00001.csv.gz", execution="2026-11-19T08:00:00.000Z-aaaa")
    said = refused(tmp_path)
    assert "has 2026-11 twice: overwritten in place" in said
    assert "Remove the manifest of the older way" in said
    # Another month in the other way is as AWS leaves an export whose setting was changed.
    manifest_of(tmp_path).unlink()
    deliver(tmp_path, "export-00001.csv.gz", period=OCTOBER)
    assert periods(pinned(tmp_path)) == ["2026-10", "2026-11"]


def test_a_manifest_that_names_no_files_is_of_a_month_without_any(tmp_path: Path) -> None:
    deliver(tmp_path, "a.parquet")
    deliver(tmp_path, period="BILLING_PERIOD=2026-12")
    found = pinned(tmp_path)
    assert (periods(found), found.empty) == (["2026-11"], ["2026-12"])
    assert refreshes(tmp_path)["2026-12"].files == 0
    assert "names no files" in refused(tmp_path, "2026-12")


def test_an_export_may_lie_in_a_folder_that_is_called_like_a_month(tmp_path: Path) -> None:
    own = tmp_path / "BILLING_PERIOD=2025-01" / "export"
    deliver(own, "a.parquet")
    assert periods(pinned(own)) == [*refreshes(own)] == ["2026-11"]


def test_an_export_is_found_below_the_folder_that_was_named(tmp_path: Path) -> None:
    own = tmp_path / "prefix" / "export"
    deliver(own, "a.parquet")
    assert pinned(tmp_path).files == pinned(own).files
    assert refreshes(tmp_path) == refreshes(own)
    deliver_legacy(tmp_path / "legacy" / "report", "0a9e")
    legacy = tmp_path / "legacy"
    assert pinned(legacy).files == pinned(legacy / "report").files
    shutil.rmtree(legacy)
    (tmp_path / "older.csv").touch()
    said = refused(tmp_path)
    assert "holds the export " in said
    assert "older.csv" in said.partition(" and other data ")[2]
    shutil.copytree(own, tmp_path / "backup" / "export")
    said = refused(tmp_path)
    assert "holds an export twice, " in said
    assert "backup/export and " in said


# --- What tells a refresh from another.


def test_a_refresh_is_known_by_its_manifest_though_its_files_are_gone(tmp_path: Path) -> None:
    deliver(tmp_path, "a.parquet", missing=("a.parquet",), executionId="first")
    deliver(tmp_path, "b.parquet", period=OCTOBER)
    assert manifest.refreshes(LocalFiles(), str(tmp_path))[0] == "export"
    found = refreshes(tmp_path)
    assert {period: each.execution for period, each in found.items()} == {
        "2026-10": "",
        "2026-11": "first",
    }
    assert found["2026-11"].fingerprint == ""
    assert found["2026-10"] == pinned(tmp_path, "2026-10").months[0].refresh


def test_a_refresh_is_known_by_its_files_names_sizes_and_times(tmp_path: Path) -> None:
    def fingerprint(name: str = "here") -> str:
        return refreshes(tmp_path / name)["2026-11"].fingerprint

    deliver(tmp_path / "here", "a.parquet", "b.parquet")
    deliver(tmp_path / "here", "c.parquet", period=OCTOBER)
    known = fingerprint()
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    data = tmp_path / "here" / "data" / PERIOD
    (data / "left-behind.parquet").touch()
    assert fingerprint("there") == fingerprint() == known
    (data / "a.parquet").write_text("longer")
    longer = fingerprint()
    os.utime(data / "a.parquet", ns=(0, 0))
    assert len({known, longer, fingerprint()}) == 3
    (data / "a.parquet").unlink()
    assert fingerprint() == ""


# --- Without a manifest every file, but what may count twice or not at all.


def unlisted(folder: Path) -> list[str]:
    return manifest.unlisted(LocalFiles(), str(folder))


def refused_unlisted(folder: Path) -> str:
    with pytest.raises(InvalidInput) as raised:
        unlisted(folder)
    assert len(raised.value.problems) == 1
    return str(raised.value)


def put(folder: Path, *names: str, content: str | None = None) -> list[str]:
    """Write files that differ, or hold this content all."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n\n" if content is None else content)
    return [str(folder / name) for name in names]


def test_without_a_manifest_every_data_file_is_the_bill(tmp_path: Path) -> None:
    there = put(tmp_path, f"{OCTOBER}/a-00001.parquet", f"{PERIOD}/a-00001.parquet")
    put(tmp_path, "_SUCCESS", "_temporary/0/b.parquet", ".c.parquet", "README.md", "a.csv.md5")
    put(tmp_path, "cost_and_usage_data_status/status.parquet")
    assert unlisted(tmp_path) == there


def test_with_a_manifest_no_other_file_is_the_bill(tmp_path: Path) -> None:
    deliver(tmp_path, "export-00001.csv.gz")
    assert unlisted(tmp_path) == []
    for below in ("data", f"data/{PERIOD}"):
        said = refused_unlisted(tmp_path / below)
        assert f"is the data of an export; name {tmp_path}," in said


PART = "which may be part of the bill"


@every_case(
    ("first", "second", "sentence"),
    [
        ("2026-11-01T0/a.csv", "2026-11-02T0/a.csv", "a.csv twice"),
        (f"{PERIOD}/run-1/a.csv", f"{PERIOD}/run-2/a.csv", "a.csv twice for one month"),
        ("a.csv", "b.parquet", "mixes .parquet, .csv"),
        ("a.csv", "b.csv.zip", "mixes .zip, .csv"),
        *(
            ("a.csv", name, f"{name}, {PART}")
            for name in ("b.csv.zst", "B.CSV", "b.xlsx", "a.csv.20261101", "0000_part_00")
        ),
        *(
            ("a.csv", name, f"{name}, {PART} and cannot be read. Copy it")
            for name in ("b.csv.part", "b.parquet.6eA3f09C")
        ),
        ("data/part-0.parquet", "_delta_log/00000000000000000000.json", "table of Delta Lake"),
        ("data/part-0.parquet", "metadata/00001-a.metadata.json", "Lake, Iceberg or Hudi"),
        ("data/part-0.parquet", ".hoodie/hoodie.properties", "its log alone says"),
    ],
)
def test_without_a_manifest_what_may_count_twice_or_not_at_all_is_refused(
    tmp_path: Path, first: str, second: str, sentence: str
) -> None:
    folder = tmp_path / second.replace("/", "-")
    put(folder, first, second)
    assert sentence in refused_unlisted(folder)
    if second.startswith("metadata"):
        assert sentence in refused_unlisted(folder / "data")


def test_a_copy_of_a_file_is_refused_and_a_header_alone_is_none(tmp_path: Path) -> None:
    put(tmp_path, "october.csv", "november.csv", content="a,b")
    assert len(unlisted(tmp_path)) == 2
    put(tmp_path, "bill.csv", "bill (1).csv", content="a,b\n1,2\n")
    said = refused_unlisted(tmp_path)
    assert "bill (1).csv and" in said
    assert "hold the same; take one of them out" in said


def test_the_same_lines_are_others_in_a_folder_that_says_another_day(tmp_path: Path) -> None:
    for day in (1, 2):
        name = f"line_item_usage_start_date=2026-11-0{day}/part-0.csv"
        put(tmp_path / "days", name, content="a\n1\n")
        put(tmp_path / "months", f"billing_period=2026-1{day}/{day}.csv", content="a\n1\n")
    assert len(unlisted(tmp_path / "days")) == 2
    assert "hold the same" in refused_unlisted(tmp_path / "months")


def test_links_are_followed_and_a_folder_is_read_once(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/november.csv", "bill/october.csv")
    (tmp_path / "bill" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "bill")
    found = [Path(path).name for path in unlisted(tmp_path / "bill")]
    assert found == ["november.csv", "october.csv"]


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
