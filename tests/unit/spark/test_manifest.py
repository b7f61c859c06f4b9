"""Which files of an export are read: those of each month's newest manifest, whole or not at all."""

from __future__ import annotations

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
from spark.ingest.manifest import Export
from tests.every_case import every_case

PERIOD = "BILLING_PERIOD=2026-11"


def pinned(folder: Path, *months: str) -> Export:
    return manifest.pinned(LocalFiles(), str(folder), months)


def periods(export: Export) -> list[str]:
    return [month.period for month in export.months]


def deliver(
    folder: Path,
    files: list[str],
    *,
    execution: str = "",
    period: str = PERIOD,
    missing: tuple[str, ...] = (),
    **manifest: Any,
) -> None:
    """Deliver files as AWS does, `execution` being CREATE_NEW_REPORT's folder per refresh."""
    data, metadata = folder / "data" / period, folder / "metadata" / period / execution
    names = []
    for file in files:
        relative = Path(execution) / file
        names.append(f"s3://bucket/prefix/export/data/{period}/{relative}")
        if file not in missing:
            (data / relative).parent.mkdir(parents=True, exist_ok=True)
            (data / relative).touch()
    metadata.mkdir(parents=True, exist_ok=True)
    content = {"dataFiles": names, **manifest}
    (metadata / "export-Manifest.json").write_text(json.dumps(content))


def test_only_the_files_the_manifest_names_are_read(tmp_path: Path) -> None:
    files = ["export-00001.snappy.parquet", "export-00002.snappy.parquet"]
    deliver(tmp_path, [*files, files[0]], simulated=True)
    (tmp_path / "data" / PERIOD / "export-00003.snappy.parquet").touch()
    export = pinned(tmp_path)
    assert [Path(file).name for file in export.files] == files
    assert (export.name, periods(export), export.simulated) == ("export", ["2026-11"], True)


def test_an_export_that_keeps_every_refresh_is_read_once(tmp_path: Path) -> None:
    deliver(tmp_path, ["export-00001.csv.gz"], execution="2026-11-19T08:00:00.000Z-aaaa")
    deliver(tmp_path, ["export-00001.csv.gz"], execution="2026-11-20T08:00:00.000Z-0000")
    (file,) = pinned(tmp_path).files
    assert Path(file).parent.name == "2026-11-20T08:00:00.000Z-0000"


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.zip", ".snappy.parquet"])
def test_of_a_legacy_report_that_keeps_every_refresh_the_newest_is_read(
    tmp_path: Path, suffix: str
) -> None:
    bill = list(lines(ClusterBill(hours=1)))
    # A refresh's folder is named by chance: the newest comes first in order here.
    for assembly in ("f3c1", "0a9e"):
        export.write(
            tmp_path,
            bill,
            layout=export.Layout.LEGACY,
            suffix=suffix,
            files=2,
            execution=assembly,
        )
    found = pinned(tmp_path)
    assert [month.refresh.execution for month in found.months] == ["0a9e"]
    assert len(found.files) == 2
    assert {Path(file).parent.name for file in found.files} == {"0a9e"}


def test_every_month_is_read(tmp_path: Path) -> None:
    deliver(tmp_path, ["a.parquet"])
    deliver(tmp_path, ["b.parquet"], period="BILLING_PERIOD=2026-10")
    assert periods(pinned(tmp_path)) == ["2026-10", "2026-11"]
    assert periods(pinned(tmp_path, "2026-10")) == ["2026-10"]
    with pytest.raises(InvalidInput, match="has no delivery of 2026-09; it has 2026-10, 2026-11"):
        pinned(tmp_path, "2026-09")


def named(folder: Path, content: str) -> Path:
    """Deliver an export whose manifest holds this."""
    deliver(folder, ["a.parquet", "b.csv.gz"])
    (folder / "metadata" / PERIOD / "export-Manifest.json").write_text(content)
    return folder


