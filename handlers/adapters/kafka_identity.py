"""Reads from the API server who a function is to Kafka, for every connection anew.

Strimzi renews certificates and authorities and may be told to make another password; whoever reads
them when asking Kafka needs no restart. What is secret is held in memory only: nothing of it is in
an environment variable, a log or a repr. TLS takes a certificate as a file alone, so it is one for
as long as it is read, in nobody's reach but ours (mode 0600).
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import urllib3
from kafka.net.sasl.oauth import AbstractTokenProvider

from core.ground.errors import StillwaterError
from core.settings.functions import KafkaIdentity
from handlers.adapters.eks import certificate_ends_at, trusting

TOKEN_TIMEOUT_SECONDS = 5.0
MECHANISMS = {"scram-sha-512": "SCRAM-SHA-512", "oauth": "OAUTHBEARER", "aws-iam": "AWS_MSK_IAM"}
# Strimzi's names first; then those of kubernetes.io/tls and kubernetes.io/basic-auth.
_CERTIFICATE_KEYS = (("user.crt", "user.key"), ("tls.crt", "tls.key"))


class Finds(Protocol):
    """An API server's objects."""

    def find(self, path: str) -> dict[str, Any] | None:
        """Return the object at a path, or None."""


class KafkaAccess:
    """What kafka-python needs to connect as an identity."""

    def __init__(self, identity: KafkaIdentity, api: Finds) -> None:
        self._identity, self._api = identity, api

    def __call__(self) -> dict[str, Any]:
        """Return the client's settings as of now.

        Raises StillwaterError with the Secret that is missing, empty or expired.
        """
        me = self._identity
        settings: dict[str, Any] = {"security_protocol": me.security}
        context = self._context()
        if context is not None:
            settings["ssl_context"] = context
        if me.authentication in MECHANISMS:
            settings["sasl_mechanism"] = MECHANISMS[me.authentication]
        if me.authentication == "tls" and context is not None:
            _show(context, *self._certificate())
        elif me.authentication == "scram-sha-512":
            data = self._secret(me.secret)
            settings["sasl_plain_username"] = data.get("username") or me.secret
            settings["sasl_plain_password"] = self._value(data, "password")
        elif me.authentication == "oauth":
            data = self._secret(me.secret)
            pair = self._value(data, "client-id"), self._value(data, "client-secret")
            settings["sasl_oauth_token_provider"] = _Token(_token(me.token_url or "", *pair))
        return settings

    def remedy(self, error: BaseException) -> str:
        """Return what to look at where Kafka does not let this identity in; empty: unknown."""
        said, me = str(error), self._identity
        if "UnsupportedSaslMechanism" in type(error).__name__ + said:
            return (
                f"the listener does not offer {MECHANISMS.get(me.authentication, 'SASL')}; set the "
                f"listener's authentication in the spec to what the broker offers, and deploy"
            )
        if "SaslAuthentication" in type(error).__name__ + said:
            return (
                f"Kafka refused the user of Secret {me.secret} in namespace {me.namespace}; see "
                f"that its KafkaUser is Ready, or renew the Secret"
            )
        if me.authentication in MECHANISMS and "disconnected" in said:
            # Kafka closes a connection it refuses, and may do so before its answer is read.
            return (
                f"Kafka closed the connection before the user of Secret {me.secret} in namespace "
                f"{me.namespace} had access. See that its KafkaUser is Ready, and that the "
                f"listener offers {MECHANISMS[me.authentication]}"
            )
        if "CERTIFICATE_VERIFY_FAILED" in said:
            return (
                f"the broker's certificate is of no authority in Secret {me.authority_secret} in "
                f"namespace {me.namespace}; name the right one in "
                f"kafka.functions.authority_secret_name"
            )
        if "ALERT" in said.upper():
            return (
                f"Kafka refused the certificate of Secret {me.secret} in namespace {me.namespace}: "
                f"see that its KafkaUser is Ready and of this cluster's clients authority"
            )
        return ""

    def _context(self) -> ssl.SSLContext | None:
        me = self._identity
        if not me.security.endswith("SSL"):
            return None
        if me.authentication == "aws-iam":
            # Amazon MSK's certificates are of authorities that every system trusts.
            return ssl.create_default_context()
        found = self._secret(me.authority_secret)
        authorities = [found[key] for key in sorted(found) if key.endswith(".crt")]
        if not authorities:
            raise StillwaterError(
                f"Secret {me.authority_secret} in namespace {me.namespace} holds no certificate; "
                f"Strimzi's cluster operator writes it."
            )
        return trusting("\n".join(authorities), "Kafka's")

    def _certificate(self) -> tuple[str, str]:
        me = self._identity
        data = self._secret(me.secret)
        for certificate, key in _CERTIFICATE_KEYS:
            if data.get(certificate) and data.get(key):
                self._check_end(data[certificate])
                return data[certificate], data[key]
        raise StillwaterError(
            f"Secret {me.secret} in namespace {me.namespace} holds no user.crt with user.key, nor "
            "tls.crt with tls.key; see that its KafkaUser has authentication tls."
        )

    def _check_end(self, certificate_pem: str) -> None:
        me, ends_at = self._identity, certificate_ends_at(certificate_pem)
        if ends_at is not None and ends_at <= dt.datetime.now(dt.UTC):
            raise StillwaterError(
                f"The certificate of Secret {me.secret} in namespace {me.namespace} ended at "
                f"{ends_at:%Y-%m-%d %H:%M} UTC. See why Strimzi's user operator has not renewed "
                "it, or delete the Secret so that it makes another."
            )

    def _value(self, data: Mapping[str, str], key: str) -> str:
        if not data.get(key):
            me = self._identity
            raise StillwaterError(
                f"Secret {me.secret} in namespace {me.namespace} holds no {key}, which "
                f"authentication {me.authentication} needs; add it, or have its KafkaUser say who "
                f"it is by {me.authentication}."
            )
        return data[key]

    def _secret(self, name: str) -> dict[str, str]:
        namespace = self._identity.namespace
        found = self._api.find(f"/api/v1/namespaces/{quote(namespace)}/secrets/{quote(name)}")
        if found is None:
            raise StillwaterError(
                f"Secret {name} in namespace {namespace} is missing. Strimzi writes it when its "
                "KafkaUser or Kafka is Ready. See its status, or name another in kafka.functions."
            )
        # What is no text, as a PKCS #12 store, is none of ours.
        return {
            key: base64.b64decode(value).decode(errors="replace")
            for key, value in (found.get("data") or {}).items()
            if not key.endswith((".p12", ".jks"))
        }


