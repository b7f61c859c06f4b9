"""Reads until when whoever asks a webhook trusts its certificate, by the CA bundle it is given."""

from __future__ import annotations

import base64
import binascii
import ssl

from core.window import clock
from infra.eks.api import Object


def lapsed_trust(config: Object, now: float) -> str | None:
    """Return why a webhook's certificate is trusted no more; None: it is, or nobody can tell.

    The API server trusts whatever any authority of the bundle has signed: one that still counts
    is enough. A bundle without one is the system's, or waits for somebody to write it.
    """
    try:
        pem = base64.b64decode(str(config.get("caBundle") or ""), validate=True).decode()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=pem)
    except (binascii.Error, UnicodeDecodeError, ValueError, ssl.SSLError):
        return None  # The API server takes none that cannot be read.
    ends = [
        ssl.cert_time_to_seconds(str(each["notAfter"]))
        for each in context.get_ca_certs()
        if "notAfter" in each
    ]
    if not ends or max(ends) > now:
        return None
    return f"whose caBundle has expired at {clock(max(ends))}"
