"""Every page that is written for people, in a real browser, on a desk, a phone and on paper.

It opens without a complaint, fits, and can be read in light and in dark: contrast is WCAG's AA
(tests.contrast). The desk's and the site's pages are held where they are served
(tests/integration/aws/test_desk.py, tests/integration/test_site.py).
"""

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.fleet.command import FleetReading
from cli.fleet.command import page as fleet_page
from cli.main import app
from cli.rotate import plan_page
from cli.survey import page as survey_page
from cli.survey.command import Survey
from core.checks.finding import Finding, Weight
from core.fleet import decide
from core.health.verdict import unhealthy
from local.demo import story, timeline
from spark.report import formats
from spark.report import story as report_story
from tests import browser, printing
from tests.contrast import too_faint
from tests.printing import open_tab
from tests.tabs import SIZES, WIDER_THAN_THE_SCREEN, evaluate, prepare, unhappy
from tests.unit.core.test_fleet import ALL_BEHIND, BAKED, FLEET, NOW, RUNS
from tests.unit.spark import month
from tests.unit.spark.test_report import contrast

CHROMIUM = browser.find()
TURN = {"node_id": 10, "role": "broker", "zone": "us-east-1a", "seconds": 280.0, "batch": 0}
PLAN = {"nodes": [TURN], "seconds": 280.0, "interval_seconds": None, "notes": ["Note."]}
FOUND = [
    Finding(
        f"check-{number}",
        weight,
        "Auto Scaling group eks-kafka-20260801093112345600000001",
        "hook hold ends with CONTINUE and the group keeps nothing: a drain that takes longer than "
        "the hook ends the instance with its <broker> on it",
        "set the default result to ABANDON",
    )
    for number, weight in enumerate(Weight)
]
SURVEYED = Survey(
    "arn:aws:eks:eu-north-1:111122223333:cluster/shop", ("Kafka shop-kafka/orders",), FOUND
)
RESULT: dict[str, Any] = {
    "pulumi": {"version": "3.220.0", "created": 180, "changed_on_second_up": 0},
    "nth": {"version": "1.25.1", "forwarded_at_s": 5.1, "drained_at_s": 8.9},
    "replacement_ready_at_s": 3.8,
    "broker_back_in_isr_at_s": 18.2,
    "instance_terminated_at_s": 32.7,
    "acked": 5630,
    "lost": 0,
    "client_errors": 0,
    "latency_ms": {
        "steady": {"p50": 3.0, "p99": 21.0, "max": 60.0},
        "rotation": {"p50": 3.1, "p99": 90.0, "max": 468.0},
    },
    "cost": {"bill_total": "0.0177615505", "report_total": "0.0177615505"},
    "wall_s": 160.0,
}
STORY = story.Story(
    moments=(
        story.Moment(0.1, "aws", "Hook `drain` holds i-1: EventBridge announces it"),
        story.Moment(5.1, story.DECISIONS, "draining: node 10 may leave <now>"),
    ),
    spans=(story.Span("incident", 0.1, 5.1, "replacing"), story.Span("old node", 0, 34, "node")),
    latency=tuple((n / 10, 3.0 + n % 7) for n in range(-50, 400)),
    isr=((-5.0, 3), (7.0, 2), (18.2, 3)),
)
ILL = replace(ALL_BEHIND["log"], health=unhealthy("Partition <b>-0</b> has no leader."))
FACTS = {**ALL_BEHIND, "stage": BAKED, "shop": RUNS, "log": ILL}
# What a reader finds on a page, whatever its scripts did to it.
SAID = {
    "report": "Kafka",
    "survey": "Not safely",
    "rotation": "us-east-1a",
    "timeline": "draining: node 10 may leave <now>",
}
FIGURES = "document.querySelectorAll('td:not(.text)').length"
ASTRAY = """[...document.querySelectorAll("td:not(.text)")].filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell.firstChild);
  const lines = range.getClientRects();
  return lines.length > 1
    || (lines.length && Math.abs(lines[0].right - cell.getBoundingClientRect().right) > 1);
}).map((cell) => `${cell.dataset.label}: ${cell.textContent}`)"""
MEASURE = """<script>
  document.body.append(`wide: ${document.documentElement.scrollWidth - innerWidth}`);
</script></body>"""
# What a page is made of in print: how far it reaches, its paper, its links and its legend.
IN_PRINT = """(() => {
  const style = (what, pseudo) => getComputedStyle(document.querySelector(what), pseudo);
  const shown = (what) => [...document.querySelectorAll(what)].filter((one) => one.offsetHeight);
  return {
    reaches: Math.max(...[...document.querySelectorAll("body *")]
      .map((one) => one.getBoundingClientRect().right)),
    paper: style("body").backgroundColor,
    ink: style("td").color,
    link: style("a").color,
    legend: style(".key", "::before").printColorAdjust,
    onScreen: shown("nav, .on-screen").length,
    foot: style("tfoot").display,
  };
})()"""
PRINTED_PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    report = report_story.report_document(month.evidence())
    written = {
        "report": formats.write(report, formats.Format.HTML),
        "survey": survey_page.render(SURVEYED, 1_790_000_000.0),
        "rotation": plan_page(PLAN),
    }
    for name, html in written.items():
        (folder / f"{name}.html").write_text(html)
    timeline.write_page(folder / "timeline.html", STORY, RESULT, ["Lost."])
    return {path.stem: path for path in folder.glob("*.html")}


