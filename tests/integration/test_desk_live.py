"""The desk in a real browser while a broker's node really goes, from the announcement to calm."""

import base64
from collections.abc import Iterator

import pytest

from cli import target
from core.cluster import parse
from infra import spec as specs
from local.demo import rotation as demo
from local.demo import spec as demo_spec
from tests import browser, served_desk
from tests.contrast import too_faint
from tests.integration.aws.cloud import session_of
from tests.integration.cluster import Cluster
from tests.integration.conftest import REPOSITORY
from tests.printing import Tab, open_tab
from tests.tabs import REACHES, WIDER_THAN_THE_SCREEN, evaluate, prepare, unhappy

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]
CHROMIUM = browser.find()
PICTURES = REPOSITORY / "out" / "pages"
TOKEN = "t" * 43
TITLE = "document.querySelector('#verdict h2')?.textContent ?? ''"
BODY = "document.body.innerText"
ALL_READ = (
    "document.querySelector('#live')?.textContent === 'live'"
    f" && !/not read|cannot be read/.test({BODY})"
)
# What of an incident's way the page marks as where it is now.
HERE = "document.querySelector('#incidents .here b')?.textContent ?? ''"


@pytest.fixture
def address(cluster: Cluster) -> Iterator[str]:
    place = cluster.twin.place
    spec = parse(specs.content(demo_spec.path(place)))
    desk = target.Cluster(spec, session_of(place), place.url("moto"))
    with served_desk.serving(desk, TOKEN) as at:
        yield at


def keep(tab: Tab, name: str) -> None:
    """Keep a picture of the page for whoever wants to look."""
    picture = base64.b64decode(
        tab.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
    )
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"desk-{name}.png").write_bytes(picture)
    # An empty page compresses to a few kilobytes.
    assert len(picture) > 40_000


@browser.needed
def test_whoever_keeps_the_desk_open_sees_a_broker_leave_and_come_back(
    cluster: Cluster, address: str
) -> None:
    assert CHROMIUM is not None
    with open_tab(CHROMIUM, REACHES) as tab:
        prepare(tab)
        tab.ask("Page.navigate", url=f"{address}#{TOKEN}")
        tab.wait_for("Page.loadEventFired")
        cluster.until(lambda: evaluate(tab, ALL_READ), "the desk has read all there is")
        calm = evaluate(tab, TITLE)
        assert calm
        assert "metadata log of node 10" in evaluate(tab, BODY)
        keep(tab, "before")

        rotation = demo.terminate(cluster.twin)
        broker = f"broker {demo.BROKER_ID}"
        cluster.until(
            lambda: f"{broker} is out".casefold() in evaluate(tab, TITLE).casefold(),
            "the desk says who is out",
            demo.ROTATION_LIMIT_SECONDS,
        )
        # Nobody reloads it: what it shows of an incident it was told.
        assert evaluate(tab, HERE) in {"draining", "gating"}
        assert rotation.instance_id in evaluate(tab, "document.body.textContent")
        assert "holds" in evaluate(tab, BODY) or "is out for" in evaluate(tab, BODY)
        keep(tab, "out")
        prepare(tab, size="phone", dark=True)
        assert evaluate(tab, WIDER_THAN_THE_SCREEN) <= 0
        assert too_faint(tab) == []
        keep(tab, "out-dark-phone")
        prepare(tab)

        cluster.released(rotation.instance_id)
        cluster.until(lambda: evaluate(tab, TITLE) == calm, "the desk is as calm as before")
        assert evaluate(tab, ALL_READ)
        keep(tab, "after")
        assert unhappy(tab) == []
