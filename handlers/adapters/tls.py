"""TLS to servers whose certificates a cluster's own authority has signed; when one ends."""

from __future__ import annotations

import base64
import datetime as dt
import ssl

from core.errors import StillwaterError

EXPLICIT_VERSION, UTC_TIME, LONG_FORM = 0xA0, 0x17, 0x80


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


def certificate_ends_at(certificate_pem: str) -> dt.datetime | None:
    """Return when the first certificate of a PEM text ends; None where it cannot be read.

    Read from its DER (RFC 5280, 4.1): the standard library tells it of a connection's peer alone.
    """
    _, _, rest = certificate_pem.partition("-----BEGIN CERTIFICATE-----")
    body, found, _ = rest.partition("-----END CERTIFICATE-----")
    if not found:
        return None
    try:
        certificate = _content(base64.b64decode("".join(body.split()), validate=True))
        fields = _elements(_content(certificate))
        # An explicit version comes before serial number, algorithm and issuer.
        validity = fields[4 if fields[0][0] == EXPLICIT_VERSION else 3]
        tag, end = _elements(validity[1])[1]
        said = end.decode()
        if tag == UTC_TIME:  # two digits of the year, of the half century they are nearer to
            said = ("19" if said >= "50" else "20") + said
        return dt.datetime.strptime(said, "%Y%m%d%H%M%S%z")
    except (ValueError, IndexError):
        return None


def _content(der: bytes) -> bytes:
    """Return what is inside the first element."""
    return _elements(der)[0][1]


def _elements(der: bytes) -> list[tuple[int, bytes]]:
    """Return the elements that stand one after another, each by its tag."""
    found = []
    while der:
        tag, length, start = der[0], der[1], 2
        if length > LONG_FORM:
            start += length - LONG_FORM
            length = int.from_bytes(der[2:start])
        if start + length > len(der):
            raise ValueError("The element ends behind the text.")
        found.append((tag, der[start : start + length]))
        der = der[start + length :]
    return found
