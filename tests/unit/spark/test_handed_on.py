"""More traps of bills (53 to 56): what happens to one on its way from hand to hand."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from spark.tag_keys import KafkaTags
from tests.unit.spark.test_rewritten import cur
from tests.unit.spark.written import ingested, legacy, refused, written


def test_53_of_tags_that_differ_by_case_the_one_that_is_asked_for_is_found(tmp_path: Path) -> None:
    tags = {"resourceTags/user:Owner": "first", "resourceTags/user:owner": "second"}
    path = written(tmp_path, legacy([tags]))
    for key, value in (("Owner", "first"), ("owner", "second"), ("OWNER", "first")):
        came, rows, _ = ingested(path, KafkaTags(cluster=key))
        assert (came.lines, [row.billed_cost for row in rows]) == (1, [1.25])
        assert [row.cluster for row in rows] == [value]


def locked(content: str) -> bytes:
    """Pack an archive that says of its file that a password is needed."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("bill.csv", content)
    raw = bytearray(packed.getvalue())
    for place in (6, raw.rfind(b"PK\x01\x02") + 8):
        raw[place] |= 1
    return bytes(raw)


@pytest.mark.parametrize("kind", ["cut off", "locked"])
def test_55_a_file_that_is_cut_off_or_locked_says_so(tmp_path: Path, kind: str) -> None:
    whole = legacy([{}] * 50)
    if kind == "locked":
        path = written(tmp_path, locked(whole), "bill.zip")
        assert "needs a password; pack it again without one" in refused(path)
    else:
        path = written(tmp_path, gzip.compress(whole.encode(), mtime=0)[:-20], "bill.csv.gz")
        assert "ends before its data does; copy it again" in refused(path)


def test_56_times_of_another_type_are_named_by_their_column(tmp_path: Path) -> None:
    path = cur(tmp_path / "bill.parquet", line_item_usage_start_date=True)
    said = refused(path)
    assert "line_item_usage_start_date 'True' is not a time" in said