@browser.needed
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_page_opens_without_a_complaint_every_word_stands_out_and_nothing_sticks_out(
    pages: dict[str, Path], size: str, dark: bool
) -> None:
    assert CHROMIUM is not None
    faint, wide, complaints = {}, {}, {}
    with open_tab(CHROMIUM) as tab:
        prepare(tab, size=size, dark=dark)
        for name, path in pages.items():
            tab.events.clear()
            tab.ask("Page.navigate", url=path.resolve().as_uri())
            tab.wait_for("Page.loadEventFired")
            assert SAID[name] in evaluate(tab, "document.body.textContent")
            if found := too_faint(tab):
                faint[name] = found
            if (more := evaluate(tab, WIDER_THAN_THE_SCREEN)) > 0:
                wide[name] = more
            picture = tab.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
            # An empty page compresses to a few kilobytes.
            assert len(base64.b64decode(picture)) > 10_000, name
            if said := unhappy(tab):
                complaints[name] = said
    assert (faint, wide, complaints) == ({}, {}, {})


@browser.needed
def test_what_is_too_faint_is_named_with_its_contrast(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    page = tmp_path / "page.html"
    page.write_text(
        "<body style='background:#fff'><p style='color:#999'>faint</p><h1 style='color:#949494'>"
        "large</h1><p style='color:#000;opacity:.3'>thin</p>"
        "<p style='opacity:0'>not there yet</p><p style='color:#222'>clear</p>"
    )
    with open_tab(CHROMIUM) as tab:
        prepare(tab)
        tab.ask("Page.navigate", url=page.resolve().as_uri())
        tab.wait_for("Page.loadEventFired")
        assert [each.rpartition(": ")[2] for each in too_faint(tab)] == ["faint", "thin"]


@browser.needed
def test_on_a_phone_a_figure_stands_in_one_line_at_the_right_edge_of_its_card(
    pages: dict[str, Path],
) -> None:
    assert CHROMIUM is not None
    with open_tab(CHROMIUM) as tab:
        prepare(tab, size="phone")
        tab.ask("Page.navigate", url=pages["report"].resolve().as_uri())
        tab.wait_for("Page.loadEventFired")
        assert evaluate(tab, FIGURES) > 100
        assert evaluate(tab, ASTRAY) == []


@browser.needed
def test_on_paper_nothing_is_cut_off_and_nothing_is_dark(pages: dict[str, Path]) -> None:
    assert CHROMIUM is not None
    made = printing.print_page(CHROMIUM, pages["report"], IN_PRINT, dark=True)
    width, _ = printing.PAPER_PX
    # What is wider than the paper is cut off, or makes a browser print everything smaller.
    assert made.found["reaches"] <= width + 1
    assert made.found["paper"] == "rgb(255, 255, 255)"
    for name, least in (("ink", 15), ("link", 4.5)):
        rgb = map(int, re.findall(r"\d+", made.found[name])[:3])
        assert contrast("#{:02x}{:02x}{:02x}".format(*rgb), "#ffffff") > least
    assert made.found["legend"] == "exact"
    assert made.found["onScreen"] == 0
    assert made.found["foot"] == "table-row-group"
    assert made.pdf.startswith(b"%PDF")
    assert 4 <= len(PRINTED_PAGE.findall(made.pdf)) <= 12
    assert len(made.picture) > 60_000


@browser.needed
@pytest.mark.parametrize("size", [browser.DESKTOP, browser.PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", ["estimate", "fleet"])
def test_a_page_of_several_regions_or_clusters_opens_quietly_and_is_drawn(
    tmp_path: Path, name: str, size: tuple[int, int]
) -> None:
    assert CHROMIUM is not None
    path = tmp_path / f"{name}.html"
    if name == "estimate":
        asked = ["estimate", "example", "--compare", "eu-west-1", "--html", str(path)]
        assert CliRunner().invoke(app, asked).exit_code == 0
        path.write_text(path.read_text().replace("</body>", MEASURE))
    else:
        path.write_text(fleet_page(FleetReading(FLEET, FACTS, decide(FLEET, FACTS, NOW), NOW, 3.2)))
    seen = browser.look(CHROMIUM, path)
    assert seen.console == ()
    if name == "estimate":
        assert seen.dom.count('<i style="width:') == 2 * 10
        assert "wide: 0" in seen.dom
    else:
        assert seen.dom.count("<tr") == 1 + len(FACTS)
        assert "&lt;b&gt;-0&lt;/b&gt;" in seen.dom
    picture = browser.photograph(CHROMIUM, path, tmp_path / "page.png", size=size)
    assert picture.stat().st_size > 20_000


def test_what_did_not_hold_is_the_first_thing_on_the_page(pages: dict[str, Path]) -> None:
    body = pages["timeline"].read_text()
    assert '<p class="verdict bad">Lost.</p>' in body
    assert "The drain waited for the replacement" not in body
