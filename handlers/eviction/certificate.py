"""Keeps the gate's certificate and its paths' tokens: in a Secret, renewed without a restart.

Each is signed by an authority made for it alone, whose key is thrown away. The API server is told
to trust the new one and the one before (the webhook's caBundle), and only then is it shown: at no
time does a replica show what is not trusted. Two replicas that renew at once meet at the Secret's
version, and the second takes what the first has written. The API server proves itself by the path
that it asks at, which ends in a token that it alone gets (ADR 0030). The Secret holds three tokens,
all admitted: the last, the present and the next, known to each replica long before it is used.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import hmac
import ipaddress
import os
import secrets
import ssl
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from core.gate import EVICTIONS, KNOWN, PATH, condition
from core.ground.errors import Conflict, StillwaterError
from handlers.adapters.eks import EksApi

VALID = dt.timedelta(days=90)
# Renewed with a month to go: whatever keeps the gate from renewing is noticed long before the end.
RENEWED_BEFORE = dt.timedelta(days=30)
# Clocks of two machines differ by a little.
BACKDATED = dt.timedelta(minutes=5)
# A new pool's pods are asked about this late at most; its pod set is long by then.
NAMED_EVERY = dt.timedelta(seconds=30)
CERTIFICATE, KEY, AUTHORITIES, TOKENS = "tls.crt", "tls.key", "ca.crt", "tokens"
# As hex: a segment of a webhook's path is lower case letters, digits and hyphens.
TOKEN_BYTES = 24
MANAGER = "stillwater-gate"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Issued:
    """A serving certificate with its key, and whom to trust for it, as PEM; the paths' tokens."""

    certificate: bytes
    key: bytes
    authorities: bytes
    # The last, the present and the next.
    tokens: tuple[str, ...]

    @property
    def path(self) -> str:
        """Return where the API server asks."""
        return f"{PATH}/{self.tokens[1]}"


def issue(hosts: Sequence[str], now: dt.datetime, before: Issued | None = None) -> Issued:
    """Make a certificate for names or addresses; what was `before` stays valid beside it."""
    known = () if before is None else before.tokens[1:]
    root, root_key = _self_signed(now)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(hosts[0], root.subject, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False
        )
        .sign(root_key, hashes.SHA256())
    )
    return Issued(
        certificate=_pem(certificate),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        authorities=_pem(root) + (b"" if before is None else _newest(before.authorities)),
        tokens=(*known, *(secrets.token_hex(TOKEN_BYTES) for _ in range(3 - len(known)))),
    )


def is_due(certificate: bytes, hosts: Sequence[str], now: dt.datetime) -> bool:
    """Say whether a certificate is to be renewed: it ends soon, or names other hosts."""
    try:
        known = x509.load_pem_x509_certificate(certificate)
        names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return True
    wanted = {_alternative(host) for host in hosts}
    return set(names) != wanted or now >= known.not_valid_after_utc - RENEWED_BEFORE


