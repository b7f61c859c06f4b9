"""local.demo.narration: what was printed, in its order, as one SVG that moves by itself."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from rich.text import Text

from local.demo.narration import COLUMNS, LAST_SCREEN_S, LONGEST_PAUSE_S, Printed, svg


def texts(drawn: str) -> list[str]:
    root = ET.fromstring(drawn)  # noqa: S314 - our own
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_line_is_there_in_order_and_none_is_wider_than_the_window() -> None:
    long = "a reason with <brackets> & more " * 9
    lines = [Printed(0.0, Text("first")), Printed(300.0, Text(long)), Printed(301.0, Text("last"))]
    rows = texts(svg(lines, "a run"))
    assert all(len(row) <= COLUMNS for row in rows)
    assert " ".join(" ".join(rows).split()) == " ".join(f"first {long} last".split())


def test_a_long_wait_is_a_short_one_in_the_recording() -> None:
    drawn = svg([Printed(0.0, Text("a")), Printed(3600.0, Text("b"))], "a run")
    seconds = float(drawn.partition("animation-duration: ")[2].partition("s")[0])
    assert seconds < LAST_SCREEN_S + 2 * LONGEST_PAUSE_S


def test_nothing_printed_is_nothing_drawn() -> None:
    assert svg([], "a run") == ""
