"""Renders what AWS, or what stands in its place, answered instead of an answer, as one line."""

from __future__ import annotations

import re

from botocore.exceptions import ClientError

# Whoever answers a call it does not know: a stand-in's server.
NO_SUCH_CALL = {"404", "501", "InternalFailure", "UnknownOperationException"}
LONGEST = 300
# A proxy's page, which says nothing that the words before it do not.
_PAGE = re.compile(r"[\s:]*(?:b')?<(?:!doctype|html)\b.*", re.IGNORECASE | re.DOTALL)


def sentence(error: Exception) -> str:
    """Return an error's words on one line."""
    if isinstance(error, ClientError) and error.response["Error"]["Code"] in NO_SUCH_CALL:
        return f"{error.operation_name} is not served here"
    return one_line(str(error)).rstrip(".")


def one_line(text: str) -> str:
    """Return a text on one line, without the page that came in place of an answer."""
    line = " ".join(_PAGE.sub("", text).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."
