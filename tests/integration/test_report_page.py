"""The report's page in a real browser: on a desk, in the dark, on a phone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark.report import formats, story
from tests import browser
from tests.unit.spark import month

CHROMIUM = browser.find()
MEASURE = """<script>
  document.body.append(`wide: ${document.documentElement.scrollWidth - innerWidth}`);
</script></body>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "index.html"
    html = formats.write(story.told(month.evidence()), formats.Format.HTML)
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
