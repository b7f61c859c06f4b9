"""The whole report: its story first, what to do by dollars, the same words in four formats."""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from spark import tables
from spark.report import document as words
from spark.report import formats, plot, story
from spark.report.document import Action, Document
from spark.report.evidence import Evidence
from spark.report.formats import Format
from spark.rules.meters import Attribution, Component, Easy
from spark.transforms.grain import EasySaving
from tests.unit.spark import month


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
    return story.report_document(month.evidence())


def test_the_things_to_do_are_ranked_by_what_they_save(document: Document) -> None:
    saved = [action.usd_per_month for action in document.actions]
    assert [action.title for action in document.actions] == [
        "Replace 3 volumes with smaller ones",
        "Let consumers read from their own zone",
        "Delete 1 volume without a mount",
    ]
    # Twenty days' 402.10 are a month's 603.15.
    assert saved == [Decimal("764.16"), Decimal("603.15"), Decimal("80.00")]
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
    flow = month.a_flow("consume", "402.10", "402.10", certainty="at most")
    told = story.report_document(month.evidence(transfer=(flow,), storage=(), economics=()))
    text = re.sub(r"<[^>]+>", "", formats.write(told, kind))
    assert "actions save at most" in text
    # 402.10 dollars on the one day that was measured.
    for figure in re.finditer("144,756", text):
        assert re.search(r"at most\s*$", text[: figure.start()]), text[figure.start() - 60 :]


def test_what_is_not_known_to_be_kafkas_is_apart_and_never_first() -> None:
    stranger = month.a_line(
        component=Component.INSTANCES,
        attribution=Attribution.NOBODY,
        cluster=None,
        owner="unattributed",
        billed=Decimal(90_000),
        amortised=Decimal(90_000),
    )
    evidence = month.evidence()
    report = dataclasses.replace(evidence.report, lines=[*evidence.report.lines, stranger])
    easy = (EasySaving(Easy.EXTENDED_SUPPORT, is_kafkas=False, usd=Decimal(336)),)
    told = story.report_document(dataclasses.replace(evidence, report=report, easy=easy))
    assert told.title == "Kafka cost report, November 2026"
    assert told.total.text == "3,769.36"
    assert "The largest component is inter-AZ transfer" in told.story[3]
    assert "is not attributed to Kafka" in told.story[4]
    assert all("extended support" not in action.title for action in told.actions)
    assert "extended support" in " ".join(told.story)
    assert [section.key for section in told.sections][-1] == "others"


def test_where_nothing_of_kafkas_is_to_be_done_nothing_else_is_the_first_thing() -> None:
    easy = (EasySaving(Easy.EXTENDED_SUPPORT, is_kafkas=False, usd=Decimal(336)),)
    bare = month.evidence(easy=easy, storage=(), transfer=(), economics=(), anomalies=())
    told = story.report_document(bare)
    assert told.actions == ()
    assert "extended support" in " ".join(told.story)
    assert "actions save" not in " ".join(told.story)
    own = EasySaving(Easy.IDLE_IPV4, is_kafkas=True, usd=Decimal(4))
    both = story.report_document(dataclasses.replace(bare, easy=(own, *easy)))
    assert [action.is_kafkas for action in both.actions] == [True, False]
    # Of thirty days twenty are billed.
    assert "Kafka's actions save 72.00 USD a year." in both.story


def test_of_gp2_volumes_a_fifth_is_saved_at_most() -> None:
    easy = (EasySaving(Easy.GP2_VOLUMES, is_kafkas=True, usd=Decimal(100)),)
    told = story.report_document(month.evidence(easy=easy, storage=(), transfer=(), economics=()))
    assert (told.actions[0].usd_per_month, told.actions[0].at_most) == (Decimal(30), True)
    assert told.actions[0].why.endswith(
        "The saving is at most 20.0% of this amount. "
        "The figure assumes the same cost for the other days"
    )


def test_a_bill_that_gave_more_back_than_it_asked_for_has_no_shares() -> None:
    used = month.a_line(billed=Decimal(45), amortised=Decimal(45))
    given = month.a_line(component=Component.OTHER, billed=Decimal(-100), amortised=Decimal(-100))
    text = formats.write(
        story.report_document(Evidence(report=month.a_report(used, given))), Format.MD
    )
    assert "%" not in text.split("How:")[0].replace("20 %", "")
    assert words.change(Decimal(-5), Decimal(-10)) == words.DASH


