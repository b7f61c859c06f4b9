"""Measures in a browser which words of a page a reader may not make out, by WCAG's AA (1.4.3).

Each text is held against what it stands on: the colours of its element and of all around it, with
what each lets through. Large text (24 px, or 18.66 px and bold) needs 3:1, all other 4.5:1. What a
page says with a background image, or over another element that it is no part of, is not seen.
"""

from pathlib import Path

from tests.printing import Tab
from tests.tabs import evaluate

SCRIPT = Path(__file__).with_suffix(".js").read_text()


def too_faint(tab: Tab) -> list[str]:
    """Return the texts that stand out too little: element, contrast, and how each begins."""
    found: list[str] = evaluate(tab, SCRIPT)
    return found
