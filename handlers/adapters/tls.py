"""TLS to servers whose certificates a cluster's own authority has signed."""

from __future__ import annotations

import ssl

from core.errors import StillwaterError


def trusting(authorities_pem: str, whose: str) -> ssl.SSLContext:
    """Return a context that trusts these authorities alone, and checks the server's name.

    Raises StillwaterError when there is no certificate in them; `whose` starts that sentence.
    """
    # Not Python's default context: from 3.13 on that one wants an authority key identifier, which
    # EKS leaves out of its certificates (kubernetes-client/python#2394).
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=authorities_pem)
    except (ssl.SSLError, ValueError) as error:
        raise StillwaterError(
            f"{whose} certificate authority is no PEM certificate: {error}."
        ) from None
    return context
