"""The demo's page opens in a real browser, in light and in dark, and says what happened."""

from pathlib import Path
from typing import Any

import pytest

from local.demo import story, timeline
from tests import browser

CHROMIUM = browser.find()
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


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "index.html"
    timeline.write_page(path, STORY, RESULT, [])
    return path


@browser.needed
def test_the_page_opens_without_a_complaint_and_tells_the_story(page: Path) -> None:
    assert CHROMIUM is not None
    seen = browser.look(CHROMIUM, page)
    assert seen.console == ()
    assert "5630 records acknowledged, 0 lost" in seen.dom
    assert "draining: node 10 may leave &lt;now&gt;" in seen.dom
    assert seen.dom.count("<svg") == 2


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
    assert picture.stat().st_size > 30_000


def test_what_did_not_hold_is_the_first_thing_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    timeline.write_page(page, STORY, RESULT, ["3 acknowledged records cannot be read back."])
    body = page.read_text()
    assert '<p class="verdict bad">3 acknowledged records cannot be read back.</p>' in body
    assert "The drain waited for the replacement" not in body
