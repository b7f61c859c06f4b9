"""Figures that pages repeat from the tables of the code are still those."""

from __future__ import annotations

import re

from core.cost import pricing
from core.ground import instances
from tests.unit.docs import markdown

GUIDE = markdown.REPOSITORY / "docs" / "how-to" / "choose-instance-types.md"


def _number(cell: str) -> float:
    return float(cell.partition("/")[0].replace(",", ""))


def test_the_instance_types_of_the_guide_are_those_check_knows() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \|(.*)\|$", GUIDE.read_text(), re.MULTILINE)
    assert len(rows) >= 10
    book = pricing.book("us-east-1")
    for name, cells in rows:
        vcpus, memory_gib, megabytes, iops, _network, dollars = map(_number, cells.split("|"))
        known = instances.table().types[name]
        assert (known.vcpus, known.memory_mib / 1024, known.ebs_iops) == (vcpus, memory_gib, iops)
        assert round(known.ebs_mb_per_s) == megabytes
        assert float(book.instance_hour(name).usd) == dollars


def test_the_guide_says_how_many_types_check_knows() -> None:
    assert f"has {len(instances.table().types)} types" in GUIDE.read_text()
