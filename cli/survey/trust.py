"""Reads when certificates end: of the authorities that a webhook is trusted by, and of listeners.

Of a certificate its validity alone is read, which stands in it as two times in a row (RFC 5280).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from datetime import datetime

from core.window import clock
from infra.eks.api import Object

PEM = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
# A SEQUENCE of two times: UTCTime with two digits of the year, or GeneralizedTime with four.
_TIME = rb"(?:\x17\x0d(\d{12})Z|\x18\x0f(\d{14})Z)"
VALIDITY = re.compile(rb"\x30[\x1e-\x22]" + _TIME + _TIME)


def ends(pems: Iterable[str]) -> list[float]:
    """Return when each certificate ends, in epoch seconds; one that cannot be read is left out."""
    found = []
    for body in (body for pem in pems for body in PEM.findall(pem)):
        try:
            validity = VALIDITY.search(base64.b64decode("".join(body.split()), validate=True))
        except binascii.Error:
            continue
        if validity is not None:
            found.append(_moment(validity[3] or validity[4]))
    return found


def _moment(written: bytes) -> float:
    # RFC 5280: years of two digits are those from 1950 on.
    century = b"" if len(written) == 14 else b"20" if written < b"5" else b"19"
    return datetime.strptime(f"{(century + written).decode()}+0000", "%Y%m%d%H%M%S%z").timestamp()


def trusted_until(config: Object) -> float | None:
    """Return when the last authority of a webhook's caBundle ends; None: nobody can tell.

    The API server trusts whatever any authority of the bundle has signed: one that still counts
    is enough. A bundle without one is the system's, or waits for somebody to write it.
    """
    try:
        pem = base64.b64decode(str(config.get("caBundle") or ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None  # The API server takes none that cannot be read.
    return max(ends([pem]), default=None)


def lapsed_trust(config: Object, now: float) -> str | None:
    """Return why a webhook's certificate is trusted no more; None: it is, or nobody can tell."""
    until = trusted_until(config)
    return None if until is None or until > now else f"whose caBundle has expired at {clock(until)}"
