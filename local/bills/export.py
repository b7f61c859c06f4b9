"""Delivers synthetic lines as AWS does: files per month, then the manifest that names them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped] # the same

from local.bills.line import (
    CUR2,
    FOCUS_10,
    FOCUS_12,
    MAPS,
    BillLine,
    Cell,
    is_in_focus,
    legacy_name,
    month_start,
    next_month,
)
from spark.tag_keys import export_key

NAME = "synthetic"
NOTE = "A synthetic bill: AWS charged no account."


class Layout(StrEnum):
    """A kind of export."""

    CUR2 = "CUR 2.0"
    FOCUS_10 = "FOCUS 1.0"
    FOCUS_12 = "FOCUS 1.2"
    LEGACY = "legacy CUR"


def write(
    folder: Path,
    lines: Iterable[BillLine],
    *,
    layout: Layout = Layout.CUR2,
    suffix: str = ".snappy.parquet",
    files: int = 1,
    execution: str = "",
    name: str = NAME,
) -> Path:
    """Write the export of these lines, each month dealt out to `files` files; return its folder.

    `execution` is the folder of a refresh in an export that keeps each (CREATE_NEW_REPORT).
    """
    months: dict[str, list[BillLine]] = {}
    for line in lines:
        if layout not in (Layout.FOCUS_10, Layout.FOCUS_12) or is_in_focus(line):
            months.setdefault(line.period, []).append(line)
    for period, chosen in months.items():
        dealt = _deal(chosen, files)
        if layout is Layout.LEGACY:
            _legacy(folder, period, dealt, suffix, execution, name)
        else:
            _data_export(folder, period, dealt, layout, suffix, execution, name)
    return folder


def _deal(lines: Sequence[BillLine], files: int) -> list[list[BillLine]]:
    return [list(lines[number::files]) for number in range(files) if lines[number::files]]


def _data_export(
    folder: Path,
    period: str,
    dealt: Sequence[Sequence[BillLine]],
    layout: Layout,
    suffix: str,
    execution: str,
    name: str,
) -> None:
    partition = Path(f"BILLING_PERIOD={period}", *([execution] if execution else []))
    names = []
    for number, lines in enumerate(dealt, start=1):
        path = folder / "data" / partition / f"{name}-{number:05d}{suffix}"
        _put(path, lines, _cells(layout), suffix)
        names.append(f"s3://synthetic/bills/{name}/{path.relative_to(folder)}")
    _manifest(
        folder / "metadata" / partition / f"{name}-Manifest.json",
        {"exportName": name, "executionId": execution or "synthetic", "dataFiles": names},
    )


def _legacy(
    folder: Path,
    period: str,
    dealt: Sequence[Sequence[BillLine]],
    suffix: str,
    execution: str,
    name: str,
) -> None:
    start = month_start(period)
    month = f"{start:%Y%m%d}-{next_month(start):%Y%m%d}"
    parquet = suffix.endswith(".parquet")
    keys = []
    for number, lines in enumerate(dealt, start=1):
        data = Path(name, f"year={start.year}", f"month={start.month}") if parquet else Path(month)
        path = folder / data / execution / f"{name}-{number}{suffix}"
        _put(path, lines, _legacy_cells(dealt, parquet=parquet), suffix)
        keys.append(f"bills/{name}/{path.relative_to(folder)}")
    content = {"assemblyId": execution or "synthetic", "reportKeys": keys}
    for place in {Path(month), Path(month) / execution}:
        _manifest(folder / place / f"{name}-Manifest.json", content)


def _cells(layout: Layout) -> Mapping[str, Cell]:
    by_layout = {Layout.FOCUS_10: FOCUS_10, Layout.FOCUS_12: FOCUS_12}
    return by_layout.get(layout, CUR2)


def _legacy_cells(dealt: Sequence[Sequence[BillLine]], *, parquet: bool) -> dict[str, Cell]:
    """Return the legacy report's columns: a column per tag, and no maps."""
    cells = {
        legacy_name(name, parquet=parquet): cell for name, cell in CUR2.items() if name not in MAPS
    }
    for key in sorted({key for lines in dealt for line in lines for key in line.all_tags}):
        marked = key if key.startswith("aws:") else f"user:{key}"
        named = f"resource_tags_{export_key(key)}" if parquet else f"resourceTags/{marked}"
        cells[named] = lambda line, key=key: line.all_tags.get(key, "")  # type: ignore[misc] # bound
    return cells


def _put(path: Path, lines: Sequence[BillLine], cells: Mapping[str, Cell], suffix: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if suffix.endswith(".parquet"):
        pq.write_table(_table(lines, cells), path, compression="snappy", store_schema=False)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(cells)
    for line in lines:
        values = [cell(line) for cell in cells.values()]
        writer.writerow(json.dumps(v) if isinstance(v, dict) else v for v in values)
    data = text.getvalue().encode()
    if suffix.endswith(".gz"):
        data = gzip.compress(data)
    elif suffix.endswith(".zip"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(path.name.removesuffix(".zip"), data)
        data = packed.getvalue()
    path.write_bytes(data)


def _table(lines: Sequence[BillLine], cells: Mapping[str, Cell]) -> pa.Table:
    return pa.table({name: _column([cell(line) for line in lines]) for name, cell in cells.items()})


def _column(values: Sequence[Any]) -> pa.Array:
    first = next((value for value in values if value is not None), None)
    if isinstance(first, dict):
        maps = pa.map_(pa.string(), pa.string())
        return pa.array([list(value.items()) for value in values], maps)
    if first is None:
        return pa.array(values, pa.float64())
    kinds = {str: pa.string(), float: pa.float64()}
    return pa.array(values, kinds.get(type(first), pa.timestamp("ms")))


def _manifest(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**content, "simulated": True, "note": NOTE}, indent=2) + "\n")
