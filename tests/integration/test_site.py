"""The site that `make site` builds, served as it would be published, in a real browser."""

import base64
import functools
import http.server
import json
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import browser
from tests.contrast import too_faint
from tests.printing import open_tab
from tests.tabs import (
    LOOPBACK,
    REACHES,
    WIDER_THAN_THE_SCREEN,
    evaluate,
    eventually,
    prepare,
    unhappy,
)

pytestmark = pytest.mark.lint

REPOSITORY = Path(__file__).resolve().parents[2]
CHROMIUM = browser.find()
NAME = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
# A release of before, of which only a page is there, and what no release is.
EARLIER = ("0.0.2", "0.0.10", "not-a-version")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name in EARLIER:
        (folder / name).mkdir()
        (folder / name / "index.html").write_text(f"<title>{name}</title>")
    build = [sys.executable, str(REPOSITORY / ".ci" / "site.py"), str(folder)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    return folder


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_request(self, *_: object) -> None:
        """Say nothing of a request."""


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer((LOOPBACK, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{LOOPBACK}:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_the_versions_stand_newest_first_and_the_first_page_leads_to_the_newest(
    folder: Path,
) -> None:
    entries = json.loads((folder / "versions.json").read_text())
    assert [entry["version"] for entry in entries] == [NAME, "0.0.10", "0.0.2"]
    assert [entry["aliases"] for entry in entries] == [["latest"], [], []]
    assert f'href="{NAME}/index.html"' in (folder / "index.html").read_text()


@browser.needed
@pytest.mark.parametrize(
    ("size", "dark", "every"),
    [
        # What fits a phone fits a desk.
        pytest.param("phone", True, 1, id="dark phone", marks=pytest.mark.long),
        pytest.param("phone", True, 8, id="some on a dark phone"),
        pytest.param("desktop", False, 8, id="some on a desktop"),
    ],
)
def test_every_page_opens_without_a_complaint_fits_the_screen_and_can_be_read(
    folder: Path, address: str, size: str, dark: bool, every: int
) -> None:
    assert CHROMIUM is not None
    pages = sorted((folder / NAME).rglob("*.html"))
    assert len(pages) > 50
    wide, faint, complaints = {}, {}, {}
    with open_tab(CHROMIUM, REACHES) as tab:
        prepare(tab, size=size, dark=dark)
        for page in pages[::every]:
            tab.events.clear()
            tab.ask("Page.navigate", url=f"{address}{page.relative_to(folder).as_posix()}")
            tab.wait_for("Page.loadEventFired")
            name = page.relative_to(folder / NAME).as_posix()
            if (more := evaluate(tab, WIDER_THAN_THE_SCREEN)) > 0:
                wide[name] = more
            if found := too_faint(tab):
                faint[name] = found
            if said := unhappy(tab):
                complaints[name] = said
        picture = tab.ask("Page.captureScreenshot")["data"]
    assert (wide, faint, complaints) == ({}, {}, {})
    # An empty page compresses to a few kilobytes.
    assert len(base64.b64decode(picture)) > 20_000


@browser.needed
def test_a_reader_finds_a_page_by_a_word_and_another_version_by_its_number(address: str) -> None:
    assert CHROMIUM is not None
    with open_tab(CHROMIUM, REACHES) as tab:
        prepare(tab)
        tab.ask("Page.navigate", url=address)
        title = "document.title"
        eventually(lambda: evaluate(tab, title).startswith("Stillwater"), wanted=True)
        versions = "[...document.querySelectorAll('.md-version__link')].map((one) => one.innerText)"
        eventually(lambda: evaluate(tab, versions), [NAME, "0.0.10", "0.0.2"])
        evaluate(tab, "document.querySelector('.md-search__input').focus()")
        tab.ask("Input.insertText", text="eviction webhook")
        found = (
            "[...document.querySelectorAll('.md-search-result__link')]"
            ".some((one) => one.href.includes('how-to/eviction-gate.html'))"
        )
        eventually(lambda: evaluate(tab, found), wanted=True)
