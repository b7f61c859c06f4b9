"""Renders what AWS, or what stands in its place, answered instead of an answer, as one line."""

from __future__ import annotations

from botocore.exceptions import ClientError

from core.errors import StillwaterError, one_line

# Whoever answers a call it does not know: a stand-in's server.
NO_SUCH_CALL = {"404", "501", "InternalFailure", "UnknownOperationException"}


def sentence(error: Exception) -> str:
    """Return an error's words on one line."""
    if isinstance(error, ClientError) and error.response["Error"]["Code"] in NO_SUCH_CALL:
        return f"{error.operation_name} is not served here"
    ours = isinstance(error, StillwaterError)
    return (" ".join(str(error).split()) if ours else one_line(error)).rstrip(".")
