"""Certificates for tests, of keys that are quick to make."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

STARTS_AT = dt.datetime(2019, 1, 1, tzinfo=dt.UTC)
ENDS_AT = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Issued:
    """A certificate and its key."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()


def issue(
    name: str,
    authority: Issued | None,
    ends_at: dt.datetime = ENDS_AT,
    *,
    address: str | None = None,
) -> Issued:
    """Return a certificate of an authority, or an authority where there is none above it.

    With an address it is a server's.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if authority is None else authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(STARTS_AT)
        .not_valid_after(ends_at)
        .add_extension(x509.BasicConstraints(authority is None, None), critical=True)
    )
    if address is not None:
        names = [x509.IPAddress(ipaddress.ip_address(address))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signer = key if authority is None else authority.key
    return Issued(key, builder.sign(signer, hashes.SHA256()))
