"""The report: exact sums, sentences, charts that stand out, and a page that trusts no bill."""

from __future__ import annotations

import re
from decimal import Decimal
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from spark.report import document, formats
from spark.report import story as stories
from spark.report.evidence import Report
from spark.report.plot import COLOURS, drawing
from spark.report.sections import bill
from spark.rules.meters import Attribution, Component
from tests.unit.spark.month import a_line, a_report, bad_row, document_of, monthless

UNTAGGED = {"attribution": Attribution.NOBODY, "cluster": None, "owner": "unattributed"}
MONEY = st.decimals(min_value=-1000, max_value=1000, places=11)


def html_of(report: Report) -> str:
    return formats.as_html(document_of(report))


@given(
    st.lists(
        st.builds(
            lambda component, attribution, billed: a_line(
                component=component, attribution=attribution, billed=billed
            ),
            st.sampled_from(Component),
            st.sampled_from(Attribution),
            MONEY,
        ),
        min_size=1,
    )
)
def test_components_owners_and_attributions_each_add_up_to_the_bill(lines: list[Row]) -> None:
    report = a_report(*lines)
    total = sum(line.billed_cost for line in lines)
    assert sum(share.billed for share in report.components()) == total
    assert sum(share.billed for share in report.owners()) == total
    assert sum(report.attributed(attribution) for attribution in Attribution) == total
    for share in report.components():
        assert sum(share.by_attribution.values()) == share.billed


def test_components_stand_in_one_order_and_owners_by_size() -> None:
    report = a_report(
        a_line(component=Component.OTHER, billed=Decimal(1), owner="broker-b"),
        a_line(component=Component.GP3_STORAGE, billed=Decimal(2), owner="broker-c"),
        a_line(billed=Decimal(3)),
    )
    assert [s.name for s in report.components()] == ["broker compute", "gp3 storage", "other"]
    assert [s.name for s in report.owners()] == [
        "harbour / broker-a",
        "harbour / broker-c",
        "harbour / broker-b",
    ]


def test_an_owner_shows_the_kafka_node_its_volumes_name() -> None:
    report = a_report(a_line(), a_line(component=Component.GP3_STORAGE, node_id=10))
    (owner,) = report.owners()
    assert owner.detail == "node 10 in us-east-1a"


def test_the_story_says_what_it_cost_on_what_and_whose_it_is() -> None:
    told = stories.sentences(
        a_report(a_line(), a_line(billed=Decimal("2.00"), component=Component.OTHER, **UNTAGGED))
    )
    assert told == [
        "The bill of 2026-11 is 12.10 USD.",
        "Kafka costs 10.10 USD (cluster harbour).",
        "Node pools cost 10.10 USD; charges of a whole cluster cost 0 USD.",
        "The largest component is broker compute with 10.10 USD (100.0% of Kafka's cost).",
        (
            "2.00 USD is not attributed to Kafka: no tag stillwater:cluster, claim or known "
            "resource."
        ),
        "Kafka's amortised cost, with savings plans and reservations, is 8.08 USD.",
    ]


def test_rows_that_could_not_be_read_are_in_the_story_and_on_the_page() -> None:
    bad = (bad_row("BilledCost 'abc' is not a number", "abc, 2026-11-01", None),)
    report = a_report(a_line(), rows=2, bad_rows=1, rows_without_cost=1, bad=bad)
    assert stories.sentences(report)[-2:] == [
        "1 row is unreadable.",
        "The cost of 1 row is unknown and in no total.",
    ]
    html = html_of(report)
    assert "BilledCost &#39;abc&#39; is not a number" in html
    assert "unknown" in html


@pytest.mark.parametrize(
    ("some", "said"),
    [
        (
            monthless(1, 1, Decimal(0)),
            [
                "1 row of the bill names no readable month and is in no total.",
                "Its cost is unknown.",
            ],
        ),
        (
            monthless(3, 0, Decimal("-4.5")),
            [
                "3 rows of the bill name no readable month and are in no total.",
                f"Their cost is {document.MINUS}4.50 USD.",
            ],
        ),
    ],
)
def test_a_total_beside_rows_of_any_month_is_not_called_whole(some: Row, said: list[str]) -> None:
    report = a_report(a_line(), monthless=some)
    told = stories.sentences(report)
    assert told[0].endswith("in its readable rows.")
    assert told[-2:] == said
    whole = bill.cost_section(report).sentences[0]
    assert "rows of the month" in whole
    assert "the total of the readable rows exactly" in whole


def test_the_page_carries_its_labels_and_needs_nothing_from_elsewhere() -> None:
    html = html_of(a_report(a_line(), simulated=True))
    assert "Simulated" in html
    assert "src=" not in html
    assert "<link" not in html.replace('<link rel="icon" href="data:,">', "")
    assert "Simulated" not in html_of(a_report(a_line()))


def test_the_plot_takes_its_colours_from_the_page() -> None:
    assert "fill: var(--c1)" in html_of(a_report(a_line(), a_line(**UNTAGGED)))
    html = html_of(a_report(a_line(**UNTAGGED)))
    assert "fill: var(--rest)" in html
    assert "#0102" not in html


def test_the_same_report_is_the_same_page() -> None:
    assert html_of(a_report(a_line())) == html_of(a_report(a_line()))


def test_what_has_no_name_is_never_smaller_than_what_is_called_the_largest() -> None:
    unnamed = a_line(billed=Decimal("30.00"), component=Component.OTHER)
    told = " ".join(stories.sentences(a_report(a_line(), unnamed)))
    assert "The largest named component is broker compute with 10.10 USD (25.2% of" in told
    assert "The component other (system nodes, taxes, fees and unknown meters) is larger" in told
    assert "All of Kafka's cost is in the component other" in " ".join(
        stories.sentences(a_report(unnamed))
    )


def test_a_name_longer_than_any_of_awss_drowns_nothing_around_it() -> None:
    key_and_value = f"{'k' * 128}={'v' * 256}"
    for name, is_cut in ((key_and_value, False), ("x" * 100_000, True)):
        told = " ".join(document_of(a_report(a_line(cluster=name))).story)
        assert (name not in told) is is_cut
        assert len(told) < 2000


STYLE = (files("spark.report") / "templates" / "style.css").read_text()
LIGHT, DARK = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]
LEAST = 3.0


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_of_a_chart_stands_out_from_its_card(scheme: str) -> None:
    named = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", scheme))
    faint = {
        name: round(found, 2)
        for name in COLOURS
        if (found := contrast(named[name], named["--card"])) < LEAST
    }
    assert faint == {}


def test_a_dollar_in_an_owners_name_is_no_formula() -> None:
    # Read as a formula, the first would end the report, and the second lose its dollars.
    for owner in (r"team $\frac{", "$pay$"):
        with drawing("costs", 1.0) as made:
            made.axes.text(0, 0, owner)
        assert owner.replace("<", "&lt;") in made.svg