class Keeper:
    """Holds the certificate of the Secret in a server's context, and renews it in time."""

    def __init__(
        self,
        objects: EksApi,
        *,
        secret_path: str,
        webhook: str,
        hosts: Sequence[str],
        pods: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        """Keep it; `pods` reads the names that evictions are asked about, None: they are known."""
        self._objects, self._secret, self._webhook = objects, secret_path, f"{WEBHOOKS}/{webhook}"
        self._hosts = hosts
        self._shown: bytes | None = None
        self._tokens: tuple[str, ...] = ()
        self._pods = pods
        self._named_at: dt.datetime | None = None
        self._named: str | None = None

    def context(self, now: dt.datetime) -> ssl.SSLContext:
        """Return a server's context with the certificate in it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        issued = self._current(now)
        self._name(now)
        self._trust(issued)
        self._show(context, issued)
        return context

    def refresh(self, context: ssl.SSLContext, now: dt.datetime) -> None:
        """Renew what is due, have it trusted, and show it once it is.

        Raises StillwaterError where the API server does not answer; what is shown stays.
        """
        issued = self._current(now)
        self._name(now)
        if not self._trust(issued) and issued.certificate != self._shown:
            self._show(context, issued)

    def admits(self, token: str) -> bool:
        """Say whether a path's token is the API server's, in a time that does not tell."""
        given = token.encode()
        return any(hmac.compare_digest(given, known.encode()) for known in self._tokens)

    def _current(self, now: dt.datetime) -> Issued:
        """Return what the Secret holds, made new where it is due; its tokens are admitted."""
        issued = self._read_secret(now)
        self._tokens = issued.tokens
        return issued

    def _read_secret(self, now: dt.datetime) -> Issued:
        found = self._objects.find(self._secret)
        if found is None:
            raise StillwaterError(
                f"A Secret is missing at {self._secret}: `stillwater up` makes it; run it again."
            )
        known = _issued_in(found.get("data") or {})
        if known.tokens and not is_due(known.certificate, self._hosts, now):
            return known
        issued = issue(self._hosts, now, known)
        version = found["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version}, "data": _data(issued)}
        with contextlib.suppress(Conflict):
            self._objects.merge(self._secret, body)
            return issued
        return self._read_secret(now)

    def _name(self, now: dt.datetime) -> None:
        """Read whose evictions are asked about; what cannot be read leaves what was known."""
        if self._pods is None or (self._named_at and now - self._named_at < NAMED_EVERY):
            return
        with contextlib.suppress(StillwaterError):
            self._named = condition(self._pods()) or self._named
            self._named_at = now

    def _trust(self, issued: Issued) -> bool:
        """Have the API server trust a certificate; say whether it did not yet."""
        found = self._objects.find(self._webhook)
        if found is None:
            return False  # Made after the first replica is ready; then it is told.
        bundle = base64.b64encode(issued.authorities).decode()
        asking = found.get("webhooks") or ()
        trusted = all(each["clientConfig"].get("caBundle") == bundle for each in asking)
        told = [self._webhook_patch(each, bundle, issued.path) for each in asking]
        if trusted and [_told_in(a) for a in asking] == [_told_in(b) for b in told]:
            return False
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": found["metadata"]["name"]},
            "webhooks": told,
        }
        self._objects.apply(self._webhook, body, manager=MANAGER)
        return not trusted

    def _webhook_patch(self, webhook: Json, bundle: str, path: str) -> Json:
        """Return the gate's own part of a webhook: where to ask, whom to trust, and which pods.

        Whatever is left out is taken back, so what stands is said again until more is known.
        """
        client = {"caBundle": bundle, "service": {"path": path}}
        told: Json = {"name": webhook["name"], "clientConfig": client}
        known = self._named or _known_in(webhook)
        if webhook["name"] == EVICTIONS and known is not None and self._pods is not None:
            told["matchConditions"] = [{"name": KNOWN, "expression": known}]
        return told

    def _show(self, context: ssl.SSLContext, issued: Issued) -> None:
        """Load a certificate into a context: new connections get it, open ones keep theirs."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "certificate.pem")
            # TLS takes it as a file alone; nobody else may read this one.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(issued.key + issued.certificate)
            context.load_cert_chain(path)
        self._shown = issued.certificate


def _known_in(webhook: Json) -> str | None:
    """Return the condition of the gate's own that stands in a webhook."""
    return next(
        (str(c["expression"]) for c in webhook.get("matchConditions") or () if c["name"] == KNOWN),
        None,
    )


def _told_in(webhook: Json) -> tuple[str | None, str | None]:
    """Return where a webhook asks and the gate's own condition."""
    return (webhook["clientConfig"].get("service") or {}).get("path"), _known_in(webhook)


def _issued_in(data: Json) -> Issued:
    certificate, key, authorities, tokens = (
        base64.b64decode(data.get(name) or "") for name in (CERTIFICATE, KEY, AUTHORITIES, TOKENS)
    )
    return Issued(certificate, key, authorities, tuple(tokens.decode().split()))


def _data(issued: Issued) -> dict[str, str]:
    held = {
        CERTIFICATE: issued.certificate,
        KEY: issued.key,
        AUTHORITIES: issued.authorities,
        TOKENS: " ".join(issued.tokens).encode(),
    }
    return {name: base64.b64encode(value).decode() for name, value in held.items()}


def _self_signed(now: dt.datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = f"stillwater gate {x509.random_serial_number():x}"[:60]
    certificate = (
        _builder(name, None, key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _builder(
    name: str, issuer: x509.Name | None, key: ec.EllipticCurvePrivateKey, now: dt.datetime
) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:60])])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + VALID)
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _newest(authorities: bytes) -> bytes:
    """Return the first of several certificates: one before is trusted, and no older one."""
    if not authorities:
        return b""
    return _pem(x509.load_pem_x509_certificates(authorities)[0])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
