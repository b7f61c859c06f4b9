"""Keys and certificates of one twin, made anew for each: nothing here outlives or leaves it.

Two authorities stand apart on purpose: what vouches for the API server inside pods must not also
vouch for AWS's STS, which only the authenticator is led to believe.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = dt.timedelta(days=30)
# Clocks of a container and its host may differ by a little.
BACKDATED = dt.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that signs for this twin alone."""

    files: KeyPair
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, directory: Path, name: str) -> Authority:
        """Make an authority and write <name>.crt and <name>.key."""
        key = new_key()
        subject = _subject_name(f"stillwater twin {name}")
        certificate = builder(subject, subject, key, ca=True).sign(key, hashes.SHA256())
        return cls(_write(directory, name, certificate, key), certificate, key)

    def issue(self, directory: Path, name: str, hosts: Sequence[str]) -> KeyPair:
        """Make a serving certificate for hosts (names or addresses); write <name>.crt and .key."""
        key = new_key()
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        certificate = (
            builder(_subject_name(name), self.certificate.subject, key)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
                critical=False,
            )
            .add_extension(
                x509.SubjectAlternativeName([alternative(host) for host in hosts]), critical=False
            )
            .sign(self.key, hashes.SHA256())
        )
        return _write(directory, name, certificate, key)


def service_account_key(directory: Path) -> Path:
    """Write the key that signs ServiceAccount tokens as sa.key; its public half is derived."""
    path = directory / "sa.key"
    _write_key(path, new_key())
    return path


def new_key() -> ec.EllipticCurvePrivateKey:
    # An RSA key costs up to a second of a busy core, an elliptic curve's a millisecond.
    return ec.generate_private_key(ec.SECP256R1())


def _subject_name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    valid: dt.timedelta = VALID,
    *,
    ca: bool = False,
) -> x509.CertificateBuilder:
    """Return what every certificate of the twin has in common, valid from now on."""
    now = dt.datetime.now(dt.UTC)
    usage = dict.fromkeys(("key_cert_sign", "crl_sign"), ca) | {"digital_signature": True}
    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    usage |= dict.fromkeys((*unused, "encipher_only", "decipher_only"), False)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + valid)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca, 0 if ca else None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
    )


def pem(key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _write(
    directory: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> KeyPair:
    directory.mkdir(parents=True, exist_ok=True)
    pair = KeyPair(directory / f"{name}.crt", directory / f"{name}.key")
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(pair.key, key)
    return pair


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    # SEC1, the form Kubernetes reads for elliptic curves.
    path.write_bytes(pem(key, serialization.PrivateFormat.TraditionalOpenSSL))
