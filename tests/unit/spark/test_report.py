"""The report: a story first, what to do by dollars, exact sums, the same words in four formats."""

import dataclasses
import html
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from spark import tables
from spark.report import document as words
from spark.report import formats, plot, story
from spark.report.document import MINUS, TEXTS, Action, Document, Section
from spark.report.evidence import Evidence, Report
from spark.report.formats import Format
from spark.report.plot import COLOURS, drawing
from spark.report.sections import bill
from spark.rules.meters import Attribution, Component, Easy
from spark.transforms.grain import EasySaving
from tests.every_case import every_case
from tests.unit.spark import month
from tests.unit.spark.month import NOTHING, a_line, a_report, document_of, monthless, nobodys

EXTENDED = EasySaving(Easy.EXTENDED_SUPPORT, is_kafkas=False, usd=Decimal(336))
CONSUMED = month.a_flow("consume", "402.10", "402.10", certainty="at most")
BLIND = month.a_volume(finding="not measured", used_bytes=None, monthly_saving=Decimal(0))
FITS = month.a_volume(finding="fits", monthly_saving=Decimal(0), one_off_cost=Decimal(0))


@pytest.fixture
def drawn() -> None:
    """Asked for by who looks at the drawings, too."""


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the drawings empty: they are most of a story's time, and few look at them."""
    for kind in () if "drawn" in request.fixturenames else ("band", "bars", "days", "lines"):
        monkeypatch.setattr(plot, kind, lambda *_, **__: "<svg></svg>")


@pytest.fixture(scope="module")
def document() -> Document:
    return told()


def told(**changes: Any) -> Document:
    """Return the report of the month, of which some is changed."""
    return story.report_document(month.evidence(**changes))


def section_of(document: Document, key: str) -> Section:
    found = document.section(key)
    assert found is not None
    return found


# --- Its sums.