def test_a_bill_without_any_kafka_says_so_and_asks_for_the_tag() -> None:
    stranger = {"attribution": Attribution.NOBODY, "cluster": None, "owner": "unattributed"}
    lines = month.a_line(component=Component.INSTANCES, billed=Decimal("17.16"), **stranger)
    tag = month.row(
        tables.TAGS_FOUND.schema, key="team", value="streaming", names_kafka=True,
        different_values=4, charges=7, billed_cost=Decimal("3.10"),
    )  # fmt: skip
    easy = (EasySaving(Easy.EXTENDED_SUPPORT, is_kafkas=False, usd=Decimal(336)),)
    told = story.report_document(Evidence(report=month.a_report(lines), tags=(tag,), easy=easy))
    text = formats.write(told, Format.MD)
    assert told.title == "AWS cost report, November 2026"
    assert "No charge has Kafka's tag" in told.story[1]
    assert "broker" not in text
    assert [action.title for action in told.actions] == [
        "Name Kafka's tag",
        "Look at extended support of EKS versions",
    ]
    assert "team=streaming" in text


def test_kafka_that_aws_runs_itself_is_named() -> None:
    stranger = {"attribution": Attribution.NOBODY, "cluster": None, "owner": "unattributed"}
    line = month.a_line(component=Component.MANAGED_KAFKA, billed=Decimal(4), **stranger)
    said = story.sentences(month.a_report(line))
    assert said[3] == "Amazon MSK costs 4.00 USD without a Kafka tag."


def test_local_disks_that_pay_only_in_place_are_advised_with_that_way_to_rotate() -> None:
    ebs, nvme, kept = month.evidence().economics
    rows = (month.a_design(chosen=False), nvme, Row(**{**kept.asDict(), "chosen": True}))
    told = story.report_document(month.evidence(economics=rows, storage=(), transfer=(), easy=()))
    (advised,) = [each for each in told.actions if "local disks" in each.title]
    assert "rotate start --in-place" in advised.how
    assert advised.evidence == "design-nvme-in-place"
    assert advised.usd_per_month == ebs.monthly_cost - kept.monthly_cost
    (section,) = [each for each in told.sections if each.key == "economics"]
    assert any(
        sentence.startswith("With rotations in place, ")
        and "394 USD a month less than gp3" in sentence
        for sentence in section.sentences
    )
    assert advised.evidence in {row.key for table in section.tables for row in table.rows}


def test_a_report_without_findings_does_not_invent_any() -> None:
    fits = month.a_volume(finding="fits", monthly_saving=Decimal(0), one_off_cost=Decimal(0))
    told = story.report_document(
        month.evidence(storage=(fits,), transfer=(), anomalies=(), economics=(), resync=())
    )
    assert told.actions == ()
    assert "No action saves 1 USD a month or more." in told.story
    for kind in Format:
        assert (formats.NO_ACTION in formats.write(told, kind)) != (kind is Format.JSON)


def test_what_cannot_be_judged_is_the_thing_to_do() -> None:
    blind = month.a_volume(finding="not measured", used_bytes=None, monthly_saving=Decimal(0))
    told = story.chosen_actions(month.evidence(storage=(blind,), transfer=(), economics=()))
    assert "Give the report samples of Prometheus" in {action.title for action in told}


@pytest.mark.parametrize(
    ("certainty", "sentence", "how"),
    [
        (
            "at most",
            "own zone save at most 402.10 USD. The brokers' counters",
            "every consumer without",
        ),
        (
            "shared",
            "own zone save 402.10 USD. The brokers do not allow such reads yet.",
            "replica.selector.class",
        ),
    ],
)
def test_how_well_the_saving_of_the_own_zone_is_known_is_said(
    certainty: str, sentence: str, how: str
) -> None:
    flow = month.a_flow("consume", "402.10", "402.10", certainty=certainty)
    told = story.report_document(month.evidence(transfer=(flow,)))
    section = told.section("transfer")
    assert section is not None
    assert sentence in " ".join(section.sentences)
    assert section.tables[0].rows[0].cells[-1].text == (
        "at most 402.10" if certainty == "at most" else "402.10"
    )
    (action,) = [each for each in told.actions if each.title.startswith("Let consumers")]
    assert how in action.how
    assert ("at most" in action.why) == (certainty == "at most")


