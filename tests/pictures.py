"""Draws the pictures of docs/images/: python -m tests.pictures

Diagrams are tables of boxes and arrows below. An incident's states come from core. With Chromium on
the PATH the pages of a survey, a report and the desk are photographed as well, and a Slack thread:
its texts are the function's own, and the frame around them is this module's.
"""

from __future__ import annotations

import base64
import itertools
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import boto3
import moto
import pytest
from rich.console import Console

from cli.survey import page
from cli.target import Cluster
from core.ground import naming
from core.incidents.record import ALLOWED, TERMINAL, State
from core.slack import Thread
from spark.report import formats, story
from tests import browser, desk_data, served_desk
from tests.printing import open_tab
from tests.tabs import REACHES, evaluate, eventually, prepare
from tests.unit.cli.survey.test_survey import examined
from tests.unit.core.slack.test_incident_thread import incident, told
from tests.unit.docs.test_samples import shop
from tests.unit.handlers.tables import make_table
from tests.unit.infra.programs import spec
from tests.unit.spark import month

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
WIDTH, HEIGHT, COLUMN, ROW, MARGIN = 160, 64, 240, 104, 20
STYLE = """
.back{fill:#fff}.box{fill:#f4f6f9;stroke:#b9c0cb}.own{fill:#e7f0fb;stroke:#4c78a8}
.gate{fill:#fdf1dc;stroke:#d99a2b}.good{fill:#e6f4ea;stroke:#59a14f}
text{font:13px system-ui,'Liberation Sans',sans-serif;fill:#22242a}.t{font-weight:600}
.s{font-size:11px;fill:#5b616b}.a{stroke:#5b616b;stroke-width:1.4;fill:none;marker-end:url(#h)}
@media (prefers-color-scheme:dark){.back{fill:#17191d}.box{fill:#23262c;stroke:#4a505a}
.own{fill:#1d2b3c}.gate{fill:#3a2f1a}.good{fill:#1d3323}text{fill:#e8e8ea}.s{fill:#a2a7b0}
.a{stroke:#a2a7b0}#h path{fill:#a2a7b0}}
"""
HEAD = (
    '<defs><marker id="h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#5b616b"/></marker></defs>'
)


@dataclass(frozen=True)
class Box:
    """A box at a column and a row: its title, what stands below, and how it is filled."""

    column: float
    row: float
    title: str
    lines: Sequence[str] = ()
    kind: str = "box"

    @property
    def left(self) -> float:
        return MARGIN + self.column * COLUMN

    @property
    def top(self) -> float:
        return MARGIN + self.row * ROW

    @property
    def middle(self) -> float:
        return self.left + WIDTH / 2


def diagram(title: str, boxes: Mapping[str, Box], arrows: Sequence[tuple[str, str, str]]) -> str:
    """Return a diagram as SVG; an arrow names two boxes and what it says."""
    width = int(max(box.left for box in boxes.values()) + WIDTH + MARGIN)
    height = int(max(box.top for box in boxes.values()) + HEIGHT + MARGIN)
    drawn = [*_boxes(boxes.values()), *(_arrow(boxes[a], boxes[b], said) for a, b, said in arrows)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}"><style>{STYLE}</style>{HEAD}'
        f'<rect class="back" width="{width}" height="{height}"/>\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _boxes(boxes: Iterable[Box]) -> Iterator[str]:
    for box in boxes:
        yield (
            f'<rect class="{box.kind}" x="{box.left}" y="{box.top}" width="{WIDTH}" '
            f'height="{HEIGHT}" rx="7"/>'
        )
        start = box.top + HEIGHT / 2 + 5 - 8 * len(box.lines)
        yield _text(box.middle, start, box.title, "t")
        for number, line in enumerate(box.lines, 1):
            yield _text(box.middle, start + 16 * number, line, "s")


