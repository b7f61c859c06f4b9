"""Certificates as Strimzi's operators issue them: what each looks like, and who signed it.

Everything is PEM text in memory, because Secrets are where it lives; keys are PKCS #8, the one form
Kafka reads. Keys are of an elliptic curve, where Strimzi's are RSA: those cost a second each.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from local.kubernetes import pki

ORGANIZATION = "io.strimzi"
VALID = dt.timedelta(days=365)  # Strimzi's default, of authorities and of what they sign


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, as PEM texts."""

    certificate: str
    key: str = field(repr=False)


def authority(name: str) -> Issued:
    """Make an authority of Strimzi's."""
    key = pki.new_key()
    subject = _subject(name, ORGANIZATION)
    certificate = (
        pki.builder(subject, subject, key, VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(pki.usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _certificate_and_key(certificate, key)


def component(signer: Issued, name: str, hosts: Sequence[str] = ()) -> Issued:
    """Make the certificate of a part of the cluster; with hosts it serves them as well."""
    return _signed_certificate(signer, _subject(name, ORGANIZATION), hosts)


def user(signer: Issued, name: str) -> Issued:
    """Make a user's certificate: to Kafka it is User:CN=<name>."""
    return _signed_certificate(signer, _subject(name, None), ())


def hosts_of(certificate: str) -> set[str]:
    """Return the names and addresses a certificate serves."""
    found = x509.load_pem_x509_certificate(certificate.encode()).extensions
    try:
        named = found.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = named.get_values_for_type(x509.IPAddress)
    return {*named.get_values_for_type(x509.DNSName), *(str(each) for each in addresses)}


def is_of(certificate: str, signer: str) -> bool:
    """Say whether one certificate was signed with the key of another."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate.encode())
        loaded.verify_directly_issued_by(x509.load_pem_x509_certificate(signer.encode()))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def ends_at(certificate: str) -> dt.datetime:
    """Return when a certificate ends."""
    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc


def key_store(issued: Issued, alias: str, password: str) -> bytes:
    """Return certificate and key as the PKCS #12 store that Java reads."""
    return pkcs12.serialize_key_and_certificates(
        alias.encode(),
        _key(issued),
        x509.load_pem_x509_certificate(issued.certificate.encode()),
        None,
        serialization.BestAvailableEncryption(password.encode()),
    )


def trust_store(certificates: Iterable[str], password: str) -> bytes:
    """Return authorities as the PKCS #12 store that Java trusts."""
    entries = [
        pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(each.encode()), b"ca-%d" % number)
        for number, each in enumerate(certificates)
    ]
    encryption = serialization.BestAvailableEncryption(password.encode())
    return pkcs12.serialize_java_truststore(entries, encryption)


def _subject(name: str, organization: str | None) -> x509.Name:
    # Java reads the parts from the last to the first: CN=<name>,O=<organization>.
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization is not None:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _signed_certificate(signer: Issued, subject: x509.Name, hosts: Sequence[str]) -> Issued:
    above = x509.load_pem_x509_certificate(signer.certificate.encode())
    signing_key = _key(signer)
    key = pki.new_key()
    builder = (
        pki.builder(subject, above.subject, key, VALID)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(pki.usage(signs_certificates=False), critical=True)
    )
    if hosts:
        names = x509.SubjectAlternativeName([pki.alternative(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return _certificate_and_key(builder.sign(signing_key, hashes.SHA256()), key)


def _key(issued: Issued) -> ec.EllipticCurvePrivateKey:
    loaded = serialization.load_pem_private_key(issued.key.encode(), None)
    return cast("ec.EllipticCurvePrivateKey", loaded)  # as all of ours


def _certificate_and_key(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    return Issued(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    )
