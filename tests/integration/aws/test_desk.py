"""The desk in a real browser, over the twin's ledger, while a broker is out and others wait."""

import base64
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from cli.target import Cluster
from core.ground import naming
from tests import browser, desk_data, served_desk
from tests.contrast import too_faint
from tests.integration.aws.cloud import Cloud
from tests.printing import Tab, open_tab
from tests.tabs import REACHES, WIDER_THAN_THE_SCREEN, evaluate, eventually, prepare, unhappy
from tests.unit.handlers.tables import make_table
from tests.unit.infra.programs import spec

CHROMIUM = browser.find()
TOKEN = "t" * 43
WAITING = "i-0b77c1d2e3f405162"


@dataclass(frozen=True)
class Open:
    """A desk that is served, and where."""

    desk: Cluster
    address: str


@pytest.fixture
def served(cloud: Cloud, session: Any, twin: Any) -> Iterator[Open]:
    desk = Cluster(spec(environment="local", name="desk"), session, twin.place.url("moto"))
    make_table(cloud.dynamodb, desk.table)
    cloud.later(cloud.dynamodb.delete_table, TableName=desk.table)
    url = cloud.sqs.create_queue(QueueName=naming.queue(desk.spec.prefix, "ticks"))["QueueUrl"]
    cloud.later(cloud.sqs.delete_queue, QueueUrl=url)
    desk_data.write(desk, time.time())
    with served_desk.serving(desk, TOKEN) as address:
        yield Open(desk, address)


def shown(tab: Tab, address: str, *, size: str = "desktop", dark: bool = False) -> None:
    """Open the page and wait until it shows the ledger."""
    prepare(tab, size=size, dark=dark)
    tab.ask("Page.navigate", url=address)
    title = "document.querySelector('#verdict h2').textContent"
    eventually(lambda: evaluate(tab, title), "Broker 10 is out, 2 more wait")


@browser.needed
@pytest.mark.parametrize(
    ("size", "dark"),
    [("desktop", False), ("desktop", True), ("phone", True), ("phone", False)],
    ids=["desktop", "dark desktop", "dark phone", "phone"],
)
def test_the_desk_shows_who_is_out_why_others_wait_and_nothing_sticks_out(
    served: Open, size: str, dark: bool
) -> None:
    assert CHROMIUM is not None
    with open_tab(CHROMIUM, REACHES) as tab:
        shown(tab, f"{served.address}#{TOKEN}", size=size, dark=dark)
        # No λ health here: that is said, and not taken for health.
        failed = "document.body.innerText.includes('Health cannot be read')"
        eventually(lambda: evaluate(tab, failed), wanted=True)
        text = evaluate(tab, "document.body.innerText")
        for sentence in (
            "payments-7 would keep 1 in-sync replica",
            "frozen",
            "Full in",
            "broker 50",
        ):
            assert sentence.lower() in text.lower()
        assert evaluate(tab, "location.hash") == ""
        assert evaluate(tab, WIDER_THAN_THE_SCREEN) <= 0
        assert too_faint(tab) == []
        picture = tab.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        # An empty page compresses to a few kilobytes.
        assert len(base64.b64decode(picture)) > 40_000
        assert unhappy(tab) == []


@browser.needed
def test_a_hold_is_asked_for_with_the_keyboard_alone_and_written_into_the_ledger(
    served: Open,
) -> None:
    assert CHROMIUM is not None
    with open_tab(CHROMIUM, REACHES) as tab:
        shown(tab, f"{served.address}#{TOKEN}")
        evaluate(tab, f"document.querySelector('[data-key=\"hold {WAITING}\"]').focus()")
        for key in ("Enter", "Enter"):
            # The first opens the question, whose field has the focus; the second answers it.
            for kind in ("keyDown", "keyUp"):
                text = {"text": "\r"} if kind == "keyDown" else {}
                named = {"key": key, "code": key, "windowsVirtualKeyCode": 13}
                tab.ask("Input.dispatchKeyEvent", type=kind, **named, **text)
        eventually(lambda: served.desk.latest(WAITING).held_until is not None, wanted=True)
        toast = "document.querySelector('#toast').textContent"
        eventually(lambda: "holds instance" in evaluate(tab, toast), wanted=True)
        waits = "document.querySelector('#waits').innerText.match(/a person's hold/g).length"
        eventually(lambda: evaluate(tab, waits), 2)


@browser.needed
def test_without_the_token_the_page_shows_nothing(served: Open) -> None:
    assert CHROMIUM is not None
    with open_tab(CHROMIUM, REACHES) as tab:
        tab.ask("Page.navigate", url=served.address)
        live = "document.querySelector('#live')?.textContent"
        eventually(lambda: evaluate(tab, live), "open the address that the terminal printed")
        assert "Broker 10" not in evaluate(tab, "document.body.innerText")
