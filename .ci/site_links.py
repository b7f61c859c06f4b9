"""Lets a page link to the sources beside docs/: on the site such a link is the path, as code."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page whose links lead to other pages alone."""
    folder = posixpath.dirname(page.file.src_uri)

    def shown(found: re.Match[str]) -> str:
        text, path, anchor = found[1], found[2], found[3] or ""
        target = posixpath.normpath(posixpath.join(folder, path))
        if target.startswith("../"):
            return f"{text} (`{target.lstrip('./')}`)" if "`" not in text else text
        if path.endswith("/"):
            return f"[{text}]({path}README.md{anchor})"
        return found[0]

    return _LINK.sub(shown, markdown)
