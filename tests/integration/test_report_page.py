"""The report's page in a real browser: on a desk, in the dark, on a phone, on paper."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from spark.report import formats, story
from tests import browser, printing
from tests.printing import open_tab
from tests.tabs import evaluate, prepare
from tests.unit.spark import month
from tests.unit.spark.test_report import contrast

CHROMIUM = browser.find()
MEASURE = """<script>
  document.body.append(`wide: ${document.documentElement.scrollWidth - innerWidth}`);
</script></body>"""

FIGURES = "document.querySelectorAll('td:not(.text)').length"
ASTRAY = """[...document.querySelectorAll("td:not(.text)")].filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell.firstChild);
  const lines = range.getClientRects();
  return lines.length > 1
    || (lines.length && Math.abs(lines[0].right - cell.getBoundingClientRect().right) > 1);
}).map((cell) => `${cell.dataset.label}: ${cell.textContent}`)"""

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
PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "index.html"
    html = formats.write(story.report_document(month.evidence()), formats.Format.HTML)
    path.write_text(html.replace("</body>", MEASURE))
    return path


@browser.needed
@pytest.mark.parametrize(
    ("size", "dark"),
    [(browser.DESKTOP, False), (browser.DESKTOP, True), (browser.PHONE, False)],
    ids=["desktop", "dark", "phone"],
)
def test_the_page_is_drawn(page: Path, tmp_path: Path, size: tuple[int, int], dark: bool) -> None:
    assert CHROMIUM is not None
    picture = browser.photograph(CHROMIUM, page, tmp_path / "page.png", size=size, dark=dark)
    # An empty page of this size compresses to a few kilobytes.
    assert picture.stat().st_size > 60_000


@browser.needed
def test_the_page_opens_without_a_complaint_and_nothing_sticks_out(page: Path) -> None:
    assert CHROMIUM is not None
    seen = browser.look(CHROMIUM, page)
    assert seen.console == ()
    assert re.search(r"wide: (-\d+|0)\b", seen.dom)


@browser.needed
def test_on_a_phone_a_figure_stands_in_one_line_at_the_right_edge_of_its_card(page: Path) -> None:
    assert CHROMIUM is not None
    with open_tab(CHROMIUM) as tab:
        prepare(tab, size="phone")
        tab.ask("Page.navigate", url=page.resolve().as_uri())
        tab.wait_for("Page.loadEventFired")
        assert evaluate(tab, FIGURES) > 100
        assert evaluate(tab, ASTRAY) == []


@browser.needed
def test_on_paper_nothing_is_cut_off_and_nothing_is_dark(page: Path) -> None:
    assert CHROMIUM is not None
    made = printing.print_page(CHROMIUM, page, IN_PRINT, dark=True)
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
    assert 4 <= len(PAGE.findall(made.pdf)) <= 12
    assert len(made.picture) > 60_000


@browser.needed
@pytest.mark.parametrize("size", [browser.DESKTOP, browser.PHONE], ids=["desk", "phone"])
def test_an_estimate_of_two_regions_has_a_bar_for_each_component(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    assert CHROMIUM is not None
    path = tmp_path / "estimate.html"
    asked = ["estimate", "example", "--compare", "eu-west-1", "--html", str(path)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    path.write_text(path.read_text().replace("</body>", MEASURE))
    seen = browser.look(CHROMIUM, path)
    assert seen.console == ()
    assert seen.dom.count('<i style="width:') == 2 * 10
    assert "wide: 0" in seen.dom
    assert (
        browser.photograph(CHROMIUM, path, tmp_path / "page.png", size=size).stat().st_size > 20_000
    )
