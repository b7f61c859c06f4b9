"""Handshakes in memory with certificates as EKS makes them: no authority key identifier."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from core.ground.errors import StillwaterError
from handlers.adapters.eks import trusting

HOST = "api.example"


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(_named("kubernetes"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """Return a server's context and its authority as PEM."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = (
        _builder("kubernetes", authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(HOST, key)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    file: Path = tmp_path_factory.mktemp("tls") / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, authority.public_bytes(serialization.Encoding.PEM).decode()


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str = HOST) -> None:
    """Carry both sides' bytes to each other until the client is content, or raises."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname=host)
    there = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(5):
        for side in (here, there):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            if side is here:
                return
    raise AssertionError("the handshake does not end")


def test_a_server_signed_as_eks_signs_is_believed(server: tuple[ssl.SSLContext, str]) -> None:
    context, authority = server
    shake_hands(trusting(authority, "Its"), context)
    strict = trusting(authority, "Its")
    # What Python 3.13 sets by default, and urllib3 with it.
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    with pytest.raises(ssl.SSLCertVerificationError, match="Authority Key Identifier"):
        shake_hands(strict, context)


def test_another_name_or_authority_is_not_believed(server: tuple[ssl.SSLContext, str]) -> None:
    context, authority = server
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(trusting(authority, "Its"), context, host="other.example")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(ssl.create_default_context(), context)


def test_what_is_no_certificate_is_one_sentence() -> None:
    with pytest.raises(StillwaterError, match="Kafka's certificate authority is no PEM"):
        trusting("not a certificate", "Kafka's")
    with pytest.raises(StillwaterError, match="Kafka's certificate authority is no PEM"):
        trusting("", "Kafka's")
