"""A survey's page opens in a real browser, in light and in dark, on a desk and on a phone."""

from pathlib import Path

import pytest

from cli.survey import page
from cli.survey.command import Survey
from core.checks.finding import Finding, Weight
from tests import browser

CHROMIUM = browser.find()
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
DONE = Survey(
    "arn:aws:eks:eu-north-1:111122223333:cluster/shop", ("Kafka shop-kafka/orders",), FOUND
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "survey.html"
    path.write_text(page.render(DONE, 1_790_000_000.0))
    return path


@browser.needed
def test_the_page_opens_without_a_complaint_and_names_every_finding(written: Path) -> None:
    assert CHROMIUM is not None
    seen = browser.look(CHROMIUM, written)
    assert seen.console == ()
    assert seen.dom.count("<article") == len(FOUND)
    assert "Not safely" in seen.dom


@browser.needed
@pytest.mark.parametrize(
    ("size", "dark"),
    [(browser.DESKTOP, False), (browser.DESKTOP, True), (browser.PHONE, False)],
    ids=["desktop", "dark", "phone"],
)
def test_the_page_is_drawn(
    written: Path, tmp_path: Path, size: tuple[int, int], dark: bool
) -> None:
    assert CHROMIUM is not None
    picture = browser.photograph(CHROMIUM, written, tmp_path / "page.png", size=size, dark=dark)
    # An empty page of this size compresses to a few kilobytes.
    assert picture.stat().st_size > 30_000
