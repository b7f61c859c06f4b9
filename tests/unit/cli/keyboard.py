"""A keyboard: standard input that a person types at, for commands that ask."""

from __future__ import annotations

import io


class Keyboard(io.StringIO):
    """Empty standard input of a terminal: whoever reads it gets what Ctrl-D gives."""

    def isatty(self) -> bool:
        return True
