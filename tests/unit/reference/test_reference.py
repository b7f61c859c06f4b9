"""The reference pages in the repository are what the code says today."""

import functools
from collections.abc import Mapping
from pathlib import Path

from core import timing
from core.cluster import ClusterSpec
from core.cluster.fields import Frozen
from core.cluster.reading import meanings
from reference import __main__ as reference
from reference import description, tables
from tests.every_case import every_case

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference"


@functools.cache
def pages() -> Mapping[str, str]:
    return reference.pages()


@every_case("name", lambda: sorted(pages()))
def test_the_checked_in_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text() == pages()[name], "run `make docs`"


def test_every_rule_is_on_the_page() -> None:
    page = tables.timings()
    assert all(f"| {rule.name} |" in page for rule in timing.RULES)


def _sections(base: type[Frozen] = Frozen) -> list[type[Frozen]]:
    """Every section of a ClusterSpec, reachable or not; not what two of them share."""
    of = base.__subclasses__()
    return [cls for sub in of for cls in _sections(sub)] if of else [base]


@every_case("section", _sections(), ids=lambda section: section.__name__)
def test_every_key_says_what_it_means(section: type[Frozen]) -> None:
    silent = section.model_fields.keys() - meanings(section).keys()
    assert not silent, "write what it means into a docstring below the field"
    assert section.__doc__


def test_every_key_of_every_section_is_a_row() -> None:
    page = description.page()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) == sum(len(section.model_fields) for section in _sections())
    assert all(f"| `{name}` |" in page for s in _sections() for name in s.model_fields)


def test_a_row_says_type_default_limits_and_meaning() -> None:
    rows = description.page().splitlines()
    described = meanings(ClusterSpec)["isr_margin"]
    assert f"| `isr_margin` | integer | `1` | 0 to 3 | {' '.join(described.split())} |" in rows


def test_a_row_has_five_cells_whatever_a_pattern_holds() -> None:
    rows = [line for line in description.page().splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in rows} == {6}


def test_a_section_at_two_places_has_one_table_that_both_point_to() -> None:
    page = description.page()
    assert page.count("## kafka.probes.readiness, kafka.probes.liveness") == 1
    assert page.count("(#kafkaprobesreadiness-kafkaprobesliveness)") == 2
