"""The report's sentences are short, name their actor, and call a thing by one name."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from decimal import Decimal

import pytest

from spark.report import formats, plot, story
from spark.report.document import TEXTS, Document
from spark.report.evidence import Evidence
from spark.rules.meters import Attribution, Component, Easy
from spark.transforms.grain import EasySaving
from tests.unit.spark import month

MOST_WORDS = 25
NO_ACTOR = re.compile(r"(?i)\b(nobody|somebody|everybody|anybody|whoever|whom)\b")
NO_SUBJECT = re.compile(r"^(What|Who|Whose|Whoever|Whatever|Of what)\b")
NOBODYS = month.a_line(
    attribution=Attribution.NOBODY, cluster=None, component=Component.MANAGED_KAFKA
)
FITS = month.a_volume(finding="fits", monthly_saving=Decimal(0), one_off_cost=Decimal(0))
BLIND = month.a_volume(finding="not measured", used_bytes=None, monthly_saving=Decimal(0))
EASY = tuple(EasySaving(e, is_kafkas=k, usd=Decimal(336)) for e in Easy for k in (True, False))
NOTHING = {"storage": (FITS,), "transfer": (), "anomalies": (), "economics": (), "nodes": ()}
UNREAD = {
    "rows": 2,
    "bad_rows": 1,
    "rows_without_cost": 1,
    "monthless": month.monthless(3, 1, Decimal(4)),
}
OTHER = month.a_line(component=Component.OTHER, billed=Decimal(30))
EVIDENCE = {
    "a month": month.evidence(),
    "easy savings": month.evidence(easy=EASY, storage=(), transfer=(), economics=()),
    "nothing to do": month.evidence(**NOTHING, resync=()),
    "no samples": month.evidence(**{**NOTHING, "storage": (BLIND,)}),
    "known flows": month.evidence(transfer=(month.a_flow("consume", "402.10", "402.10"),)),
    "no tag": Evidence(report=month.a_report(NOBODYS)),
    "unreadable rows": Evidence(report=month.a_report(OTHER, month.a_line(), NOBODYS, **UNREAD)),
}


@pytest.fixture(params=EVIDENCE.values(), ids=EVIDENCE)
def told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Document:
    for kind in ("band", "bars", "days", "lines"):
        monkeypatch.setattr(plot, kind, lambda *_, **__: "<svg></svg>")
    return story.report_document(request.param)


def sentences(document: Document) -> Iterator[str]:
    """Yield every sentence and title of a report, without what the bill itself says."""
    texts = [document.title, *document.badges, *document.story]
    texts += [text for each in document.actions for text in (each.title, each.why)]
    texts += [each.how for each in document.actions if each.how not in TEXTS["easy"].values()]
    for section in document.sections:
        texts += [section.title, *section.sentences, section.method]
        texts += [each.title for each in section.tables]
        texts += [column.title for each in section.tables for column in each.columns]
        texts += [each.caption for each in section.plots]
    for text in texts:
        yield from re.split(r"(?<=[.?]) (?=\S)", text)


def test_no_sentence_of_a_report_breaks_the_rules_of_prose(told: Document) -> None:
    broken = [
        sentence
        for sentence in sentences(told)
        if len(re.findall(r"\b\w[\w,.'-]*", sentence)) > MOST_WORDS
        or NO_ACTOR.search(sentence)
        or NO_SUBJECT.search(sentence)
    ]
    assert broken == []


def test_the_page_opens_with_month_sum_change_actions_and_contents() -> None:
    document = story.report_document(month.evidence())
    page = re.sub(r"(?s)<style>.*?</style>|<svg.*?</svg>", "", formats.as_html(document))
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.split("<body>")[1])))
    opening = (
        "Kafka cost report, November 2026",
        "3,769.36 USD",
        f"{document.total.against}",
        "Actions",
        "9,170 USD a year",
        "at most 7,238 USD a year",
        "960 USD a year",
        "Contents",
        *(section.title for section in document.sections),
        "Summary",
    )
    places = [text.find(part) for part in opening[:-1]]
    assert -1 not in places
    assert places == sorted(places)
    assert re.match(r"\+\d+\.\d\d USD \(\+\d+\.\d%\) to last month", document.total.against)
    for section in document.sections:
        assert f'<a href="#{section.key}">{section.title}</a>' in html.unescape(page)


@pytest.mark.parametrize("key", ["cost", "changes", "storage", "resync", "economics", "unit"])
def test_a_charts_words_are_its_tables_words(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[list[str]] = []

    def remember(_label: str, names: list[str], *_rest: object) -> str:
        drawn.append([f"{name}".rstrip("\N{ZERO WIDTH SPACE}") for name in names])
        return "<svg></svg>"

    monkeypatch.setattr(plot, "bars", remember)
    section = story.report_document(month.evidence()).section(key)
    assert section is not None
    rows = {row.cells[0].text for table in section.tables for row in table.rows}
    titles = {column.title for table in section.tables for column in table.columns}
    own = {"node pools", "whole cluster", "Needed for growth and free space", "Not needed"}
    known = rows | titles | own | {"forecast with 80% interval", "all other components"}
    assert {label for each in section.plots for label, _ in each.legend} <= known
    if key in {"cost", "storage", "resync"}:
        assert any(rows.issuperset(names) for names in drawn)
