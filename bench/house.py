"""Counts rooms, floors and arrows of each package, from its own imports.

    python -m bench.house [CHECKOUT]

A room is what stands directly in a package (a module, or a package with all that is in it), an
arrow an import from one room into another, a floor the longest way down from a room. An arrow is a
way back where both its rooms import each other, directly or through others. Given another
checkout, it measures that one, so that two states of the project can be held side by side.
Writes out/bench/house.json.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from pathlib import Path

import grimp

from bench import record

PACKAGES = ("core", "handlers", "infra", "spark", "cli", "local")


def main(arguments: Sequence[str]) -> None:
    """Measure every package of a checkout, print a line for each, and write them down."""
    checkout = Path(arguments[0]) if arguments else Path()
    sys.path.insert(0, str(checkout.resolve()))
    rows = [_measure(package) for package in PACKAGES]
    for row in rows:
        print(
            f"{row['package']:<9} {row['rooms']:>3} rooms, {row['floors']:>2} floors, "
            f"{row['arrows']:>3} arrows, {row['arrows_back']} of them part of a way back"
        )
    core = rows[0]
    summary = {key: core[key] for key in ("rooms", "floors", "arrows", "arrows_back")}
    record.write("house", {}, rows, summary)


def _measure(package: str) -> dict[str, object]:
    graph = grimp.build_graph(package, cache_dir=None)
    rooms = graph.find_children(package)
    for room in rooms:
        graph.squash_module(room)
    arrows = {
        room: graph.find_modules_directly_imported_by(room) - {package, room} for room in rooms
    }
    ways = {room: graph.find_upstream_modules(room) for room in rooms}
    down = {room: [t for t in arrows[room] if room not in ways[t]] for room in rooms}

    @functools.cache
    def floor(room: str) -> int:
        return 1 + max(map(floor, down[room]), default=0)

    return {
        "package": package,
        "rooms": len(rooms),
        "floors": max(map(floor, rooms)),
        "arrows": sum(map(len, arrows.values())),
        "arrows_back": sum(len(arrows[room]) - len(down[room]) for room in rooms),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
