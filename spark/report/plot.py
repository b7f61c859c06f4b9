"""Draws the cost by component as an inline SVG that takes its colours from the page.

Text stays text (searchable, and in the page's colour), and the same figures give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from spark.report.model import Share
from spark.transforms.attribute import Attribution

# Stand-ins that matplotlib can print and the page replaces by its own colours.
_INK = "#010203"
_COLOURS = {
    Attribution.NODE_POOL: ("#010204", "var(--pool)"),
    Attribution.CLUSTER: ("#010205", "var(--cluster)"),
    Attribution.NOBODY: ("#010206", "var(--nobody)"),
}
_WIDTH_INCHES, _BAR_INCHES, _MARGIN_INCHES = 5.2, 0.36, 0.75


def by_component(shares: Sequence[Share], currency: str) -> str:
    """Return an <svg> of one bar per component, split by how closely its owner is known."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "stillwater", "font.size": 10}):
        figure = Figure(figsize=(_WIDTH_INCHES, _MARGIN_INCHES + _BAR_INCHES * len(shares)))
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        names = [share.name for share in shares]
        left = [0.0] * len(shares)
        for attribution, (colour, _) in _COLOURS.items():
            widths = [float(share.by_attribution[attribution]) for share in shares]
            axes.barh(names, widths, left=left, color=colour, height=0.66)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.invert_yaxis()
        axes.set_xlabel(f"billed cost, {currency}", color=_INK)
        axes.tick_params(colors=_INK, length=0)
        axes.axvline(0, color=_INK, linewidth=0.6)
        axes.locator_params(axis="x", nbins=5)
        for side in axes.spines.values():
            side.set_visible(False)
        figure.tight_layout(pad=0.4)
        target = io.StringIO()
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
    return _for_the_page(target.getvalue())


def _for_the_page(svg: str) -> str:
    drawing = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    for colour, variable in _COLOURS.values():
        drawing = drawing.replace(colour, variable)
    return drawing.replace(
        "<svg ", '<svg role="img" aria-label="Billed cost by component" class="plot" ', 1
    )
