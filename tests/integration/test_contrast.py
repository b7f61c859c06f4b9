"""Every page that is written for people can be read, in light and dark, on a desk and on a phone.

Contrast is WCAG's AA, measured in a real browser (tests.contrast); the desk's and the site's are
held where they are served (tests/integration/aws/test_desk.py, tests/integration/test_site.py).
"""

from pathlib import Path

import pytest

from cli.rotate import plan_page
from cli.survey import page as survey_page
from local.demo import timeline
from spark.report import formats, story
from tests import browser
from tests.contrast import too_faint
from tests.integration import test_survey_page, test_timeline_page
from tests.printing import open_tab
from tests.tabs import SIZES, WIDER_THAN_THE_SCREEN, evaluate, prepare
from tests.unit.spark import month

CHROMIUM = browser.find()
TURN = {"node_id": 10, "role": "broker", "zone": "us-east-1a", "seconds": 280.0, "batch": 0}
PLAN = {"nodes": [TURN], "seconds": 280.0, "interval_seconds": None, "notes": ["Note."]}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    written = {
        "report": formats.write(story.report_document(month.evidence()), formats.Format.HTML),
        "survey": survey_page.render(test_survey_page.DONE, 1_790_000_000.0),
        "rotation": plan_page(PLAN),
    }
    for name, html in written.items():
        (folder / f"{name}.html").write_text(html)
    timeline.write_page(
        folder / "timeline.html", test_timeline_page.STORY, test_timeline_page.RESULT, ["Lost."]
    )
    return {path.stem: path for path in folder.glob("*.html")}


@browser.needed
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_word_stands_out_and_nothing_sticks_out(
    pages: dict[str, Path], size: str, dark: bool
) -> None:
    assert CHROMIUM is not None
    faint, wide = {}, {}
    with open_tab(CHROMIUM) as tab:
        prepare(tab, size=size, dark=dark)
        for name, path in pages.items():
            tab.events.clear()
            tab.ask("Page.navigate", url=path.resolve().as_uri())
            tab.wait_for("Page.loadEventFired")
            if found := too_faint(tab):
                faint[name] = found
            if (more := evaluate(tab, WIDER_THAN_THE_SCREEN)) > 0:
                wide[name] = more
    assert (faint, wide) == ({}, {})


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