DATA = f"s3://bucket/export/data/{PERIOD}"
LACKING = json.dumps({"dataFiles": [f"{DATA}/a.parquet", f"{DATA}/c.parquet"]})
OUTSIDE = json.dumps({"dataFiles": [f"{DATA}/../../../../etc/passwd"]})
TWO_KINDS = json.dumps({"dataFiles": [f"{DATA}/a.parquet", f"{DATA}/b.csv.gz"]})


@every_case(
    ("content", "below", "sentence"),
    [
        (LACKING, "", "c.parquet, which is not in the folder"),
        (OUTSIDE, "", "which is not below data/"),
        (TWO_KINDS, "", "mixes file formats"),
        ("{", "", "is not JSON"),
        *(
            (json.dumps(content), "", 'names no files under "dataFiles"')
            for content in ([], {"dataFiles": []}, {"dataFiles": [1]})
        ),
        ("{}", "none", "is not a folder"),
        ("{}", "data", "has no manifest under metadata"),
        ("{}", "metadata", "is a part of an export; name "),
    ],
)
def test_what_is_no_whole_export_is_refused_in_one_sentence(
    tmp_path: Path, content: str, below: str, sentence: str
) -> None:
    folder = named(tmp_path / str(abs(hash(content))), content)
    with pytest.raises(InvalidInput) as raised:
        pinned(folder / below)
    assert sentence in str(raised.value)
    assert len(raised.value.problems) == 1


@pytest.mark.parametrize("periods", [(PERIOD, PERIOD), (PERIOD, "BILLING_PERIOD=2026-10")])
def test_two_exports_in_one_folder_are_refused_though_one_has_every_month(
    tmp_path: Path, periods: tuple[str, str]
) -> None:
    for period, name in zip(periods, ("first", "second"), strict=True):
        deliver(tmp_path, [f"{name}.parquet"], period=period)
        place = tmp_path / "metadata" / period
        (place / "export-Manifest.json").rename(place / f"{name}-Manifest.json")
    with pytest.raises(InvalidInput, match="holds 2 exports, first, second; name one's own"):
        pinned(tmp_path, "2026-11")


def test_two_refreshes_of_a_legacy_report_without_the_manifest_above_them_are_refused(
    tmp_path: Path,
) -> None:
    bill = list(lines(ClusterBill(hours=1)))
    for assembly in ("f3c1", "0a9e"):
        export.write(
            tmp_path, bill, layout=export.Layout.LEGACY, suffix=".csv.gz", execution=assembly
        )
    above = min(tmp_path.rglob("*-Manifest.json"), key=lambda path: len(path.parts))
    above.unlink()
    with pytest.raises(InvalidInput, match=r"twice .* and no manifest says"):
        pinned(tmp_path)


def test_a_file_named_by_two_addresses_is_read_once(tmp_path: Path) -> None:
    deliver(tmp_path, ["a.parquet"])
    path = tmp_path / "metadata" / PERIOD / "export-Manifest.json"
    (name,) = json.loads(path.read_text())["dataFiles"]
    # As an editor saves it, with a mark of byte order before it.
    both = {"dataFiles": [name, name.replace("s3://bucket", "s3a://other")]}
    path.write_text(f"\ufeff{json.dumps(both)}")
    assert len(pinned(tmp_path).files) == 1


def test_a_refresh_is_known_by_its_manifest_though_its_files_are_gone(tmp_path: Path) -> None:
    deliver(tmp_path, ["a.parquet"], missing=("a.parquet",), executionId="first")
    deliver(tmp_path, ["b.parquet"], period="BILLING_PERIOD=2026-10")
    name, found = manifest.refreshes(LocalFiles(), str(tmp_path))
    assert name == "export"
    assert {period: each.execution for period, each in found.items()} == {
        "2026-10": "",
        "2026-11": "first",
    }
    assert found["2026-11"].fingerprint == ""
    assert found["2026-10"] == pinned(tmp_path, "2026-10").months[0].refresh