def test_every_action_leads_to_a_row_that_is_there(document: Document) -> None:
    html = formats.write(document, Format.HTML)
    targets = re.findall(r'href="#([^"]+)"', html)
    assert len(targets) >= 10
    for target in targets:
        assert f'id="{target}"' in html
    assert len(re.findall(r'id="([^"]+)"', html.split("<svg")[0])) > 0


def test_an_id_is_never_written_with_a_capital(document: Document) -> None:
    html = formats.write(document, Format.HTML)
    assert "The rows are vol-" in html
    assert "Vol-" not in html


def test_the_open_month_is_provisional_everywhere(document: Document) -> None:
    for kind in Format:
        assert "Provisional" in formats.write(document, kind)
    closed = month.a_report(month.a_line(), today=date(2026, 12, 20))
    for kind in Format:
        assert "Provisional" not in formats.write(month.document_of(closed), kind)


def test_a_first_month_is_compared_with_nothing() -> None:
    only = [each for each in month.evidence().days if each.day.month == 11]
    told = story.report_document(month.evidence(all_days=only))
    assert told.total.against == ""
    assert "changes" in {section.key for section in told.sections}


def test_json_keeps_exact_values_and_no_drawings(document: Document) -> None:
    content = json.loads(formats.write(document, Format.JSON))
    assert Decimal(content["total"]["exact"]) == month.evidence().report.billed
    assert Decimal(content["total"]["kafka"]) == month.evidence().report.kafkas.billed
    assert f'title="{content["total"]["kafka"]}"' in formats.write(document, Format.HTML)
    assert all("plots" not in section for section in content["sections"])
    assert content["actions"][0]["usd_per_month"] == "764.16"


def test_a_message_for_slack_is_within_its_limits(document: Document) -> None:
    message = json.loads(formats.write(document, Format.SLACK))
    assert len(message["blocks"]) <= 50
    for block in message["blocks"]:
        if block["type"] == "section":
            assert len(block["text"]["text"]) <= 3000
    assert message["text"].startswith("Kafka cost report, November 2026: ")


def test_somebody_elses_words_stay_words_in_markdown_and_in_a_message() -> None:
    attack = "|*<https://evil.example|click>*`"
    told = story.report_document(month.evidence(anomalies=(month.an_anomaly(reason=attack),)))
    text = formats.write(told, Format.MD)
    assert "\\|\\*\\<https" in text
    for line in (line for line in text.splitlines() if line.startswith("| ")):
        assert line.count(" | ") <= 12
    only = month.evidence(
        anomalies=(month.an_anomaly(reason=attack),), storage=(), transfer=(), economics=()
    )
    assert "<https" not in formats.write(story.report_document(only), Format.SLACK)


def test_a_tag_moves_no_cursor_and_turns_no_line_around() -> None:
    line = month.a_line(cluster="har\x1b[2Jbour\u202e\r\n# evil", owner="broker\x07")
    told = story.report_document(Evidence(report=month.a_report(line)))
    for kind in Format:
        text = formats.write(told, kind)
        assert not re.search("[\x1b\x07\r\u202e]", text), kind
    assert "cluster har [2Jbour   # evil" in told.story[1]


def test_nothing_of_the_inputs_can_run_in_the_page(drawn: None) -> None:
    attack = "</td><script>alert(1)</script>"
    told = story.report_document(
        month.evidence(
            storage=(month.a_volume(resource_id=attack, owner=attack, reason=attack),),
            anomalies=(month.an_anomaly(reason=attack, component=attack),),
            resync=(month.a_rotation(incident=attack, kind=attack),),
        )
    )
    html = formats.write(told, Format.HTML)
    assert "<script>alert" not in html
    assert html.count("<script>") == 1


@pytest.mark.parametrize(
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
