"""A keyboard: standard input that a person types at, for commands that ask."""

import io


class Keyboard(io.StringIO):
    """Empty standard input of a terminal: whoever reads it gets what Ctrl-D gives."""

    def isatty(self) -> bool:
        return True