def test_a_refresh_is_known_by_its_own_files_names_sizes_and_times_wherever_they_are(
    tmp_path: Path,
) -> None:
    folder, copy = tmp_path / "here", tmp_path / "there"
    deliver(folder, ["a.parquet", "b.parquet"])
    deliver(folder, ["c.parquet"], period="BILLING_PERIOD=2026-10")
    known = refreshed(folder)
    shutil.copytree(folder, copy)
    assert refreshed(copy) == known
    data = folder / "data" / PERIOD
    (data / "left-behind.parquet").touch()
    assert refreshed(folder) == known
    (data / "a.parquet").write_text("longer")
    seen = {known, refreshed(folder)}
    os.utime(data / "a.parquet", ns=(0, 0))
    seen.add(refreshed(folder))
    (data / "a.parquet").unlink()
    assert len(seen) == 3
    assert refreshed(folder) == ""


def test_a_manifest_that_names_no_files_is_of_a_month_without_any(tmp_path: Path) -> None:
    deliver(tmp_path, ["a.parquet"])
    deliver(tmp_path, [], period="BILLING_PERIOD=2026-12")
    export = pinned(tmp_path)
    assert (periods(export), export.empty) == (["2026-11"], ["2026-12"])
    assert manifest.refreshes(LocalFiles(), str(tmp_path))[1]["2026-12"].files == 0
    with pytest.raises(InvalidInput, match="names no files"):
        pinned(tmp_path, "2026-12")


def refreshed(folder: Path) -> str:
    return manifest.refreshes(LocalFiles(), str(folder))[1]["2026-11"].fingerprint


def test_a_month_that_is_both_overwritten_and_kept_is_refused_since_neither_is_newer(
    tmp_path: Path,
) -> None:
    kept = "2026-11-19T08:00:00.000Z-aaaa"
    deliver(tmp_path, ["export-00001.csv.gz"])
    deliver(tmp_path, ["export-00001.csv.gz"], execution=kept)
    with pytest.raises(InvalidInput) as raised:
        pinned(tmp_path)
    assert "has 2026-11 twice: overwritten in place" in str(raised.value)
    assert "Remove the manifest of the older way" in str(raised.value)
    # Another month in the other way is as AWS leaves an export whose setting was changed.
    (tmp_path / "metadata" / PERIOD / "export-Manifest.json").unlink()
    deliver(tmp_path, ["export-00001.csv.gz"], period="BILLING_PERIOD=2026-10")
    assert periods(pinned(tmp_path)) == ["2026-10", "2026-11"]


def test_an_export_may_lie_in_a_folder_that_is_called_like_a_month(tmp_path: Path) -> None:
    own = tmp_path / "BILLING_PERIOD=2025-01" / "export"
    deliver(own, ["a.parquet"])
    assert periods(pinned(own)) == ["2026-11"]
    assert list(manifest.refreshes(LocalFiles(), str(own))[1]) == ["2026-11"]


def test_an_export_is_found_below_the_folder_that_was_named(tmp_path: Path) -> None:
    own = tmp_path / "prefix" / "export"
    deliver(own, ["a.parquet"])
    assert pinned(tmp_path).files == pinned(own).files
    assert manifest.refreshes(LocalFiles(), str(tmp_path)) == (
        manifest.refreshes(LocalFiles(), str(own))
    )
    (tmp_path / "older.csv").touch()
    with pytest.raises(InvalidInput, match=r"holds the export .* and other data .*older\.csv"):
        pinned(tmp_path)
    shutil.copytree(own, tmp_path / "backup" / "export")
    with pytest.raises(InvalidInput, match=r"holds an export twice, .*backup/export and .*prefix"):
        pinned(tmp_path)


def test_a_legacy_report_is_found_below_the_folder_that_was_named(tmp_path: Path) -> None:
    own = tmp_path / "prefix" / "report"
    bill = list(lines(ClusterBill(hours=1)))
    export.write(own, bill, layout=export.Layout.LEGACY, suffix=".csv.gz", execution="0a9e")
    assert pinned(tmp_path).files == pinned(own).files