def _text(x: float, y: float, said: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="middle">{escape(said)}</text>'


def _arrow(start: Box, end: Box, said: str) -> str:
    """Draw an arrow between two sides that face each other."""
    if abs(start.column - end.column) < abs(start.row - end.row) or start.column == end.column:
        down = end.row > start.row
        x, y = start.middle, start.top + (HEIGHT if down else 0)
        to_x, to_y = end.middle, end.top + (0 if down else HEIGHT)
    else:
        right = end.column > start.column
        x, y = start.left + (WIDTH if right else 0), start.top + HEIGHT / 2
        to_x, to_y = end.left + (0 if right else WIDTH), end.top + HEIGHT / 2
    beside = 45 if x == to_x else 0
    label = _text((x + to_x) / 2 + beside, (y + to_y) / 2 - 4, said, "s") if said else ""
    return f'<path class="a" d="M{x},{y} L{to_x},{to_y}"/>{label}'


# Where each state stands; the arrows are core's own.
PLACES = {
    State.OPENED: (0, 0, "announced"),
    State.REPLACING: (1, 0, "a new node comes"),
    State.HOLDING: (2, 0, "Kafka's consent"),
    State.DRAINING: (3, 0, "the pod leaves"),
    State.GATING: (4, 0, "the broker returns"),
    State.RELEASED: (4, 1.6, "the instance ends"),
    State.RIDDEN_THROUGH: (0, 1.6, "AWS gives it back"),
    State.CANCELLED: (1, 1.6, "called off"),
    State.RETAINED: (2, 1.6, "kept, a person decides"),
    State.LOST: (3, 1.6, "ended too early"),
}
# The way that an incident takes as a rule, and its usual ends.
SHOWN = {
    (State.OPENED, State.REPLACING),
    (State.REPLACING, State.HOLDING),
    (State.HOLDING, State.DRAINING),
    (State.DRAINING, State.GATING),
    (State.GATING, State.RELEASED),
    (State.OPENED, State.RIDDEN_THROUGH),
    (State.REPLACING, State.CANCELLED),
    (State.HOLDING, State.RETAINED),
    (State.GATING, State.LOST),
}


def states() -> str:
    """Return the states of an incident, and its usual way through them."""
    assert all(end in ALLOWED[start] for start, end in SHOWN)
    boxes = {
        state.value: Box(column, row, state.value.replace("_", " "), [below], _state_kind(state))
        for state, (column, row, below) in PLACES.items()
    }
    arrows = [(start.value, end.value, "") for start, end in sorted(SHOWN)]
    return diagram("The states of an incident", boxes, arrows)


def _state_kind(state: State) -> str:
    if state is State.RELEASED:
        return "good"
    return "gate" if state in TERMINAL else "own"


LAYERS = {
    "foundation": Box(0, 0, "foundation", ["VPC, subnets, NAT,", "EKS, add-ons"]),
    "platform": Box(1, 0, "platform", ["NTH, LBC, autoscaler,", "webhook, queues"]),
    "kafka": Box(2, 0, "kafka", ["groups, NLB, volumes,", "Strimzi, Kafka"]),
    "operations": Box(3, 0, "operations", ["ledger, functions,", "hooks, alarms"], "own"),
    "analytics": Box(4, 0, "analytics", ["bill export, tables,", "report"]),
}
SEQUENCE = {
    "drainer": Box(0, 0, "any drainer", ["kubectl, Karpenter,", "NTH, EKS"]),
    "server": Box(1, 0, "API server", ["pods/eviction"]),
    "gate": Box(2, 0, "eviction webhook", ["two replicas"], "own"),
    "kafka": Box(3, 0, "Kafka", ["replicas, quorum"]),
    "ledger": Box(3, 1, "ledger", ["lease, incident"], "own"),
    "pod": Box(1, 1, "broker's pod", ["stops, moves"], "good"),
}
LEVELS = {
    "survey": Box(0, 0, "survey", ["findings;", "changes nothing"]),
    "watch": Box(1, 0, "watch", ["incidents, Slack;", "changes nothing of yours"]),
    "gate": Box(2, 0, "gate", ["evictions wait", "for Kafka"], "gate"),
    "act": Box(3, 0, "act", ["hold, drain, rotate", "nodes"], "own"),
    "own": Box(4, 0, "own", ["Stillwater's stacks", "make everything"], "good"),
}


def chain(*names: str, said: str = "") -> list[tuple[str, str, str]]:
    return [(one, other, said) for one, other in itertools.pairwise(names)]


def diagrams() -> Mapping[str, str]:
    """Return each diagram, name -> SVG."""
    asked = [
        ("drainer", "server", "1 evict"),
        ("server", "gate", "2 may it?"),
        ("gate", "kafka", "3 read"),
        ("gate", "ledger", "4 lease"),
        ("server", "pod", "5 yes: evict"),
    ]
    return {
        "states": states(),
        "layers": diagram("The layers on AWS, in the order of `up`", LAYERS, chain(*LAYERS)),
        "eviction": diagram("How an eviction is decided", SEQUENCE, asked),
        "levels": diagram("Levels of adoption", LEVELS, chain(*LEVELS)),
    }


THREAD = """<style>body{font:15px system-ui,'Liberation Sans',sans-serif;margin:16px;width:620px}
section{margin:0 0 12px;padding-left:46px;position:relative;white-space:pre-line}
i{position:absolute;left:0;width:34px;height:34px;border-radius:7px;background:#4c78a8}</style>"""


def slack_thread() -> str:
    """Return a page with the last state of every message of a thread, one below the other."""
    messages: dict[object, str] = {}
    for step in told(incident(), Thread(incident_id="i-0a"))[0]:
        key = "head" if step.action in ("head", "edit") else step.key
        blocks = step.message.blocks or ()
        texts = [each["text"]["text"] for each in blocks if "text" in each]
        messages[key] = "\n".join(texts) or step.message.text
    bold = (re.sub(r"\*(.+?)\*", r"<b>\1</b>", escape(each)) for each in messages.values())
    return THREAD + "".join(f"<section><i></i><b>stillwater</b>\n{m}</section>" for m in bold)


def desk(chromium: str) -> None:
    """Photograph the desk while broker 10 is out, over the ledger of the desk's own tests."""
    with moto.mock_aws():
        session = boto3.Session("test", "test", region_name="us-east-1")
        served = Cluster(spec(environment="local", name="desk"), session)
        make_table(session.client("dynamodb"), served.table)
        queue = naming.queue(served.spec.prefix, "ticks")
        session.client("sqs").create_queue(QueueName=queue)
        desk_data.write(served, time.time())
        served_at = served_desk.serving(served, "t" * 43)
        with served_at as address, open_tab(chromium, REACHES) as tab:
            prepare(tab)
            tab.ask("Page.navigate", url=f"{address}#{'t' * 43}")
            head = "document.querySelector('#verdict h2').textContent"
            eventually(lambda: evaluate(tab, head), "Broker 10 is out, 2 more wait")
            shot = tab.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
    (IMAGES / "desk.png").write_bytes(base64.b64decode(shot))


def pages(chromium: str) -> None:
    """Photograph a survey of the tests' cluster, a thread, the report on a month, and the desk."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        html = {
            "survey": page.render(examined(patch, shop()), 1_795_000_000.0),
            "slack": slack_thread(),
            "report": formats.write(story.report_document(month.evidence()), formats.Format.HTML),
        }
        for name, text in html.items():
            written = Path(folder) / f"{name}.html"
            written.write_text(text)
            size = (680, 460) if name == "slack" else (1280, 900)
            browser.photograph(chromium, written, IMAGES / f"{name}.png", size=size)
    desk(chromium)


if __name__ == "__main__":
    for name, drawn in diagrams().items():
        (IMAGES / f"{name}.svg").write_text(drawn)
    found = browser.find()
    if found is None:
        Console().print("The pages stay: Chromium is missing (apt install chromium).")
    else:
        pages(found)