class _Token(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python carries no types
    """One token, for the one short connection it was fetched for."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


def _show(context: ssl.SSLContext, certificate_pem: str, key_pem: str) -> None:
    """Have a context show a certificate."""
    with tempfile.TemporaryDirectory() as directory:  # mode 0700
        path = Path(directory, "pem")
        path.touch(mode=0o600)
        path.write_text(f"{key_pem}\n{certificate_pem}\n")
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise StillwaterError(
                f"The functions' certificate and key are not a pair of PEM texts: {error.reason}."
            ) from None


def _token(url: str, client_id: str, client_secret: str) -> str:
    """Fetch a token by OAuth's client credentials; raises StillwaterError with what was said."""
    try:
        answer = urllib3.PoolManager(timeout=TOKEN_TIMEOUT_SECONDS, retries=False).request(
            "POST",
            url,
            fields={"grant_type": "client_credentials"},
            encode_multipart=False,
            headers=urllib3.make_headers(basic_auth=f"{client_id}:{client_secret}"),
        )
        token = json.loads(answer.data).get("access_token") if answer.status == 200 else None
    except (urllib3.exceptions.HTTPError, ValueError, AttributeError) as error:
        raise StillwaterError(
            f"The token endpoint {url} gave no token: {type(error).__name__}."
        ) from None
    if not isinstance(token, str):
        raise StillwaterError(
            f"The token endpoint {url} gave client {client_id} no token: status {answer.status}; "
            f"see that client-id and client-secret are still its own."
        )
    return token
