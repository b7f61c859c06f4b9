"""More traps of bills (77 to 80): tags and lines as other tools than AWS's write them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.spark import bills
from tests.unit.spark.written import ingested, legacy, usage, written

CLUSTER = "resourceTags/user:stillwater:cluster"
TAGS = {"note": "a, b", "stillwater:cluster": "harbour", "team": "web"}


def _pairs(between: str, apart: str, quote: str = "") -> str:
    cells = (f"{quote}{k}{quote}{between}{quote}{v}{quote}" for k, v in TAGS.items())
    return apart.join(cells)


FORMS: Mapping[str, str] = {
    "json": json.dumps({**TAGS, "n": 1, "q": 'a "b" {x=y}', "z": None}),
    "json in a string": json.dumps(json.dumps(TAGS)),
    "a list of keys and values": json.dumps([{"key": k, "value": v} for k, v in TAGS.items()]),
    "a list of TagKey": json.dumps([{"TagKey": k, "TagValue": v} for k, v in TAGS.items()]),
    "a list of objects": json.dumps([{k: v} for k, v in TAGS.items()]),
    "a list of pairs": json.dumps([[k, v] for k, v in TAGS.items()]),
    "python": str({**TAGS, "apostrophe": "it's", "nothing": None, "truth": True}),
    "python, a list of tuples": str([*TAGS.items(), ("nothing", None)]),
    "semicolons": _pairs("=", ";"),
    "semicolons, one at the end": f"{_pairs('=', '; ')};",
    "bars": _pairs("=", "|"),
    "commas": _pairs("=", ", "),
    "spark": f"{{{_pairs(' -> ', ', ')}}}",
    "athena": f"{{{_pairs('=', ', ')}}}",
    "azure": _pairs(": ", ", ", '"'),
    "postgres": _pairs("=>", ", ", '"'),
}
UNREAD = ("harbour", "stillwater:cluster:harbour", "cluster=harbour;team", '{"team": "we', "[1, 2]")


def test_77_tags_are_read_as_any_tool_writes_them_or_not_at_all(tmp_path: Path) -> None:
    rows = [{"Tags": text, "SubAccountId": form} for form, text in FORMS.items()]
    rows += [{"Tags": text, "SubAccountId": text} for text in UNREAD]
    found = usage(bills.focus_file(tmp_path / "bill.csv", rows))
    assert {row.account: row.cluster for row in found} == {
        **dict.fromkeys(FORMS, "harbour"),
        **dict.fromkeys(UNREAD),
    }


def _index(text: str) -> str:
    header, *lines = text.splitlines()
    return "\n".join([f",{header}", *(f"{n},{line}" for n, line in enumerate(lines))]) + "\n"


def _marked(text: str) -> str:
    return text.replace('""', '\\"')


def _with_a_comma(text: str) -> str:
    return "\n".join(f"{line}," for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("rewritten", [_index, _marked, _with_a_comma])
def test_78_what_a_tool_makes_of_a_csv_file_is_read(
    tmp_path: Path, rewritten: Callable[[str], str]
) -> None:
    odd = {"resourceTags/user:Cost Center ": "x", "resourceTags/user:a`b.c": 'say "a, b" to x'}
    text = legacy([{**odd, CLUSTER: "harbour"}, {**odd, CLUSTER: "harbour"}])
    came, rows, _ = ingested(written(tmp_path, rewritten(text)))
    assert (came.lines, came.billed, sum(came.quarantined.values())) == (2, Decimal("2.5"), 0)
    assert {row.cluster for row in rows} == {"harbour"}


def test_79_archives_of_a_folder_are_one_bill(tmp_path: Path) -> None:
    folder = tmp_path / "archives"
    folder.mkdir()
    for name in ("a", "b"):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            archive.writestr("bill.csv", legacy([{"identity/LineItemId": name}]))
    came, _, _ = ingested(folder)
    assert (came.lines, came.billed) == (2, Decimal("2.5"))


def test_80_a_column_of_floats_or_of_nothing_is_read(tmp_path: Path) -> None:
    row = {**bills.CUR_ROW, "resource_tags": "{}"}
    columns = {name: pa.array([value]) for name, value in row.items()}
    columns["line_item_unblended_cost"] = pa.array([0.1], pa.float32())
    columns["line_item_resource_id"] = pa.nulls(1)
    pq.write_table(pa.table(columns), tmp_path / "bill.parquet")
    came, rows, _ = ingested(tmp_path / "bill.parquet")
    assert came.billed == sum(row.billed_cost for row in rows) == Decimal("0.1")