@given(
    st.lists(
        st.builds(
            lambda component, attribution, billed: a_line(
                billed, component=component, attribution=attribution
            ),
            st.sampled_from(Component),
            st.sampled_from(Attribution),
            st.decimals(min_value=-1000, max_value=1000, places=11),
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


def test_components_stand_in_one_order_and_owners_by_size_with_the_node_of_their_volumes() -> None:
    report = a_report(
        a_line(1, component=Component.OTHER, owner="broker-b"),
        a_line(2, component=Component.GP3_STORAGE, owner="broker-c", node_id=10),
        a_line(3),
    )
    assert [s.name for s in report.components()] == ["broker compute", "gp3 storage", "other"]
    found = [(s.name, s.detail) for s in report.owners()]
    assert [name[-1] for name, _ in found] == ["a", "c", "b"]
    assert found[1] == ("harbour / broker-c", "node 10 in us-east-1a")


# --- Its story.

UNREAD = {"rows": 2, "bad_rows": 1, "rows_without_cost": 1}
# What a bill holds, and sentences that stand in its story one after the other.
SENTENCES: Mapping[str, tuple[Report, list[str]]] = {
    "what it cost on what and whose it is": (
        a_report(a_line(), nobodys(Component.OTHER, billed="2.00")),
        [
            "The bill of 2026-11 is 12.10 USD.",
            "Kafka costs 10.10 USD (cluster harbour).",
            "Node pools cost 10.10 USD; charges of a whole cluster cost 0 USD.",
            "The largest component is broker compute with 10.10 USD (100.0% of Kafka's cost).",
            (
                "2.00 USD is not attributed to Kafka: "
                "no tag stillwater:cluster, claim or known resource."
            ),
            "Kafka's amortised cost, with savings plans and reservations, is 8.08 USD.",
        ],
    ),
    "rows that could not be read": (
        a_report(a_line(), **UNREAD),
        ["1 row is unreadable.", "The cost of 1 row is unknown and in no total."],
    ),
    "a row of no month": (
        a_report(a_line(), monthless=monthless(1, 1, "0")),
        [
            "1 row of the bill names no readable month and is in no total.",
            "Its cost is unknown.",
        ],
    ),
    "rows of no month": (
        a_report(a_line(), monthless=monthless(3, 0, "-4.5")),
        [
            "3 rows of the bill name no readable month and are in no total.",
            f"Their cost is {MINUS}4.50 USD.",
        ],
    ),
    "what has no name is larger than what is called the largest": (
        a_report(a_line(), a_line(30, component=Component.OTHER)),
        [
            "The largest named component is broker compute with 10.10 USD (25.2% of Kafka's cost).",
            (
                "The component other (system nodes, taxes, fees and unknown meters) is larger: "
                "30.00 USD."
            ),
        ],
    ),
    "nothing has a name": (
        a_report(a_line(30, component=Component.OTHER)),
        [
            (
                "All of Kafka's cost is in the component other "
                "(system nodes, taxes, fees and unknown meters)."
            )
        ],
    ),
    "Kafka that AWS runs itself": (
        a_report(nobodys(Component.MANAGED_KAFKA, billed=4)),
        ["Amazon MSK costs 4.00 USD without a Kafka tag."],
    ),
}  # fmt: skip


@every_case(("report", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_the_story_says(report: Report, expected: list[str]) -> None:
    found = story.sentences(report)
    place = found.index(expected[0])
    assert found[place : place + len(expected)] == expected
    if report.monthless:
        # Beside rows of any month no total is called whole.
        assert found[0].endswith("in its readable rows.")
        whole = bill.cost_section(report).sentences[0]
        assert "rows of the month" in whole
        assert "the total of the readable rows exactly" in whole


def test_a_name_longer_than_any_of_awss_drowns_nothing_around_it() -> None:
    key_and_value = f"{'k' * 128}={'v' * 256}"
    for name, is_cut in ((key_and_value, False), ("x" * 100_000, True)):
        said = " ".join(document_of(a_line(cluster=name)).story)
        assert (name not in said) is is_cut
        assert len(said) < 2000


def test_what_is_not_known_to_be_kafkas_is_apart_and_never_first() -> None:
    report = month.evidence().report
    stranger = nobodys(Component.INSTANCES, billed=90_000, amortised=90_000)
    lines = dataclasses.replace(report, lines=[*report.lines, stranger])
    made = told(report=lines, easy=(EXTENDED,))
    assert (made.title, made.total.text) == ("Kafka cost report, November 2026", "3,769.36")
    assert "The largest component is inter-AZ transfer" in made.story[3]
    assert "is not attributed to Kafka" in made.story[4]
    assert all("extended support" not in action.title for action in made.actions)
    assert "extended support" in " ".join(made.story)
    assert made.sections[-1].key == "others"


def test_a_bill_without_any_kafka_says_so_and_asks_for_the_tag() -> None:
    tag = month.row(
        tables.TAGS_FOUND.schema, key="team", value="streaming", names_kafka=True,
        different_values=4, charges=7, billed_cost=Decimal("3.10"),
    )  # fmt: skip
    report = a_report(nobodys(Component.INSTANCES, billed="17.16"))
    made = story.report_document(Evidence(report=report, tags=(tag,), easy=(EXTENDED,)))
    text = formats.write(made, Format.MD)
    assert made.title == "AWS cost report, November 2026"
    assert "No charge has Kafka's tag" in made.story[1]
    assert [action.title for action in made.actions] == [
        "Name Kafka's tag",
        "Look at extended support of EKS versions",
    ]
    assert "broker" not in text
    assert "team=streaming" in text


def test_a_bill_that_gave_more_back_than_it_asked_for_has_no_shares() -> None:
    given_back = a_line(-100, -100, component=Component.OTHER)
    text = formats.write(document_of(a_line(45, 45), given_back), Format.MD)
    assert "%" not in text.split("How:")[0].replace("20 %", "")
    assert words.change(Decimal(-5), Decimal(-10)) == words.DASH


# --- What to do.


def test_the_things_to_do_are_ranked_by_what_they_save(document: Document) -> None:
    assert [(action.title, action.usd_per_month) for action in document.actions] == [
        ("Replace 3 volumes with smaller ones", Decimal("764.16")),
        # Twenty days' 402.10 are a month's 603.15.
        ("Let consumers read from their own zone", Decimal("603.15")),
        ("Delete 1 volume without a mount", Decimal("80.00")),
    ]
    together = story.saving(document.actions)
    assert (together.usd, together.at_most) == (Decimal("1447.31"), True)
    assert "save at most 17,368 USD a year" in " ".join(document.story)


def test_ways_that_exclude_each_other_are_not_added_up() -> None:
    def way(usd: int, name: str = "", *, at_most: bool = False) -> Action:
        return Action("a", "b", "c", "d", Decimal(usd), at_most, name)

    volumes = [way(300, story.VOLUMES), way(50, story.VOLUMES)]
    both = story.saving([*volumes, way(303, story.LOCAL_DISKS, at_most=True), way(7)])
    assert (both.usd, both.at_most, both.excluded) == (Decimal(357), False, True)
    disks = story.saving([*volumes, way(400, story.LOCAL_DISKS, at_most=True), way(7)])
    assert (disks.usd, disks.at_most) == (Decimal(407), True)


@pytest.mark.parametrize("kind", Format)
def test_at_most_stays_at_most_wherever_a_saving_is_said(kind: Format) -> None:
    made = told(transfer=(CONSUMED,), storage=(), economics=())
    text = re.sub(r"<[^>]+>", "", formats.write(made, kind))
    assert "actions save at most" in text
    # 402.10 dollars on the one day that was measured.
    for figure in re.finditer("144,756", text):
        assert re.search(r"at most\s*$", text[: figure.start()]), text[figure.start() - 60 :]


def test_where_nothing_of_kafkas_is_to_be_done_nothing_else_is_the_first_thing() -> None:
    made = told(**NOTHING, easy=(EXTENDED,))
    assert made.actions == ()
    assert "extended support" in " ".join(made.story)
    assert "actions save" not in " ".join(made.story)
    own = EasySaving(Easy.IDLE_IPV4, is_kafkas=True, usd=Decimal(4))
    both = told(**NOTHING, easy=(own, EXTENDED))
    assert [action.is_kafkas for action in both.actions] == [True, False]
    # Of thirty days twenty are billed.
    assert "Kafka's actions save 72.00 USD a year." in both.story


def test_of_gp2_volumes_a_fifth_is_saved_at_most() -> None:
    easy = (EasySaving(Easy.GP2_VOLUMES, is_kafkas=True, usd=Decimal(100)),)
    first = told(**{**NOTHING, "anomalies": (month.an_anomaly(),)}, easy=easy).actions[0]
    assert (first.usd_per_month, first.at_most) == (Decimal(30), True)
    assert first.why.endswith(
        "The saving is at most 20.0% of this amount. "
        "The figure assumes the same cost for the other days"
    )


def test_local_disks_that_pay_only_in_place_are_advised_with_that_way_to_rotate() -> None:
    ebs, nvme, kept = month.DESIGNS
    designs = (month.a_design(), nvme, Row(**{**kept.asDict(), "chosen": True}))
    made = told(economics=designs, storage=(), transfer=(), easy=())
    (advised,) = [each for each in made.actions if "local disks" in each.title]
    assert "rotate start --in-place" in advised.how
    assert advised.evidence == "design-nvme-in-place"
    assert advised.usd_per_month == ebs.monthly_cost - kept.monthly_cost
    section = section_of(made, "economics")
    said = "With rotations in place, 3 i8g.2xlarge cost 394 USD a month less than gp3."
    assert said in section.sentences
    assert advised.evidence in {row.key for table in section.tables for row in table.rows}


def test_a_report_without_findings_does_not_invent_any() -> None:
    made = told(**{**NOTHING, "storage": (FITS,)}, resync=())
    assert made.actions == ()
    assert "No action saves 1 USD a month or more." in made.story
    for kind in Format:
        assert (formats.NO_ACTION in formats.write(made, kind)) != (kind is Format.JSON)


def test_what_cannot_be_judged_is_the_thing_to_do() -> None:
    actions = story.chosen_actions(month.evidence(storage=(BLIND,), transfer=(), economics=()))
    assert "Give the report samples of Prometheus" in {action.title for action in actions}


@every_case(
    ("certainty", "sentence", "cell", "how"),
    [
        ("at most", "own zone save at most 402.10 USD. The brokers' counters",
         "at most 402.10", "every consumer without"),
        ("shared", "own zone save 402.10 USD. The brokers do not allow such reads yet.",
         "402.10", "replica.selector.class"),
    ],
)  # fmt: skip
def test_how_well_the_saving_of_the_own_zone_is_known_is_said(
    certainty: str, sentence: str, cell: str, how: str
) -> None:
    flow = month.a_flow("consume", "402.10", "402.10", certainty=certainty)
    made = told(transfer=(flow,))
    section = section_of(made, "transfer")
    assert sentence in " ".join(section.sentences)
    assert section.tables[0].rows[0].cells[-1].text == cell
    (action,) = [each for each in made.actions if each.title.startswith("Let consumers")]
    assert how in action.how
    assert ("at most" in action.why) == (certainty == "at most")


# --- Its formats and its page.


def test_every_action_leads_to_a_row_that_is_there(document: Document) -> None:
    page = formats.write(document, Format.HTML)
    targets = re.findall(r'href="#([^"]+)"', page)
    assert len(targets) >= 10
    assert [target for target in targets if f'id="{target}"' not in page] == []
    # An id is never written with a capital, at a sentence's beginning neither.
    assert "The rows are vol-" in page
    assert "Vol-" not in page


def test_the_open_month_is_provisional_everywhere(document: Document) -> None:
    closed = document_of(a_line(), today=date(2026, 12, 20))
    for kind in Format:
        assert "Provisional" in formats.write(document, kind)
        assert "Provisional" not in formats.write(closed, kind)


def test_json_keeps_exact_values_and_no_drawings(document: Document) -> None:
    content = json.loads(formats.write(document, Format.JSON))
    report = month.evidence().report
    assert Decimal(content["total"]["exact"]) == report.billed
    assert Decimal(content["total"]["kafka"]) == report.kafkas.billed
    assert f'title="{content["total"]["kafka"]}"' in formats.write(document, Format.HTML)
    assert all("plots" not in section for section in content["sections"])
    assert content["actions"][0]["usd_per_month"] == "764.16"


def test_a_message_for_slack_is_within_its_limits(document: Document) -> None:
    message = json.loads(formats.write(document, Format.SLACK))
    assert len(message["blocks"]) <= 50
    texts = [b["text"]["text"] for b in message["blocks"] if b["type"] == "section"]
    assert max(map(len, texts)) <= 3000
    assert message["text"].startswith("Kafka cost report, November 2026: ")


def test_somebody_elses_words_stay_words_in_markdown_and_in_a_message() -> None:
    odd = {"anomalies": (month.an_anomaly(reason="|*<https://evil.example|click>*`"),)}
    text = formats.write(told(**odd), Format.MD)
    assert "\\|\\*\\<https" in text
    assert all(row.count(" | ") <= 12 for row in text.splitlines() if row.startswith("| "))
    assert "<https" not in formats.write(told(**{**NOTHING, **odd}), Format.SLACK)


def test_a_tag_moves_no_cursor_and_turns_no_line_around() -> None:
    made = document_of(a_line(cluster="har\x1b[2Jbour\u202e\r\n# evil", owner="broker\x07"))
    for kind in Format:
        assert not re.search("[\x1b\x07\r\u202e]", formats.write(made, kind)), kind
    assert "cluster har [2Jbour   # evil" in made.story[1]


def test_nothing_of_the_inputs_can_run_in_the_page(drawn: None) -> None:
    attack = "</td><script>alert(1)</script>"
    made = told(
        storage=(month.a_volume(resource_id=attack, owner=attack, reason=attack),),
        anomalies=(month.an_anomaly(reason=attack, component=attack),),
        resync=(month.a_rotation(incident=attack, kind=attack),),
    )
    page = formats.write(made, Format.HTML)
    assert "<script>alert" not in page
    assert page.count("<script>") == 1


def test_a_row_that_could_not_be_read_is_on_the_page() -> None:
    reason = "BilledCost 'abc' is not a number"
    bad = month.row(tables.QUARANTINE.schema, reason=reason, line="abc, 2026-11-01")
    page = formats.as_html(document_of(a_line(), **UNREAD, bad=(bad,)))
    assert "BilledCost &#39;abc&#39; is not a number" in page
    assert "unknown" in page


def test_the_page_needs_nothing_from_elsewhere_and_is_the_same_each_time(drawn: None) -> None:
    page = formats.as_html(document_of(a_line(), simulated=True))
    assert "Simulated" in page
    assert "src=" not in page
    assert "<link" not in page.replace('<link rel="icon" href="data:,">', "")
    plain = formats.as_html(document_of(a_line()))
    assert "Simulated" not in plain
    assert plain == formats.as_html(document_of(a_line()))


def test_the_plot_takes_its_colours_from_the_page(drawn: None) -> None:
    assert "fill: var(--c1)" in formats.as_html(document_of(a_line(), nobodys()))
    page = formats.as_html(document_of(nobodys()))
    assert "fill: var(--rest)" in page
    assert "#0102" not in page


def test_the_page_opens_with_month_sum_change_actions_and_contents(document: Document) -> None:
    page = re.sub(r"(?s)<style>.*?</style>|<svg.*?</svg>", "", formats.as_html(document))
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.split("<body>")[1])))
    opening = [
        *("Kafka cost report, November 2026", "3,769.36 USD", document.total.against, "Actions"),
        *("9,170 USD a year", "at most 7,238 USD a year", "960 USD a year", "Contents"),
        *(section.title for section in document.sections),
    ]
    places = [text.find(part) for part in opening]
    assert -1 not in places
    assert places == sorted(places)
    assert re.match(r"\+\d+\.\d\d USD \(\+\d+\.\d%\) to last month", document.total.against)
    for section in document.sections:
        assert f'<a href="#{section.key}">{section.title}</a>' in html.unescape(page)


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


@every_case("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_of_a_chart_stands_out_from_its_card(scheme: str) -> None:
    named = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", scheme))
    assert [n for n in COLOURS if contrast(named[n], named["--card"]) < LEAST] == []


def test_a_dollar_in_an_owners_name_is_no_formula() -> None:
    # Read as a formula, the first would end the report, and the second lose its dollars.
    for owner in (r"team $\frac{", "$pay$"):
        with drawing("costs", 1.0) as made:
            made.axes.text(0, 0, owner)
        assert owner.replace("<", "&lt;") in made.svg


# --- Its words: sentences are short, name their actor, and call a thing by one name.


@every_case(
    ("seconds", "said"),
    [
        (None, "\N{EN DASH}"),
        (4.2, "4.2 s"),
        (61, "61 s"),
        (358.4, "5 min 58 s"),
        (3599.9, "60 min"),
        (45_720, "12.7 h"),
        (400_000, "4.6 days"),
    ],
)
def test_times_are_read_in_the_unit_a_person_would_use(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


@given(st.floats(0, 1e18))
def test_sizes_keep_their_order_of_magnitude(size: float) -> None:
    number, unit = words.size(size).split(" ")
    scale = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)
    assert float(number.replace(",", "")) * scale == pytest.approx(size, rel=0.06, abs=0.6)


MOST_WORDS = 25
NO_ACTOR = re.compile(r"(?i)\b(nobody|somebody|everybody|anybody|whoever|whom)\b")
NO_SUBJECT = re.compile(r"^(What|Who|Whose|Whoever|Whatever|Of what)\b")
EASY = tuple(EasySaving(e, is_kafkas=k, usd=Decimal(336)) for e in Easy for k in (True, False))
MANAGED = nobodys(Component.MANAGED_KAFKA)
MIXED = a_report(
    a_line(30, component=Component.OTHER),
    a_line(),
    MANAGED,
    monthless=monthless(3, 1, "4"),
    **UNREAD,
)
EVIDENCE = {
    "a month": month.evidence(),
    "easy savings": month.evidence(easy=EASY, storage=(), transfer=(), economics=()),
    "nothing to do": month.evidence(**{**NOTHING, "storage": (FITS,)}, nodes=(), resync=()),
    "no samples": month.evidence(**{**NOTHING, "storage": (BLIND,)}, nodes=()),
    "known flows": month.evidence(transfer=(month.a_flow("consume", "402.10", "402.10"),)),
    "no tag": Evidence(report=a_report(MANAGED)),
    "unreadable rows": Evidence(report=MIXED),
}


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


@every_case("evidence", EVIDENCE.values(), ids=EVIDENCE)
def test_no_sentence_of_a_report_breaks_the_rules_of_prose(evidence: Evidence) -> None:
    broken = [
        sentence
        for sentence in sentences(story.report_document(evidence))
        if len(re.findall(r"\b\w[\w,.'-]*", sentence)) > MOST_WORDS
        or NO_ACTOR.search(sentence)
        or NO_SUBJECT.search(sentence)
    ]
    assert broken == []


def test_a_charts_words_are_its_tables_words(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn_names: list[list[str]] = []

    def remember(_label: str, names: list[str], *_rest: object) -> str:
        drawn_names.append([f"{name}".rstrip("\N{ZERO WIDTH SPACE}") for name in names])
        return "<svg></svg>"

    monkeypatch.setattr(plot, "bars", remember)
    made = told()
    own = {"node pools", "whole cluster", "Needed for growth and free space", "Not needed"}
    for key in ("cost", "changes", "storage", "resync", "economics", "unit"):
        section = section_of(made, key)
        rows = {row.cells[0].text for table in section.tables for row in table.rows}
        titles = {column.title for table in section.tables for column in table.columns}
        known = rows | titles | own | {"forecast with 80% interval", "all other components"}
        assert {label for each in section.plots for label, _ in each.legend} <= known, key
        if key in {"cost", "storage", "resync"}:
            assert any(rows.issuperset(names) for names in drawn_names), key
